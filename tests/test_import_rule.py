"""The core stays pure: what it may import is a list, and everything else comes in through a protocol."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "exporter" / "windowpane"

CORE = (
    "alerts/engine.py",
    "alerts/quantities.py",
    "alerts/rules.py",
    "alerts/wording.py",
    "control",
    "digests.py",
    "events",
    "exceptions.py",
    "formats.py",
    "metrics",
    "model_names.py",
    "observe",
    "protocols.py",
    "records.py",
    "settings.py",
    "signs.py",
    "state.py",
    "tracking",
    "vocabulary.py",
    "window",
    "words.py",
)
EDGES = ("metrics/otel.py", "metrics/prometheus.py")
"""Modules among the core's that speak a protocol of the outside."""

ALLOWED_LIBRARIES = {"numpy"}
WORLD = {
    *("glob", "http", "io", "os", "pathlib", "random", "secrets", "select", "shutil", "signal"),
    *("socket", "sqlite3", "ssl", "subprocess", "tempfile", "time", "urllib", "uuid"),
}
"""Standard modules through which a file, a clock, a process, the network or chance would come in."""


def core_files() -> Iterator[Path]:
    for name in CORE:
        path = PACKAGE / name
        if path.is_dir():
            yield from (
                file for file in sorted(path.rglob("*.py")) if str(file.relative_to(PACKAGE)) not in EDGES
            )
        elif path.exists():
            yield path


def imports(path: Path) -> Iterator[str]:
    """Every module *path* imports, at the top, inside functions and for types alike."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module="windowpane", names=names, level=0):
                yield from (f"windowpane.{name.name}" for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom(level=level) if level:
                yield f"relative import in {path.name}"


def is_core(module: str) -> bool:
    inside = module.removeprefix("windowpane").removeprefix(".").replace(".", "/")
    return f"{inside}.py" not in EDGES and any(
        f"{inside}/".startswith(f"{name.removesuffix('.py')}/") for name in CORE
    )


def test_the_core_imports_only_the_core_and_pure_libraries() -> None:
    """No edge, no third-party library beside numpy and no door to the world is imported by the core."""
    broken = [
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in core_files()
        for module in imports(path)
        if not (
            is_core(module)
            if module.split(".")[0] == "windowpane"
            else module.split(".")[0] in ALLOWED_LIBRARIES | (sys.stdlib_module_names - WORLD)
        )
    ]

    assert broken == []


def test_the_rule_looks_at_the_core() -> None:
    """The list names files that exist, so that a renamed package does not leave the rule."""
    assert [name for name in ("control", "events", "tracking", "window") if not (PACKAGE / name).exists()] == []
    assert len(list(core_files())) > 20
