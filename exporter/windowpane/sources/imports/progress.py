"""The progress of an import, for the pages of a dashboard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from windowpane.sources.imports.note_file import Note, NoteFile

SUFFIX: Final = ".import.json"


class ImportProgress(Note, frozen=True):
    """The position of an import, in recordings."""

    done: int
    total: int

    @property
    def share(self) -> float:
        """Progress, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total > 0 else 0.0


class ProgressFile(NoteFile[ImportProgress]):
    """The progress of an import into the store beside *base*."""

    def __init__(self, base: Path) -> None:
        super().__init__(base.with_name(base.name + SUFFIX), ImportProgress)

    def show(self, done: int, total: int) -> None:
        """Note the progress, unless it was just noted."""
        self.write(lambda: ImportProgress(done, total, pid=os.getpid()))


def running_import(base: Path) -> ImportProgress | None:
    """Return the progress of the import that runs on this machine into the store beside *base*, if one does."""
    return ProgressFile(base).read()


def another_import(base: Path) -> bool:
    """Return whether another process imports into the store beside *base*."""
    progress = running_import(base)
    return progress is not None and progress.pid != os.getpid()
