"""The protocol of a reader of recordings, and what it reports beside the records: figures and problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol

from windowpane.sources.records import Record

MAXIMUM_RECORD_BYTES: Final = 64 * 2**20
MAXIMUM_DOCUMENT_BYTES: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a recording."""

    file: str
    line: int | None
    field: str
    problem: str
    severity: Literal["odd", "bad"] = "bad"
    """`bad` was skipped, `odd` was understood all the same."""

    def __str__(self) -> str:
        """`file:line: field: problem`, without what is unknown."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.field}: {self.problem}" if self.field else f"{place}: {self.problem}"


@dataclass(slots=True)
class FileStats:
    """Raw figures of one recording, counted as the recording tells them; comparable across tools."""

    messages: int = 0
    tool_calls: int = 0
    content_chars: int = 0
    max_tool_output_chars: int = 0
    user_turns: int = 0
    """Exchanges (steps in trajectory formats)."""
    api_calls: int = 0
    compactions: int = 0
    evictions: int = 0
    bad_lines: int = 0
    odd_lines: int = 0
    peak_context: int = 0
    """Largest input total of one call, tokens."""
    usage: dict[str, int] = field(default_factory=dict)
    """Sums by the format's own names."""
    sessions: int = 0


class Reader(Protocol):
    """Reads one format."""

    format: ClassVar[str]
    """Its name; also the `source` of the events."""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Whether a file that begins with *head* (at most 64 kB) is of this format."""
        ...

    @staticmethod
    def default_paths() -> tuple[Path, ...]:
        """Where the tool keeps its recordings on this machine; may not exist."""
        ...

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Records of the file in order. Raises `SourceError` only when nothing of it can be read."""
        ...


MAXIMUM_PROBLEMS: Final = 1_000
"""Problems listed for one file; more are counted but not listed."""


class ProblemLog:
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
