"""The layers: every folder imports only the folders below it, and the pure ones do no I/O.

Imports are read from the source: those inside functions and those for the type checker too, so neither a lazily
imported library nor a type can point upwards.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "windowpane": ROOT / "exporter" / "windowpane",
    "windowpane_dashboard": ROOT / "dashboard" / "windowpane_dashboard",
}
ROOT_MODULES = {"windowpane", "windowpane.exceptions", "windowpane.testing", "windowpane.__main__"}
"""The only modules beside the folders."""

LAYERS = {
    "core": set[str](),
    "effects": {"core"},
    "text": {"core"},
    "models": {"core"},
    "metrics": {"core"},
    "store": {"core", "effects"},
    "sources": {"core", "models", "observer", "telemetry"},
    "fidelity": {"core", "effects"},
    "alerts": {"core", "effects", "text", "metrics"},
    "report": {"core", "text", "store", "alerts"},
    "manager": {"core", "effects", "models", "fidelity"},
    "contrib": {"core", "effects", "manager"},
    "config": {"core", "alerts", "fidelity", "manager", "contrib"},
    "fidelity.suite": {"core", "effects", "fidelity", "manager", "config", "sources"},
    "otlp": {"core", "effects", "metrics", "models", "config", "manager"},
    "ingest": {"core", "effects", "models", "sources", "store", "fidelity", "alerts", "config"},
    "clickhouse": {"core", "text", "store", "config"},
    "serve": {"clickhouse", "core", "effects", "metrics", "models", "store", "alerts", "config", "otlp"},
    "remote": {"core", "effects", "metrics", "config", "store", "serve"},
    "replay": {
        "core", "text", "models", "sources", "store", "fidelity", "manager", "contrib", "config",
    },
    "runtime": {
        "core", "effects", "models", "metrics", "store", "alerts", "manager", "contrib", "config", "fidelity",
        "fidelity.suite", "otlp", "serve", "remote",
    },
    "adapters": {"core", "effects", "models", "manager", "runtime"},
    "hooks": {"core", "text", "store", "config"},
    "observer": {"core", "effects", "models", "fidelity"},
    "observer.clients": {"core", "effects", "models", "fidelity", "observer", "runtime", "hooks"},
    "telemetry": {"core", "models"},
    "receiver": {
        "core", "effects", "models", "metrics", "config", "sources", "serve", "observer", "observer.clients",
        "telemetry",
    },
    "proxy": {
        "core", "effects", "models", "config", "serve", "observer", "observer.clients", "sources", "runtime",
    },
}  # fmt: skip
"""Folder to the folders it may import; `demo`, `cli` and the package itself compose and may import all."""
COMPOSING = ("demo", "cli")

DASHBOARD_LAYERS = {
    "style": set[str](),
    "queries": {"style"},
    "charts": {"style", "queries"},
    "page": {"style", "queries", "charts"},
    "replay": {"queries", "page"},
    "sections": {"style", "queries", "charts", "page", "replay"},
    "views": {"style", "queries", "charts", "page", "sections", "replay"},
    "server": {"style", "queries", "charts", "page"},
}
DASHBOARD_READS = (
    "alerts", "clickhouse", "config", "core", "metrics", "replay", "report", "serve", "store", "text",
    "exceptions",
)  # fmt: skip
"""The folders of `windowpane` that the dashboard may use: none that manages, observes or imports a session."""

PURE = ("core", "text", "fidelity", "manager", "contrib", "observer", "alerts", "metrics", "report", "telemetry")
IMPURE_WITHIN = ("fidelity.suite", "manager.files", "observer.clients", "alerts.delivery")
"""Folders inside pure ones that touch files, the network or a clock."""
IMPURE = {
    "ctypes", "fileinput", "ftplib", "glob", "http", "io", "multiprocessing", "os", "pathlib", "pickle", "random",
    "secrets", "select", "shelve", "shutil", "signal", "smtplib", "socket", "socketserver", "sqlite3", "ssl",
    "subprocess", "tempfile", "time", "urllib", "uuid", "webbrowser",
}  # fmt: skip
"""Of the standard library: files, network, processes, clocks, chance. Pure code is passed what it needs."""
LIBRARIES = {"ahocorasick", "numpy", "msgspec", "yaml", "prometheus_client", "google", "opentelemetry"}
"""Libraries that pure folders may use: arithmetic, encoding, and the types of an exposition format."""
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


def folder_of(module: str, layers: dict[str, set[str]]) -> str:
    """Return the folder of *module*: the deepest one in *layers*, else its first one."""
    parts = module.split(".")[1:]
    for depth in range(len(parts), 0, -1):
        if (name := ".".join(parts[:depth])) in layers:
            return name
    return parts[0] if parts else ""


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
    """Every module lies in a folder, except for those that users import from the root."""
    root = PACKAGES["windowpane"]
    loose = {module for module, path in MODULES.items() if path.parent == root}

    assert loose == ROOT_MODULES


@pytest.mark.parametrize("layers", [LAYERS, DASHBOARD_LAYERS], ids=["exporter", "dashboard"])
def test_the_layers_have_an_order(layers: dict[str, set[str]]) -> None:
    """No two folders may import each other, directly or by way of others."""
    waiting, placed = dict(layers), set[str]()
    while ready := [folder for folder, below in waiting.items() if below <= placed]:
        placed.update(ready)
        for folder in ready:
            del waiting[folder]

    assert not waiting


@pytest.mark.parametrize(
    "module", sorted(name for name in MODULES if name.startswith("windowpane.") and name not in ROOT_MODULES)
)
def test_a_folder_imports_only_folders_below_it(module: str) -> None:
    """Edges do not know each other, and nothing points upwards."""
    folder = folder_of(module, LAYERS)
    if folder in COMPOSING:
        return
    above = {
        name
        for name in own_imports(module)
        if name != "windowpane.exceptions" and folder_of(name, LAYERS) not in {folder, *LAYERS[folder]}
    }

    assert not above


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name.startswith("windowpane_dashboard.")))
def test_the_dashboard_only_reads(module: str) -> None:
    """It uses no manager, observer or source, and its own folders have an order too."""
    foreign = {name for name in own_imports(module) if name.startswith("windowpane.")}
    assert {name for name in foreign if not is_within(name, DASHBOARD_READS)} == set()

    folder = folder_of(module, DASHBOARD_LAYERS)
    if folder in DASHBOARD_LAYERS:
        inside = {name for name in own_imports(module) if name.startswith("windowpane_dashboard.")}
        allowed = {folder, *DASHBOARD_LAYERS[folder]}
        assert {name for name in inside if folder_of(name, DASHBOARD_LAYERS) not in allowed} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither when they run nor for the type checker."""
    waiting = {module: own_imports(module) for module in MODULES}
    while ready := [module for module, needed in waiting.items() if not needed & waiting.keys()]:
        for module in ready:
            del waiting[module]
    while unused := [module for module in waiting if not any(module in needed for needed in waiting.values())]:
        for module in unused:
            del waiting[module]

    assert sorted(waiting) == []


@pytest.mark.parametrize("module", PURE_MODULES)
def test_a_pure_folder_does_no_io(module: str) -> None:
    """No file, socket, process, clock or chance, by import or by a built-in that needs none."""
    outside = {name.split(".")[0] for name in imports(module, typing=False)} - {"windowpane"}
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }

    assert outside <= sys.stdlib_module_names | LIBRARIES, "an unlisted library in a pure folder"
    assert not outside & IMPURE, "I/O, a clock or chance in a pure folder: take it as an argument"
    assert not called & IMPURE_CALLS


def test_the_rule_sees_every_kind_of_import() -> None:
    """Imports in functions, of submodules and of whole packages are found; the rule is not blind."""
    assert "windowpane.core.window.blocks" in imports("windowpane.core.window.window")
    assert any("sqlite3" in imports(module) for module in MODULES if is_within(module, ("store",)))
    assert "windowpane.core.events.facts" in PURE_MODULES
    assert len(PURE_MODULES) > 100
