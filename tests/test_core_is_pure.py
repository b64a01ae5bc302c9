"""The import rule: the core does no I/O, edges do not know each other, the dashboard only reads.

Imports are read from the source (those in functions too, those for the type checker not), so a lazily imported
library breaks the rule as surely as one at the top.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "windowpane": ROOT / "exporter" / "windowpane",
    "windowpane_dashboard": ROOT / "dashboard" / "windowpane_dashboard",
}

CORE = (
    "events", "window", "tracking", "settings", "vocabulary", "protocols", "exceptions", "control", "observation",
    "palette", "state", "metrics.catalog", "alerts.rules", "alerts.engine",
)  # fmt: skip
"""With everything they import."""

IMPURE = {
    "ctypes", "fileinput", "ftplib", "glob", "http", "io", "multiprocessing", "os", "pathlib", "pickle", "random",
    "secrets", "select", "shelve", "shutil", "signal", "smtplib", "socket", "socketserver", "sqlite3", "ssl",
    "subprocess", "tempfile", "time", "urllib", "uuid", "webbrowser",
}  # fmt: skip
"""Of the standard library: files, network, processes, clocks, chance. The core is given what it needs of them."""

IMPURE_CALLS = {
    "open", "input", "print", "exec", "eval", "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
}  # fmt: skip
"""Built-in I/O, and the clock by way of `datetime`."""

EDGES = ("alerts", "limits", "metrics", "otlp", "report", "sources", "store", "tokens")
"""Each knows the core and itself."""

SHARED = (
    "answers", "boundary", "codec", "digests", "formats", "gaps", "model_names", "paths", "redaction", "signs",
    "store.base", "store.records", "words",
)  # fmt: skip
"""What edges may use beside the core: the codec, the contract of the store, words for people, small leaves."""

DASHBOARD = (
    "alerts.guidance", "alerts.notify", "alerts.rulefile", "alerts.rules", "alerts.wording", "answers", "codec",
    "config", "events", "exceptions", "formats", "metrics.catalog", "palette", "paths",
    "probing", "protocols", "replay", "settings", "signs", "state", "store.audit", "store.base", "store.export",
    "store.reads", "store.records", "store.replays", "store.search", "store.sqlite", "vocabulary", "words",
)  # fmt: skip
"""What the dashboard may use: reads of the store, events and alerts in words, replay, messages, settings,
whether a server answers."""


def sources() -> dict[str, Path]:
    """Every module of both packages, by its dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
            found[name] = path
    return found


MODULES = sources()


def imports(module: str) -> set[str]:
    """The dotted names a module imports, of whole modules; relative ones made absolute."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            whole = [f"{base}.{alias.name}" for alias in node.names]
            found.update(name if name in MODULES else base for name in whole)
        waiting += ast.iter_child_nodes(node)
    return found


def own(names: set[str]) -> set[str]:
    """Those of the names that are modules of ours."""
    return {name for name in names if name in MODULES}


def within(module: str, parts: tuple[str, ...]) -> bool:
    """Whether a module of `windowpane` is one of *parts* or lies in one."""
    rest = module.removeprefix("windowpane.")
    return any(rest == part or rest.startswith(f"{part}.") for part in parts)


def core() -> set[str]:
    """The core's modules and all that they reach."""
    reached: set[str] = set()
    waiting = [module for module in MODULES if module.startswith("windowpane.") and within(module, CORE)]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += own(imports(module))
    return reached


CORE_MODULES = sorted(core())


@pytest.mark.parametrize("module", CORE_MODULES)
def test_the_core_imports_only_itself_the_standard_library_and_numpy(module: str) -> None:
    """No library, no I/O, no clock and no chance, directly or by way of another module."""
    outside = {name.split(".")[0] for name in imports(module)} - {"windowpane", "numpy"}

    assert outside <= sys.stdlib_module_names, "a library in the core"
    assert not outside & IMPURE, "I/O, a clock or chance in the core: take it as an argument"


@pytest.mark.parametrize("module", CORE_MODULES)
def test_the_core_opens_no_file_and_reads_no_clock(module: str) -> None:
    """Nor by what needs no import of its own."""
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }

    assert not called & IMPURE_CALLS


@pytest.mark.parametrize("module", CORE_MODULES)
def test_the_core_reaches_no_edge(module: str) -> None:
    """What the core imports is core, and so is all that follows."""
    edges = tuple(edge for edge in EDGES if edge not in ("alerts", "metrics"))

    assert not within(module, (*edges, "cli", "config", "demo", "outputs", "pipeline", "runtime", "server"))


@pytest.mark.parametrize("module", sorted(module for module in MODULES if within(module, EDGES)))
def test_an_edge_knows_only_itself_and_the_core(module: str) -> None:
    """Edges meet in pipeline, server, cli, demo, config and runtime, not in each other."""
    family = next(edge for edge in EDGES if within(module, (edge,)))
    allowed = (family, *SHARED)

    foreign = {
        name
        for name in own(imports(module))
        if name not in CORE_MODULES and name != "windowpane" and not within(name, allowed)
    }
    assert not foreign


@pytest.mark.parametrize(
    "module", sorted(module for module in MODULES if module.startswith("windowpane_dashboard"))
)
def test_the_dashboard_only_reads(module: str) -> None:
    """It never reaches a writer, a tracker, a manager or a source."""
    foreign = {name for name in imports(module) if name.split(".")[0] == "windowpane"}

    assert not {name for name in foreign if not within(name, DASHBOARD)}


def test_the_rule_sees_every_kind_of_import() -> None:
    """Imports in functions, of submodules and of whole packages are found; the rule is not blind."""
    assert "windowpane.core.window.blocks" in imports("windowpane.core.window.window")
    assert "sqlite3" in set().union(*(imports(module) for module in MODULES if within(module, ("store",))))
    assert "windowpane.core.events.facts" in CORE_MODULES
    assert len(CORE_MODULES) > 20
