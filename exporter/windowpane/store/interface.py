"""The store's interface: filters, and the protocol of what reads a store.

Everything that the dashboard, the report, replay and `serve` read is in `EventReader`. Rows are plain frozen
data, sorted and paged by the store, so the cost grows with the rows returned, not with the rows stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, Protocol

from windowpane.core.quota import QuotaForecast
from windowpane.core.vocabulary import Severity, Zone
from windowpane.exceptions import EventFormatError
from windowpane.store.records import (
    AlertRow,
    BlockRow,
    Composition,
    DamagedEvent,
    FleetTotals,
    RepeatedDay,
    SessionRow,
    Spending,
    StoredEvent,
    StoreSize,
    ToolUse,
    TrendRow,
    TurnRow,
)

OnUnreadable = Callable[[int, EventFormatError], object]
"""Receives the `seq` of an event that cannot be decoded, and the error."""

FleetOrder = Literal["pressure", "recent", "cost", "regret"]
"""Order of a list of sessions; see `store.fleet`."""


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Filter and order of a list of sessions; every field narrows, None matches all."""

    agent: str | None = None
    model: str | None = None
    source: str | None = None
    zone: Zone | None = None
    severity: Severity | None = None
    live_since: float | None = None
    """Only sessions with an event at or after this time and no end."""
    live_first_since: float | None = None
    """Sessions with an event at or after this time and no end come before the others, whatever the order."""
    at_from: float | None = None
    """Only sessions with an event at or after this time, and one before the next."""
    at_to: float | None = None
    text: str | None = None
    """Substring of the session id, agent, title, folder, repository, branch or label."""
    folder: str | None = None
    """Substring of the working directory; likewise the three below. Case is ignored."""
    repository: str | None = None
    branch: str | None = None
    label: str | None = None
    parent_session_id: str | None = None
    """Only the sub-agents of this session."""
    same_as: str = ""
    """Only the other records of this session; empty for the sessions that are not a record of another."""
    project: str | None = None
    """Only sessions of this project; empty for those without one."""
    projects: tuple[str, ...] | None = None
    """Only sessions of one of these."""
    order: FleetOrder = "pressure"
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter and order of events; every field narrows, None matches all."""

    session_id: str | None = None
    types: tuple[str, ...] = ()
    turn_from: int | None = None
    turn_to: int | None = None
    after_seq: int = 0
    text: str | None = None
    """Full-text search over names and payloads (never over content)."""
    limit: int = 500
    newest_first: bool = False
    before_seq: int | None = None
    at_from: float | None = None
    """First moment of the events, and the first after them, in seconds since the epoch."""
    at_to: float | None = None
    projects: tuple[str, ...] | None = None
    """Only events of sessions of one of these projects."""

    @property
    def times(self) -> tuple[float, float] | None:
        """The first moment and the first one after the events; None for all, with and without a time."""
        if self.at_from is None and self.at_to is None:
            return None
        return (-inf if self.at_from is None else self.at_from, inf if self.at_to is None else self.at_to)


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Filter of the firings of alerts, newest first; every field narrows, None matches all."""

    session_id: str | None = None
    alert: str | None = None
    severity: Severity | None = None
    firing: bool | None = None
    """Only the unresolved firings, or only the resolved ones."""
    live_since: float | None = None
    """Only firings of sessions with an event at or after this time and no end."""
    silent_since: float | None = None
    """Only firings of all other sessions."""
    at_from: float | None = None
    """First moment of the firings, and the first after them, in seconds since the epoch."""
    at_to: float | None = None
    projects: tuple[str, ...] | None = None
    """Only firings in sessions of one of these projects."""
    limit: int = 500


ALL_ALERTS: Final = AlertFilter()


