"""What a reader of recordings yields, and what it reports.

A reader turns one format into `Record`s: plain statements of what the recording says, in order, without
token counts, window state or ids of ours. `sources.ingest` plays them into a `SessionTracker`. A reader
never raises for a bad record: it notes a `Problem` with file and line and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType

MAXIMUM_RECORD_BYTES = 64 * 2**20
MAXIMUM_DOCUMENT_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The records that follow, until the next of these, belong to this session. May come again to switch back."""

    session_key: str
    """Unique within the format; becomes the session id, prefixed by the format where it is not already unique."""
    agent: str
    model: str = ""
    parent_key: str | None = None
    """The session that delegated to it."""
    limit_tokens: int | None = None
    """Where the recording states its own window."""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """One piece of content entered the window."""

    content_type: ContentType
    text: str | None
    """None where the recording has it redacted or encrypted."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    media: int = 0
    """Images or documents in it, counted at a flat rate each."""
    tokens: int | None = None
    """Where the recording states them."""
    key: str = ""
    """The record's own id, for `Removed.keys`."""
    at: float | None = None
    child_key: str | None = None
    """The session that gave this result, where it was delegated to one."""


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model call came back; its reply's content came before this record."""

    usage: Usage | None
    model: str = ""
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """The agent evicted content by itself, such as old tool results."""

    keys: tuple[str, ...]
    """Tool call ids or content keys; those never seen are legal."""
    policy: str
    tokens_freed: int | None = None
    """As the recording states it."""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """The agent replaced the conversation by a summary."""

    trigger: str
    tokens_before: int | None = None
    """Of the whole window, as the recording states it."""
    tokens_after: int | None = None
    summary: str | None = None
    kept_keys: tuple[str, ...] = ()
    """Content that stayed."""
    keep_last: int | None = None
    """How many of the last content records stayed, where the recording counts instead of naming."""
    duration_seconds: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """The user or agent went on in a new, empty window."""

    at: float | None = None


@dataclass(frozen=True, slots=True)
class LimitStated:
    """The recording states the size of the window."""

    limit_tokens: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The recording says that the session ended, and how."""

    reason: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """The recording of this session stops or breaks here; becomes `session.incomplete`."""

    reason: str
    line: int | None = None


Record = (
    SessionOpened | Content | ModelCalled | Removed | Compacted | Cleared | LimitStated | SessionClosed | Broken
)


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
