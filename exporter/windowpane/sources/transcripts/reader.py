"""The protocol of a reader of recordings, and its reports beside the records: statistics and problems.

A reader never raises for a bad record: it reports a `Problem` with file and line and continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol

from windowpane.core.characters import encodable

if TYPE_CHECKING:
    from windowpane.sources.transcripts.records import Record

MAXIMUM_RECORD_BYTES: Final = 64 * 2**20
MAXIMUM_DOCUMENT_BYTES: Final = 256 * 2**20
EXPERIMENTAL: Final = "experimental, read as its source writes it; no real recording was available"
INDEX: Final = "an index of recordings, which has no content of a window"
MAXIMUM_PROBLEMS: Final = 1_000
"""Problems listed for one file, the last of which reports that there are more."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One defect of a recording."""

    file: str
    line: int | None
    field: str
    problem: str
    severity: Literal["odd", "bad"] = "bad"
    """`bad` was skipped, `odd` was read all the same."""

    def __str__(self) -> str:
        """Return `file:line: field: problem`, without the unknown parts."""
        location = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{location}: {self.field}: {self.problem}" if self.field else f"{location}: {self.problem}"


@dataclass(slots=True)
class FileStats:
    """Raw counts of one recording, as the recording states them; comparable across tools."""

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

    def add_usage(self, **tokens: int) -> None:
        """Add *tokens* to the sums of `usage`, by the format's own names."""
        for name, count in tokens.items():
            self.usage[name] = self.usage.get(name, 0) + count


class Reader(Protocol):
    """Reads one format."""

    format: ClassVar[str]
    """Its name; also the `source` of the events."""

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a file that starts with *head* (at most 64 kB) is of this format."""
        ...

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the file's records in order. Raises `SourceError` only when nothing of it can be read."""
        ...


class ProblemLog:
    """Lists the problems of one file, up to a maximum, and counts bad and odd lines."""

    def __init__(
        self, path: Path, stats: FileStats, problems: list[Problem], *, maximum: int = MAXIMUM_PROBLEMS
    ) -> None:
        self.stats = stats
        self.file = encodable(str(path))
        self._problems = problems
        self._maximum = maximum
        self._listed = 0

    def odd(self, line: int | None, field: str, problem: str) -> None:
        """List something that was read although it is not as expected."""
        self._list(line, field, problem, "odd")

    def unstated(self, what: str, *, sent: int = 0, received: int = 0, dollars: float = 0.0) -> None:
        """List what the recording never states, once per file, and the totals that it states instead."""
        totals = [f"{sent:,} tokens sent"] * bool(sent) + [f"{received:,} received"] * bool(received)
        totals += [f"${dollars:,.2f}"] * bool(dollars)
        instead = f"; its totals: {', '.join(totals)}" if totals else ""
        self._list(None, "", f"the recording does not state {what}{instead}", "odd")

    def experimental(self, form: str) -> None:
        """List a *form* of recording that was built from the source of its tool alone, once per file."""
        self._list(None, "", f"{form}: {EXPERIMENTAL}", "odd")

    def bad_line(self, line: int, problem: str, *, used: bool = False) -> None:
        """List a line other than one JSON object; *used* where its content was read all the same."""
        self.stats.bad_lines += 1
        self._list(line, "", problem, "odd" if used else "bad")

    def odd_line(self, line: int | None, field: str, problem: str) -> None:
        """List a line that is valid JSON, but not a record of this format."""
        self.stats.odd_lines += 1
        self._list(line, field, problem, "bad")

    def _list(self, line: int | None, field: str, problem: str, severity: Literal["odd", "bad"]) -> None:
        self._listed += 1
        if self._listed < self._maximum:
            self._problems.append(Problem(self.file, line, field, problem, severity))
        elif self._listed == self._maximum:
            more = f"more than {self._maximum} problems; the rest is counted and not listed"
            self._problems.append(Problem(self.file, line, "", more))