class EventReader(Protocol):
    """The read side: everything that the dashboard, the report and `serve` use."""

    def sessions(self, query: SessionFilter = ...) -> Sequence[SessionRow]:
        """Return the current revision of each session that matches, in the order of *query*."""
        ...

    def fleet_totals(self, query: SessionFilter, *, live_since: float) -> FleetTotals:
        """Return the sums over all sessions that match, whatever the limit of *query*.

        A session is live that has an event at or after *live_since* and no end.
        """
        ...

    def session(self, session_id: str) -> SessionRow | None:
        """Return one session, or None."""
        ...

    def find_sessions(self, prefix: str) -> Sequence[SessionRow]:
        """Return the sessions whose id starts with *prefix*, at most 20."""
        ...

    def turns(self, session_id: str, *, first: int = 1, last: int | None = None) -> Sequence[TurnRow]:
        """Return the turns of a session in order."""
        ...

    def blocks_at(self, session_id: str, turn: int) -> Sequence[BlockRow]:
        """Return the exact window at the call of *turn*, in order; the reply of that turn is not part of it."""
        ...

    def removed_blocks(
        self, session_id: str, turn: int, *, limit: int = 500, regretted: bool = False
    ) -> Sequence[BlockRow]:
        """Return the blocks removed before the call of *turn*, latest first; *regretted*: those needed again."""
        ...

    def events(self, query: EventFilter) -> Sequence[StoredEvent]:
        """Return the events that match, by `seq`. Raises `EventFormatError` where one of them is damaged."""
        ...

    def events_or_damage(self, query: EventFilter) -> Sequence[StoredEvent | DamagedEvent]:
        """Return the events that match, by `seq`, with a `DamagedEvent` for each that cannot be read."""
        ...

    def scan(
        self, *, after_seq: int = 0, batch: int = 1_000, on_unreadable: OnUnreadable | None = None
    ) -> Iterator[Sequence[StoredEvent]]:
        """Yield every event of every session after *after_seq*, in batches; for folds.

        Unreadable events are passed to *on_unreadable*; without it they raise `EventFormatError`.
        """
        ...

    def count_events(self, query: EventFilter) -> int:
        """Return the number of events that match, whatever the limit."""
        ...

    def alerts(self, query: AlertFilter = ...) -> Sequence[AlertRow]:
        """Return the firings that match, newest first."""
        ...

    def content(self, digest: str) -> str | None:
        """Return the captured text of a digest, or None."""
        ...

    def facets(self, *, projects: tuple[str, ...] | None = None) -> dict[str, tuple[str, ...]]:
        """Return the distinct agents, models, sources and event types, for filters."""
        ...

    def tool_use(self, session_id: str, *, limit: int = 200) -> Sequence[ToolUse]:
        """Return the tools, files and commands of a session, those carried through most calls first."""
        ...

    def tool_leaderboard(
        self,
        *,
        by_target: bool = True,
        projects: tuple[str, ...] | None = None,
        since: float | None = None,
        limit: int = 10,
    ) -> Sequence[ToolUse]:
        """Return the tools, or their files and commands, that cost most in the latest 200 sessions.

        With *since*, only of sessions with an event at or after this time.
        """
        ...

    def quotas(self, *, now: float) -> Sequence[QuotaForecast]:
        """Return the windows of plans that have not ended, the one that runs out first at the head."""
        ...

    def spending(self, *, since: float, projects: tuple[str, ...] | None = None) -> Sequence[Spending]:
        """Return the cost since *since* of each session with a later event."""
        ...

    def composition(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        repository: str | None = None,
        projects: tuple[str, ...] | None = None,
    ) -> Composition:
        """Return the content by name of a session, else of the latest 1,000 sessions since *since*.

        *repository* is the name as `Composition.repositories` has it.
        """
        ...

    def trends(
        self, *, days: int, until: int | None = None, projects: tuple[str, ...] | None = None
    ) -> Sequence[TrendRow]:
        """Return the sums by day, agent, model and release of the *days* up to *until* (days since the epoch)."""
        ...

    def repeated_days(
        self, *, days: int, until: int, projects: tuple[str, ...] | None = None
    ) -> Sequence[RepeatedDay]:
        """Return the sessions that `trends` of the same *days* counts on several rows, with these rows."""
        ...

    def size(self) -> StoreSize:
        """Return how much is stored."""
        ...

    def version(self) -> int:
        """Return a number that grows with every write; unchanged, every read returns the same."""
        ...
