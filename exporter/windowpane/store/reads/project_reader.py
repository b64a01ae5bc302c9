"""A reader of the sessions of some projects only, as if the store held nothing else.

Every page, search, download and address of a visitor who may see only some projects uses it. A method that
is missing here does not exist for such a visitor: each new read has to be added, with its restriction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TypeAlias

from windowpane.core.quota import QuotaForecast
from windowpane.store.filters import ALL_ALERTS, AlertFilter, EventFilter, OnUnreadable, SessionFilter
from windowpane.store.reads.block_life import BlockLife
from windowpane.store.reads.export import ExportRow
from windowpane.store.reads.notes import Note
from windowpane.store.reads.reader import ALL_SESSIONS, Reader
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
from windowpane.store.replays import MAXIMUM_REPLAYS, ReplayRow, StoredReplay
from windowpane.store.search.content import ContentFilter, ContentHits


class ProjectReader:
    """The sessions of *projects* in a store; the empty name is that of sessions without a project."""

    def __init__(self, reader: Reader, projects: Sequence[str]) -> None:
        self._reader = reader
        self.projects = tuple(projects)

    # -- sessions ---------------------------------------------------------------------------------------------

    def sessions(self, query: SessionFilter = ALL_SESSIONS) -> Sequence[SessionRow]:
        """Return the sessions that match, in the order of *query*."""
        return self._reader.sessions(self._narrowed(query))

    def fleet_totals(self, query: SessionFilter, *, live_since: float) -> FleetTotals:
        """Return the sums over all sessions that match, whatever the limit of *query*."""
        return self._reader.fleet_totals(self._narrowed(query), live_since=live_since)

    def session(self, session_id: str) -> SessionRow | None:
        """Return one session; None also for one of another project."""
        return self._reader.session(session_id, projects=self.projects)

    def find_sessions(self, prefix: str) -> Sequence[SessionRow]:
        """Return the sessions whose id starts with *prefix*."""
        return self._reader.find_sessions(prefix, projects=self.projects)

    # -- one session ------------------------------------------------------------------------------------------

    def turns(self, session_id: str, *, first: int = 1, last: int | None = None) -> Sequence[TurnRow]:
        """Return the turns of a session in order."""
        return self._reader.turns(session_id, first=first, last=last) if self._holds(session_id) else ()

    def blocks_at(self, session_id: str, turn: int) -> Sequence[BlockRow]:
        """Return the exact window at the call of *turn*, in order."""
        return self._reader.blocks_at(session_id, turn) if self._holds(session_id) else ()

    def removed_blocks(
        self, session_id: str, turn: int, *, limit: int = 500, regretted: bool = False
    ) -> Sequence[BlockRow]:
        """Return the blocks removed before the call of *turn*, latest first."""
        if not self._holds(session_id):
            return ()
        return self._reader.removed_blocks(session_id, turn, limit=limit, regretted=regretted)

    def block_life(self, session_id: str, block_id: str) -> BlockLife | None:
        """Return the life of a block, or None."""
        return self._reader.block_life(session_id, block_id) if self._holds(session_id) else None

    def tool_use(self, session_id: str, *, limit: int = 200) -> list[ToolUse]:
        """Return the tools, files and commands of a session."""
        return self._reader.tool_use(session_id, limit=limit) if self._holds(session_id) else []

    def notes(self, session_id: str) -> list[Note]:
        """Return the notes and bookmarks of a session."""
        return self._reader.notes(session_id) if self._holds(session_id) else []

    # -- across sessions --------------------------------------------------------------------------------------

    def events(self, query: EventFilter) -> Sequence[StoredEvent]:
        """Return the events that match, by `seq`."""
        return self._reader.events(replace(query, projects=self._visible(query.projects)))

    def events_or_damage(self, query: EventFilter) -> Sequence[StoredEvent | DamagedEvent]:
        """Return the events that match, by `seq`, with a `DamagedEvent` for each that cannot be read."""
        return self._reader.events_or_damage(replace(query, projects=self._visible(query.projects)))

    def export_batches(self, query: EventFilter) -> Iterator[list[ExportRow]]:
        """Yield every event that matches, in batches by `seq`."""
        return self._reader.export_batches(replace(query, projects=self._visible(query.projects)))

    def count_events(self, query: EventFilter) -> int:
        """Return the number of events that match."""
        return self._reader.count_events(replace(query, projects=self._visible(query.projects)))

    def scan(
        self, *, after_seq: int = 0, batch: int = 1_000, on_unreadable: OnUnreadable | None = None
    ) -> Iterator[Sequence[StoredEvent]]:
        """Yield every event of these projects' sessions after *after_seq*, in batches, which may be empty."""
        holds = cache(self._holds)
        for events in self._reader.scan(after_seq=after_seq, batch=batch, on_unreadable=on_unreadable):
            yield [one for one in events if holds(one.event.context.session_id)]

    def find_notes(self, text: str, *, session_id: str | None = None, limit: int = 20) -> list[Note]:
        """Return the latest notes that contain all words of *text*."""
        return self._reader.find_notes(text, session_id=session_id, limit=limit, projects=self.projects)

    def find_content(self, query: ContentFilter) -> ContentHits:
        """Return the captured texts that match, with the blocks that held them in these projects' sessions."""
        if query.session_id is not None and not self._holds(query.session_id):
            return ContentHits((), is_whole=True, texts=None, waiting=0)
        result = self._reader.find_content(replace(query, projects=self._visible(query.projects)))
        return replace(result, texts=None, waiting=0)

    def content(self, digest: str) -> str | None:
        """Return the captured text of a digest that an event of these projects' sessions names, or None."""
        mentions = EventFilter(text=digest, limit=1, newest_first=True, projects=self.projects)
        return self._reader.content(digest) if self._reader.events_or_damage(mentions) else None

    def alerts(self, query: AlertFilter = ALL_ALERTS) -> Sequence[AlertRow]:
        """Return the firings that match, newest first."""
        return self._reader.alerts(replace(query, projects=self._visible(query.projects)))

    def facets(self) -> dict[str, tuple[str, ...]]:
        """Return the distinct agents, models, sources and event types, for filters."""
        return self._reader.facets(projects=self.projects)

    def project_names(self) -> Sequence[str]:
        """Return the visible projects, also those without a session."""
        return [name for name in self.projects if name]

    def tool_leaderboard(
        self, *, since: float | None = None, sessions: Sequence[int] | None = None, limit: int = 10
    ) -> list[ToolUse]:
        """Return the tools with their files and commands that cost most in the latest (of the) *sessions*."""
        return self._reader.tool_leaderboard(limit=limit, since=since, sessions=sessions, projects=self.projects)

    def quotas(self, *, now: float) -> list[QuotaForecast]:  # noqa: ARG002  # as a reader of all
        """Return nothing: a plan belongs to no project."""
        return []

    def spending(
        self, *, since: float, projects: tuple[str, ...] | None = None, roots: Sequence[str] | None = None
    ) -> list[Spending]:
        """Return the cost since *since* of each session of these projects with a later event."""
        return self._reader.spending(since=since, projects=self._visible(projects), roots=roots)

    def composition(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        repository: str | None = None,
        projects: tuple[str, ...] | None = None,
    ) -> Composition:
        """Return the content by name of a session, or of the latest sessions of these projects."""
        if session_id is not None:
            return self._reader.composition(session_id) if self._holds(session_id) else Composition((), 0, 0)
        return self._reader.composition(since=since, repository=repository, projects=self._visible(projects))

    def trends(
        self, *, days: int, until: int | None = None, projects: tuple[str, ...] | None = None
    ) -> list[TrendRow]:
        """Return the sums by day, agent, model and release."""
        return self._reader.trends(days=days, until=until, projects=self._visible(projects))

    def trends_of(self, sessions: Sequence[int], *, days: int, until: int) -> list[TrendRow]:
        """Return the `trends` of those of the sessions that belong to these projects."""
        return self._reader.trends_of(sessions, days=days, until=until, projects=self.projects)

    def repeated_days(self, *, days: int, until: int) -> list[RepeatedDay]:
        """Return the sessions that `trends` of the same *days* counts on several rows, with these rows."""
        return self._reader.repeated_days(days=days, until=until, projects=self.projects)

    def size(self) -> StoreSize:
        """Return the sessions and events of these projects; their part of the texts and bytes is unknown."""
        sessions = self._reader.fleet_totals(self._narrowed(ALL_SESSIONS), live_since=0.0).sessions
        return StoreSize(events=self.count_events(EventFilter()), sessions=sessions, bytes=0)

    def version(self) -> int:
        """Return a number that grows with every write of any process."""
        return self._reader.version()

    def has_changed_since(self, version: int) -> bool:
        """Return whether there was a write after *version*, of any process."""
        return self._reader.has_changed_since(version)

    # -- replays ----------------------------------------------------------------------------------------------

    def replays(self, *, limit: int = 50) -> list[ReplayRow]:
        """Return the latest policy replays of these projects' sessions, newest first."""
        rows = self._reader.replays(limit=MAXIMUM_REPLAYS)
        visible = (stored.row for row in rows if (stored := self.replay(row.id)) is not None)
        return list(islice(visible, limit))

    def replay(self, replay_id: str) -> StoredReplay | None:
        """Return a policy replay; None also where one of its sessions is not of these projects.

        Sessions that could not be replayed may be of any project, so they are not named.
        """
        stored = self._reader.replay(replay_id)
        if stored is None or not stored.runs or not all(self._holds(run.session) for run in stored.runs):
            return None
        sessions = {run.session for run in stored.runs}
        return replace(stored, row=replace(stored.row, sessions=len(sessions), notes=()))

    # -- internals --------------------------------------------------------------------------------------------

    def _holds(self, session_id: str) -> bool:
        return self.session(session_id) is not None

    def _visible(self, projects: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return those of the wanted projects that are visible; None wants all."""
        return self.projects if projects is None else tuple(name for name in projects if name in self.projects)

    def _narrowed(self, query: SessionFilter) -> SessionFilter:
        return replace(query, projects=self._visible(query.projects))


EventReader: TypeAlias = Reader | ProjectReader
"""The read side of a store: everything that the dashboard, the report and replay use."""
