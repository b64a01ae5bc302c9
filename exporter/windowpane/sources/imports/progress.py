"""The progress of an import, beside the store, for the pages of a dashboard; loaded without the readers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.effects.processes import is_running

SUFFIX: Final = ".import.json"
MAXIMUM_BYTES: Final = 4_096
WRITE_SECONDS: Final = 0.5
"""Time between two notes of the progress."""


class ImportProgress(NamedTuple):
    """The position of an import, in recordings."""

    done: int
    total: int
    pid: int = 0

    @property
    def share(self) -> float:
        """Progress, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total > 0 else 0.0


class ProgressFile:
    """Writes the progress of this process, at most every `WRITE_SECONDS`; one that cannot be written is not.

    Nor is it while another import runs into the store, whose progress stays.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._file = _file(base)
        self._next_at = 0.0

    def write(self, done: int, total: int) -> None:
        """Write the progress, unless it was just written."""
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + WRITE_SECONDS
        if another_import(self._base):
            return
        with suppress(OSError):
            new = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            new.write_text(json.dumps(ImportProgress(done, total, os.getpid())._asdict()), encoding="utf-8")
            new.replace(self._file)

    def remove(self) -> None:
        """Remove the file, unless it is of another import."""
        progress = _read(self._file)
        if progress is not None and progress.pid == os.getpid():
            with suppress(OSError):
                self._file.unlink()


@contextmanager
def noted_progress(base: Path) -> Iterator[ProgressFile]:
    """Note the progress of an import into the store beside *base* while the block runs."""
    file = ProgressFile(base)
    try:
        yield file
    finally:
        file.remove()


def running_import(base: Path) -> ImportProgress | None:
    """Return the progress of the import that runs on this machine into the store beside *base*, if one does."""
    progress = _read(_file(base))
    return progress if progress is not None and is_running(progress.pid) else None


def another_import(base: Path) -> bool:
    """Return whether another process imports into the store beside *base*."""
    progress = running_import(base)
    return progress is not None and progress.pid != os.getpid()


def _file(base: Path) -> Path:
    return base.with_name(base.name + SUFFIX)


def _read(file: Path) -> ImportProgress | None:
    try:
        with file.open("rb") as stream:
            match json.loads(stream.read(MAXIMUM_BYTES)):
                case {"done": int(done), "total": int(total), "pid": int(pid)} if pid > 0:
                    return ImportProgress(done, total, pid)
    except (OSError, ValueError):
        pass
    return None
