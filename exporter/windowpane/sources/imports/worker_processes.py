"""Number and start of the worker processes of an import: loaded before what they run, which takes longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from windowpane.effects.processes import usable_cores, worker_class

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from pathlib import Path

MAXIMUM_WORKERS: Final = 8
MINIMUM_BYTES: Final = 16 * 2**20
"""Below so much to read, workers take longer to start than they save."""
_LOADED: Final = "windowpane.sources.imports.loaded_worker"


def load_workers() -> Callable[..., BaseProcess]:
    """Load what workers need, in a process beside this one where that is possible; return the workers' class."""
    return worker_class(_LOADED)


def worthwhile(paths: Iterable[Path], *, minimum_bytes: int = MINIMUM_BYTES) -> int:
    """Return how many workers to read these files with: none, where they would take longer to start."""
    size = 0
    for path in paths:
        size += size_of(path)
        if size >= minimum_bytes:
            cores = usable_cores()
            return min(cores, MAXIMUM_WORKERS) if cores > 1 else 0
    return 0


def size_of(path: Path) -> int:
    """Return the size of a file; 0 for one that is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
