"""Whatever else on this machine is called windowpane: distributions, modules and commands of other projects."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

import windowpane
from windowpane.core.version import DISTRIBUTION, PACKAGE

HERE: Final = Path(windowpane.__file__).resolve()
SUMMARY: Final = "Observability for the context windows of LLM agents"
"""Summary of our distribution: an installation from before its renaming is not another project."""
_COMMANDS: Final = (PACKAGE, f"{PACKAGE}.exe")
_SCRIPT_BYTES: Final = 64 * 1024


def other_distributions(path: Iterable[str] | None = None) -> Iterator[str]:
    """Yield name and version of each installed distribution but ours that has a module `windowpane`.

    *path* holds the folders to search, by default those of `sys.path`.
    """
    seen = set()
    for distribution in distributions(path=list(sys.path if path is None else path)):
        name = distribution.metadata["Name"] or ""
        if name not in seen and not _is_ours(distribution, name) and _has_our_module(distribution, name):
            seen.add(name)
            yield f"distribution {name} {distribution.version}"


def other_modules(path: Iterable[str] | None = None) -> Iterator[Path]:
    """Yield the modules `windowpane` in the folders of *path* that are not this package.

    By default *path* is `sys.path` and the current folder, from which `python -c` and `python -m` import first.
    """
    for folder in dict.fromkeys([*sys.path, str(Path.cwd())] if path is None else path):
        spec = PathFinder.find_spec(PACKAGE, [folder])
        if spec is not None and spec.origin is not None and Path(spec.origin).resolve() != HERE:
            yield Path(spec.origin)


def other_commands(search_path: str | None = None) -> Iterator[Path]:
    """Yield the programs `windowpane` in PATH, up to the first that runs this package.

    A script of another virtual environment with this package runs it too.
    """
    folders = os.get_exec_path() if search_path is None else search_path.split(os.pathsep)
    for folder in dict.fromkeys(folders):
        for name in _COMMANDS:
            script = Path(folder) / name
            if script.is_file() and os.access(script, os.X_OK):
                if _runs_this_package(script):
                    return
                yield script


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_ours(distribution: Distribution, name: str) -> bool:
    return _normalized(name) == DISTRIBUTION or distribution.metadata["Summary"] == SUMMARY


def _has_our_module(distribution: Distribution, name: str) -> bool:
    if _normalized(name) == PACKAGE or PACKAGE in (distribution.read_text("top_level.txt") or "").split():
        return True
    return any(file.parts[0] in {PACKAGE, f"{PACKAGE}.py"} for file in distribution.files or ())


def _runs_this_package(script: Path) -> bool:
    """Return whether *script* names our entry point; a Windows launcher holds it at its end."""
    try:
        with script.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _SCRIPT_BYTES))
            return b"windowpane.cli" in file.read()
    except OSError:
        return True  # unknown, so not reported
