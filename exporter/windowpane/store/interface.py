"""The store's interface: append events, read them and their projections.

Everything the dashboard, the report, replay and `serve` need of storage is here, and nothing else: a second
backend implements `EventStore` and every reader works unchanged. Rows are plain frozen data, sorted and paged by
the store so that cost grows with what is shown, not with what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from windowpane.core.events import Event
from windowpane.core.vocabulary import Severity, Zone
from windowpane.exceptions import EventFormatError
from windowpane.store.records import (
    AlertRow,
    BlockRow,
    DamagedEvent,
    ImportOutcome,
    SessionRow,
    StoredEvent,
    StoreSize,
    TurnRow,
    Verification,
)

OnUnreadable = Callable[[int, EventFormatError], object]
"""Hears of stored bytes that are no event: their seq, and what is wrong with them."""


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """What to list; every field narrows, None means any."""

    agent: str | None = None
    model: str | None = None
    source: str | None = None
    zone: Zone | None = None
    severity: Severity | None = None
    live_since: float | None = None
    """Only sessions with an event at or after this time and no end."""
    text: str | None = None
    """Substring of the session id or agent."""
    parent_session_id: str | None = None
    """Only the sub-agents of this session."""
    order: Literal["pressure", "recent", "cost", "regret"] = "pressure"
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events to read; every field narrows, None means any."""

    session_id: str | None = None
    types: tuple[str, ...] = ()
    turn_from: int | None = None
    turn_to: int | None = None
    after_seq: int = 0
    text: str | None = None
    """Full-text search over names and payloads (never over content)."""
    limit: int = 500
    newest_first: bool = False


class EventReader(Protocol):
    """The read side, all that the dashboard, the report and `serve` see."""

    def sessions(self, query: SessionFilter = ...) -> Sequence[SessionRow]:
        """Sessions that match, in the asked order; the current revision of each."""
        ...

    def session(self, session_id: str) -> SessionRow | None:
        """One session, or None."""
        ...

    def find_sessions(self, prefix: str) -> Sequence[SessionRow]:
        """Sessions whose id begins with *prefix*, at most 20."""
        ...

    def turns(self, session_id: str, *, first: int = 1, last: int | None = None) -> Sequence[TurnRow]:
        """The turns of a session in order."""
        ...

    def blocks_at(self, session_id: str, turn: int) -> Sequence[BlockRow]:
        """The exact window at the call of *turn*, in order; the reply of that turn is not part of it."""
        ...

    def removed_blocks(
        self, session_id: str, turn: int, *, limit: int = 500, regretted: bool = False
    ) -> Sequence[BlockRow]:
        """Blocks that had left by the call of *turn*, latest departure first; *regretted*: those needed again."""
        ...

    def events(self, query: EventFilter) -> Sequence[StoredEvent]:
        """Events that match, by `seq`. Raises `EventFormatError` where one of them is damaged."""
        ...

    def events_or_damage(self, query: EventFilter) -> Sequence[StoredEvent | DamagedEvent]:
        """Events that match, by `seq`, damaged ones in their places; for who shows what is still there."""
        ...

    def scan(
        self, *, after_seq: int = 0, batch: int = 1_000, unreadable: OnUnreadable | None = None
    ) -> Iterator[Sequence[StoredEvent]]:
        """Every event of every session from *after_seq* on, in batches; for folds.

        *unreadable* hears of stored bytes that are no event; without it they raise `EventFormatError`.
        """
        ...

    def count_events(self, query: EventFilter) -> int:
        """How many events match, whatever the limit."""
        ...

    def alerts(
        self,
        *,
        session_id: str | None = None,
        alert: str | None = None,
        severity: Severity | None = None,
        firing: bool | None = None,
        limit: int = 500,
    ) -> Sequence[AlertRow]:
        """Firings that match, newest first; *firing* asks for those unresolved, or only for those resolved."""
        ...

    def content(self, digest: str) -> str | None:
        """The captured text of a digest, or None."""
        ...

    def facets(self) -> dict[str, tuple[str, ...]]:
        """Distinct agents, models, sources and event types, for filters."""
        ...

    def size(self) -> StoreSize:
        """How much is stored."""
        ...

    def version(self) -> int:
        """Grows with every write; unchanged means every read would give the same."""
        ...


class EventStore(EventReader, Protocol):
    """The write side. `append` is transactional; several processes may write to one store."""

    def append(self, batch: Sequence[Event]) -> None:
        """Store events in order, or none of them. Raises `StoreError`."""
        ...

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Store a recorded session, given what makes its whole event sequence (called once or twice).

        The same sequence changes nothing, a longer one appends what is new, one whose past differs begins a new
        revision. Raises `StoreError`, and then nothing has changed.
        """
        ...

    def flush(self) -> None:
        """Return only when everything appended so far survives a power cut."""
        ...

    def verify(self, session_id: str | None = None) -> Verification:
        """Recompute the audit chain of one session or of all."""
        ...

    def prune(self, *, before: float | None = None, max_bytes: int | None = None) -> int:
        """Delete whole sessions, oldest first, keeping a tombstone of each; returns how many."""
        ...

    def close(self) -> None:
        """Flush and release everything."""
        ...
