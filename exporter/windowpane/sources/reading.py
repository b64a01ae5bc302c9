"""What one pass over one file found: figures and problems, both bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from windowpane.sources.base import FileStats, Problem

MAXIMUM_PROBLEMS: Final = 1_000
"""Problems listed for one file; more are counted but not listed."""


class Reading:
    """Collects the figures and problems of one file for its reader."""

    def __init__(self, path: Path, stats: FileStats, problems: list[Problem]) -> None:
        self.path = path
        self.stats = stats
        self._file = str(path)
        self._problems = problems
        self._listed = 0

    def skipped(self, line: int | None, field: str, problem: str) -> None:
        """Something could not be used."""
        self._note(line, field, problem, "bad")

    def odd(self, line: int | None, field: str, problem: str) -> None:
        """Something was wrong and was understood all the same."""
        self._note(line, field, problem, "odd")

    def bad_line(self, line: int, problem: str, *, used: bool = False) -> None:
        """A line is not one JSON object; *used* where its content was saved all the same."""
        self.stats.bad_lines += 1
        self._note(line, "", problem, "odd" if used else "bad")

    def odd_line(self, line: int, field: str, problem: str) -> None:
        """A line is sound JSON, but not a record of this format."""
        self.stats.odd_lines += 1
        self._note(line, field, problem, "bad")

    def _note(self, line: int | None, field: str, problem: str, severity: Literal["odd", "bad"]) -> None:
        self._listed += 1
        if self._listed < MAXIMUM_PROBLEMS:
            self._problems.append(Problem(self._file, line, field, problem, severity))
        elif self._listed == MAXIMUM_PROBLEMS:
            more = f"more than {MAXIMUM_PROBLEMS} problems; the rest is counted and not listed"
            self._problems.append(Problem(self._file, line, "", more, "bad"))
