"""The report on one imported file; loaded without the readers and the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windowpane.core.characters import encodable
from windowpane.sources.transcripts.reader import INDEX, FileStats, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from windowpane.store.records import ImportOutcome


@dataclass(slots=True)
class FileReport:
    """The outcome of importing one file."""

    path: Path
    format: str | None = None
    """None where no reader recognizes it."""
    stats: FileStats = field(default_factory=FileStats)
    problems: list[Problem] = field(default_factory=list)
    outcomes: list[ImportOutcome] = field(default_factory=list)
    error: str = ""
    """The reason why the file, or a part of it, could not be stored."""
    skipped: str = ""
    """The reason why a file of a folder was skipped."""
    unknown: bool = False
    """No reader recognizes it."""
    partly: bool = False
    """Some sessions of a database were not read: they had not changed."""

    @property
    def file(self) -> str:
        """The path as text that can be encoded."""
        return encodable(str(self.path))

    def skip_unknown(self) -> None:
        """Skip a file of a folder if no reader recognizes it; an index of the recordings needs no reason."""
        if self.unknown:
            self.skipped, self.error = "" if self.error == INDEX else self.error, ""

    @property
    def partial(self) -> bool:
        """Return whether a part of the file is not in the store."""
        return bool(self.error) or any(problem.severity == "bad" for problem in self.problems)
