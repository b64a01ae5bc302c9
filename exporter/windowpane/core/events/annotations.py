"""Facts added to a recorded session: notes and titles by its readers, its identity and its runs by the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal


@dataclass(frozen=True, slots=True)
class NoteAdded:
    """A reader of the session added a note or a bookmark to the event's turn."""

    type: ClassVar[str] = "note.added"
    note_id: str
    note: str
    """The text: redacted, at most 2,000 characters; may be empty for a bookmark."""
    kind: Literal["note", "bookmark"] = "note"


@dataclass(frozen=True, slots=True)
class NoteDeleted:
    """A reader deleted a note or bookmark; the event that added it stays in the record."""

    type: ClassVar[str] = "note.deleted"
    note_id: str


@dataclass(frozen=True, slots=True)
class SessionTitled:
    """A reader gave the session a title, which replaces that of the recording."""

    type: ClassVar[str] = "session.titled"
    title: str


@dataclass(frozen=True, slots=True)
class SessionIdentified:
    """The store recognized the session as one that another source records too, which counts for both."""

    type: ClassVar[str] = "session.identified"
    same_as: str
    """Id of the session that counts."""
    by: Literal["call", "id"]
    """The evidence: a model call that is in both, or the id that the agent gave its session."""


@dataclass(frozen=True, slots=True)
class CallsCopied:
    """The store recognized turns as a copy of those of another session, which counts their calls."""

    type: ClassVar[str] = "calls.copied"
    of: str
    """Id of the session that counts them."""
    first_turn: int
    last_turn: int
    """The turns, all of which follow in the record."""

    def covers(self, turn: int) -> bool:
        """Return whether *turn* is one of them."""
        return self.first_turn <= turn <= self.last_turn


@dataclass(frozen=True, slots=True)
class SessionContinued:
    """The session was recorded again, by another process or window, and continues where its record ended."""

    type: ClassVar[str] = "session.continued"
    run: str
    """Stream of the run that continues the session."""
    number: int
    """Number of the run; 1 is the session's first."""
    from_turn: int
    """Turn from which on this applies, as the run counts."""
    turns: int
    """Turns before the run's first: its own numbers are increased by so many."""
    windows: int
    exchanges: int
    interleaved: bool = False
    """Another run records the session at the same time, and both windows remain."""


ANNOTATIONS: Final = (
    NoteAdded.type,
    NoteDeleted.type,
    SessionTitled.type,
    SessionIdentified.type,
    CallsCopied.type,
)
"""Types of the events that are added to a session at any later time: nothing happened in it then."""
