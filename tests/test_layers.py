"""The layers: the modules and folders of a folder import each other in one direction, and pure code does no I/O.

Imports are read from the source: those inside functions and those for the type checker too, so neither a lazily
imported library nor a type can point upwards.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "windowpane": ROOT / "exporter" / "windowpane",
    "windowpane_dashboard": ROOT / "dashboard" / "windowpane_dashboard",
}
ROOT_MODULES = {"windowpane", "windowpane.exceptions", "windowpane.testing", "windowpane.__main__"}
"""The only modules beside the folders."""

READ_BY_THE_DASHBOARD = (
    "alerts", "config", "core", "effects.private_files", "evaluation.replay", "metrics", "outputs.http", "report",
    "sources.imports.noted_outlines", "sources.imports.progress", "store", "text", "exceptions",
)  # fmt: skip
"""The parts of `windowpane` that the dashboard may use: nothing that manages, observes or imports a session."""

PURE = (
    "alerts", "core", "fidelity", "manager", "metrics", "models.wire", "report", "sources.conversations",
    "sources.telemetry", "text",
)  # fmt: skip
IMPURE_WITHIN = ("alerts.delivery", "manager.files")
"""Folders inside pure ones that touch files, the network or a clock."""
IMPURE = {
    "ctypes", "fileinput", "ftplib", "glob", "http", "io", "multiprocessing", "os", "pathlib", "pickle", "random",
    "secrets", "select", "shelve", "shutil", "signal", "smtplib", "socket", "socketserver", "sqlite3", "ssl",
    "subprocess", "tempfile", "time", "urllib", "uuid", "webbrowser",
}  # fmt: skip
"""Of the standard library: files, network, processes, clocks, chance. Pure code is passed what it needs."""
LIBRARIES = {
    "ahocorasick", "msgspec", "pydantic", "pydantic_core", "yaml", "prometheus_client", "google", "opentelemetry"
}  # fmt: skip
"""Libraries that pure folders may use: search, encoding, and the types of an exposition format."""
IMPURE_CALLS = {
    "open", "input", "print", "exec", "eval", "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
}  # fmt: skip
"""Built-in I/O, and the clock by way of `datetime`."""


def sources() -> dict[str, Path]:
    """Return every module of both packages by its dotted name."""
    modules = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            modules[".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    return modules


MODULES = sources()


@cache
def imports(module: str, *, typing: bool = True) -> frozenset[str]:
    """Return the dotted names of whole modules that *module* imports, those for the type checker if asked for."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if not typing and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            whole = [f"{base}.{alias.name}" for alias in node.names]
            names.update(name if name in MODULES else base for name in whole)
        waiting += ast.iter_child_nodes(node)
    return frozenset(names)


def own_imports(module: str) -> set[str]:
    """Return the modules of these packages that *module* imports."""
    return {name for name in imports(module) if name in MODULES and name != module}


def is_within(module: str, folders: tuple[str, ...]) -> bool:
    """Return whether *module* is one of *folders* or lies in one."""
    rest = module.partition(".")[2]
    return any(rest == folder or rest.startswith(f"{folder}.") for folder in folders)


PURE_MODULES = sorted(
    module
    for module in MODULES
    if module.startswith("windowpane.") and is_within(module, PURE) and not is_within(module, IMPURE_WITHIN)
)


def test_no_module_stands_loose_at_the_root() -> None:
    root = PACKAGES["windowpane"]
    loose = {module for module, path in MODULES.items() if path.parent == root}

    assert loose == ROOT_MODULES


def siblings(module: str, imported: str) -> tuple[str, str, str]:
    """Return the folder that holds both modules, and the entry of that folder that each of them is or lies in.

    The `__init__` of a folder counts as a module in it.
    """
    one, other = (
        [*name.split("."), "__init__"] if MODULES[name].name == "__init__.py" else name.split(".")
        for name in (module, imported)
    )
    depth = next(index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return ".".join(one[:depth]), one[depth], other[depth]


def entries() -> dict[str, dict[str, set[str]]]:
    """Return, for every folder, its modules and folders with those of the same folder that they import."""
    folders: dict[str, dict[str, set[str]]] = {}
    for module in MODULES:
        for imported in own_imports(module):
            if module.split(".")[0] == imported.split(".")[0]:
                folder, one, other = siblings(module, imported)
                folders.setdefault(folder, {}).setdefault(one, set()).add(other)
    return folders


def circle(needed: dict[str, set[str]]) -> set[str]:
    """Return the names that import each other, directly or by way of others."""
    waiting = {name: others & needed.keys() for name, others in needed.items()}
    while ready := [name for name, others in waiting.items() if not others & waiting.keys()]:
        for name in ready:
            del waiting[name]
    return set(waiting)


def test_the_modules_and_folders_of_a_folder_have_an_order() -> None:
    folders = entries()
    circles = {folder: circle(needed) for folder, needed in folders.items()}

    assert {folder: names for folder, names in circles.items() if names} == {}
    assert len(folders) > 50


def test_the_dashboard_only_reads() -> None:
    used = {
        name
        for module in MODULES
        if module.startswith("windowpane_dashboard.")
        for name in own_imports(module)
        if name.startswith("windowpane.") and not is_within(name, READ_BY_THE_DASHBOARD)
    }

    assert used == set()


def test_the_configuration_imports_only_core() -> None:
    """Its names and bounds are plain data: reading a setting loads nothing that the setting is for."""
    used = {
        name
        for module in MODULES
        if is_within(module, ("config",))
        for name in own_imports(module)
        if not is_within(name, ("config", "core", "exceptions"))
    }

    assert used == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({module: own_imports(module) for module in MODULES}) == set()


def impurities(module: str) -> set[str]:
    """Return the libraries, I/O, clocks and chance that *module* imports or calls itself."""
    outside = {name.split(".")[0] for name in imports(module, typing=False)} - {"windowpane"}
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }
    return (outside - sys.stdlib_module_names - LIBRARIES) | (outside & IMPURE) | (called & IMPURE_CALLS)


def test_a_pure_folder_does_no_io() -> None:
    """It takes as arguments what it needs of the world, and uses the listed libraries only."""
    found = {module: impurities(module) for module in PURE_MODULES}

    assert {module: names for module, names in found.items() if names} == {}


def test_the_rule_sees_every_kind_of_import() -> None:
    assert "windowpane.core.window.blocks" in imports("windowpane.core.window.window")
    assert any("sqlite3" in imports(module) for module in MODULES if is_within(module, ("store",)))
    assert "windowpane.core.events.facts" in PURE_MODULES
    assert "sqlite3" in impurities("windowpane.store.sqlite.engine")
    assert len(PURE_MODULES) > 100
