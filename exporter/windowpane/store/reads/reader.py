"""The read side: every read runs on an index, inside one snapshot of the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from windowpane.core.agents import NO_EARLIER_SESSIONS, EarlierSessions, EvidentWindow, SessionEvidence
from windowpane.core.digests import keyed_digester
from windowpane.core.events import NoteAdded, SessionStarted
from windowpane.core.protocols import Digester
from windowpane.core.store_names import StoreName
from windowpane.store import captured_content, events
from windowpane.store.database import Engine
from windowpane.store.filters import ALL_ALERTS, AlertFilter, EventFilter, OnUnreadable, SessionFilter
from windowpane.store.projections import alerts, turns
from windowpane.store.projections.trends import TrendReads
from windowpane.store.reads import fleet
from windowpane.store.reads.earlier_sessions import LAST_MOMENT, AgentHistory
from windowpane.store.reads.event_records import CopyReads
from windowpane.store.reads.notes import MAXIMUM_EVENTS, NOTE_EVENTS, Note, notes_of
from windowpane.store.records import (
    AlertRow,
    BlockRow,
    Composition,
    DamagedEvent,
    FleetTotals,
    SessionRow,
    Spending,
    StoredEvent,
    StoreSize,
    ToolUse,
    TurnRow,
    intact_events,
)
from windowpane.store.search import content as content_search
from windowpane.store.search import content_index
from windowpane.store.search import events as search
from windowpane.store.statements import END

if TYPE_CHECKING:  # reads that few programs make are loaded when they are made
    from windowpane.core.quota import QuotaForecast
    from windowpane.store.reads.block_life import BlockLife
    from windowpane.store.reads.export import ExportFormat, ExportRow
    from windowpane.store.registry import Endpoint
    from windowpane.store.replays import ReplayRow, StoredReplay

ALL_SESSIONS: Final = SessionFilter()


class Reader(CopyReads, TrendReads):
    """Reads a database that it never writes to. Safe to share between threads.

    Rows are plain frozen data, sorted and paged by the database, so the cost grows with the rows returned, not
    with the rows stored.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def engine(self) -> Engine:
        """The database, for what reads or writes its tables directly: a copy."""
        return self._engine

    @property
    def name(self) -> str:
        """The store as messages name it, without any password."""
        return str(self._engine.address)

    @property
    def address(self) -> StoreName:
        """The store's name, for opening it again."""
        return self._engine.address

    def identity(self) -> object:
        """Return a value that differs where another store has taken the place of this one."""
        return self._engine.identity()

    # -- sessions, turns and blocks ---------------------------------------------------------------------------

    def sessions(self, query: SessionFilter = ALL_SESSIONS) -> Sequence[SessionRow]:
        """Return the current revision of each session that matches, in the order of *query*."""
        with self._engine.lend() as connection:
            return fleet.listed(connection, query)

    def fleet_totals(self, query: SessionFilter, *, live_since: float) -> FleetTotals:
        """Return the sums over all sessions that match, whatever the limit of *query*.

        A session is live that has an event at or after *live_since* and no end.
        """
        with self._engine.lend() as connection:
            return fleet.totals(connection, query, live_since)

    def session(self, session_id: str, *, projects: tuple[str, ...] | None = None) -> SessionRow | None:
        """Return one session, or None; None also where it is not of *projects*."""
        with self._engine.lend() as connection:
            return fleet.read(connection, session_id, projects)

    def unidentified_record(self, session_id: str) -> tuple[str, str] | None:
        """Return the id and source of a session that may be the same, if no id in one of them could show it."""
        with self._engine.lend() as connection:
            return fleet.unidentified(connection, session_id)

    def last_compaction_tokens(self, agent: str, model: str, *, project: str = "") -> int | None:
        """Return the level at which the agent's last session with a recorded compaction was compacted."""
        with self._engine.lend() as connection:
            return AgentHistory(connection, agent, model, project).compaction_tokens()

    def earlier_sessions(
        self,
        session_id: str,
        *,
        agent: str,
        model: str,
        started_at: float | None = None,
        project: str = "",
        folder: str = "",
        pending: Sequence[SessionEvidence] = (),
    ) -> EarlierSessions:
        """Return what the agent's sessions with this model in the project were evidence for at *started_at*.

        The size of the window is that of sessions in the same *folder*. Sessions that took place later do not
        count, in whatever order they were stored; *pending* ones count as if they were stored. A stored session
        keeps what it started with, so that reading its recording again gives the same events.
        """
        if self.session(session_id) is not None:
            started = self.events(EventFilter(session_id=session_id, types=("session.started",), limit=1))
            payloads = (stored.event.data for stored in started)
            return next(
                (
                    EarlierSessions(
                        one.earlier_compaction_tokens,
                        one.earlier_base_tokens,
                        is_stored=True,
                        stated_tokens=one.stated_compaction_tokens,
                        window=_window_at_start(one),
                    )
                    for one in payloads
                    if isinstance(one, SessionStarted)
                ),
                NO_EARLIER_SESSIONS,
            )
        before = LAST_MOMENT if started_at is None else started_at
        with self._engine.lend() as connection:
            history = AgentHistory(connection, agent, model, project, before, pending)
            return EarlierSessions(
                history.compaction_tokens(), history.base_tokens(), window=history.window(folder)
            )

    def stored_project(self, session_id: str) -> str | None:
        """Return the project that a session's own stream names first; None for a session that is not stored."""
        with self._engine.lend() as connection:
            return fleet.stated_project(connection, session_id)

    def find_sessions(self, prefix: str, *, projects: tuple[str, ...] | None = None) -> Sequence[SessionRow]:
        """Return the sessions whose id starts with *prefix*, at most 20."""
        with self._engine.lend() as connection:
            return fleet.find(connection, prefix, projects)

    def turns(self, session_id: str, *, first: int = 1, last: int | None = None) -> Sequence[TurnRow]:
        """Return the turns of a session in order."""
        with self._engine.lend() as connection:
            key = fleet.current_key(connection, session_id)
            return turns.read(connection, key, first, END if last is None else last)

    def blocks_at(self, session_id: str, turn: int) -> Sequence[BlockRow]:
        """Return the exact window at the call of *turn*, in order; the reply of that turn is not part of it."""
        from windowpane.store.reads import blocks

        with self._engine.lend() as connection:
            return blocks.window_at(connection, fleet.current_key(connection, session_id), turn)

    def removed_blocks(
        self, session_id: str, turn: int, *, limit: int = 500, regretted: bool = False
    ) -> Sequence[BlockRow]:
        """Return the blocks removed before the call of *turn*, latest first; *regretted*: those needed again."""
        from windowpane.store.reads import blocks

        with self._engine.lend() as connection:
            key = fleet.current_key(connection, session_id)
            return blocks.removed_before(connection, key, turn, limit=limit, regretted=regretted)

    def notes(self, session_id: str) -> list[Note]:
        """Return the notes and bookmarks of a session that are not deleted, by turn."""
        query = EventFilter(session_id=session_id, types=NOTE_EVENTS, limit=MAXIMUM_EVENTS)
        return notes_of(intact_events(self.events_or_damage(query)))

    def find_notes(
        self,
        text: str,
        *,
        session_id: str | None = None,
        projects: tuple[str, ...] | None = None,
        limit: int = 20,
    ) -> list[Note]:
        """Return the latest notes that contain every word of *text*, of which the last may be a prefix."""
        phrase = text.replace('"', " ")
        query = EventFilter(
            session_id, (NOTE_EVENTS[0],), text=phrase, limit=limit, newest_first=True, projects=projects
        )
        added = [one.event for one in reversed(intact_events(self.events_or_damage(query)))]
        remaining = {
            note.note_id: note
            for session in {event.context.session_id for event in added}
            for note in self.notes(session)
        }
        ids = dict.fromkeys(event.data.note_id for event in added if isinstance(event.data, NoteAdded))
        return [remaining[note_id] for note_id in ids if note_id in remaining]

    def block_life(self, session_id: str, block_id: str) -> BlockLife | None:
        """Return how a block was added, used, removed, replaced and fetched again; None for an unknown one."""
        from windowpane.store.reads import block_life

        with self._engine.lend() as connection:
            return block_life.read(connection, fleet.current_key(connection, session_id), block_id)

    # -- events -----------------------------------------------------------------------------------------------

    def events(self, query: EventFilter) -> Sequence[StoredEvent]:
        """Return the events that match, by `seq`; of a named session, those of its current revision.

        Raises `EventFormatError` where one of them is damaged.
        """
        return [events.stored_event(row) for row in self._find(query, events.EVENT_COLUMNS)]

    def events_or_damage(self, query: EventFilter) -> Sequence[StoredEvent | DamagedEvent]:
        """Return the events that match, by `seq`, with a `DamagedEvent` for each that cannot be read."""
        return [events.event_or_damage(row) for row in self._find(query, events.AUDIT_COLUMNS)]

    def export_batches(self, query: EventFilter) -> Iterator[list[ExportRow]]:
        """Yield every event that matches, whatever the limit, in batches by `seq`; for exports."""
        from windowpane.store.reads import export

        size = search.MAXIMUM_HITS if query.text else export.BATCH  # a search finds that many at once anyway
        while True:
            limited = replace(query, limit=size, newest_first=False)
            batch = [export.ExportRow(*row) for row in self._find(limited, export.COLUMNS)]
            if batch:
                yield batch
            if len(batch) < size:
                return
            query = replace(query, after_seq=batch[-1].seq)

    def count_events(self, query: EventFilter) -> int:
        """Return the number of events that match, whatever the limit."""
        with self._engine.lend() as connection:
            scope = events.scope_of(connection, query)
            if scope is None:
                return 0
            count = search.count if query.text else events.count
            return count(connection, query, scope)

    def scan(
        self, *, after_seq: int = 0, batch: int = 1_000, on_unreadable: OnUnreadable | None = None
    ) -> Iterator[Sequence[StoredEvent]]:
        """Yield every event of every session and revision after *after_seq*, in batches; for folds.

        Unreadable events are passed to *on_unreadable* and skipped, so a batch may be empty; without it they
        raise `EventFormatError`.
        """
        while True:
            with self._engine.lend() as connection:
                rows = events.scan_batch(connection, after_seq, batch)
            if not rows:
                return
            after_seq = rows[-1][0]
            yield list(events.stored_events(rows, on_unreadable))

    # -- everything else --------------------------------------------------------------------------------------

    def alerts(self, query: AlertFilter = ALL_ALERTS) -> Sequence[AlertRow]:
        """Return the firings that match, newest first."""
        with self._engine.lend() as connection:
            session = None if query.session_id is None else fleet.current_key(connection, query.session_id)
            return alerts.listed(connection, query, session)

    def content(self, digest: str) -> str | None:
        """Return the captured text of a digest, or None."""
        with self._engine.lend() as connection:
            return captured_content.read(connection, digest)

    def find_content(self, query: content_search.ContentFilter) -> content_search.ContentHits:
        """Return the captured texts that match, the latest first, with the blocks that held them."""
        with self._engine.lend() as connection:
            session = None if query.session_id is None else fleet.current_key(connection, query.session_id)
            return content_search.find(connection, query, session)

    def facets(self, *, projects: tuple[str, ...] | None = None) -> dict[str, tuple[str, ...]]:
        """Return the distinct agents, models, sources and event types, for filters."""
        with self._engine.lend() as connection:
            return fleet.facets(connection, projects)

    def project_names(self) -> Sequence[str]:
        """Return the projects that sessions belong to, by name."""
        with self._engine.lend() as connection:
            return fleet.project_names(connection)

    def tool_use(self, session_id: str, *, limit: int = 200) -> list[ToolUse]:
        """Return the tools, files and commands of a session, those carried through most calls first."""

        from windowpane.store.reads import tool_use

        with self._engine.lend() as connection:
            return tool_use.of_session(connection, fleet.current_key(connection, session_id), limit=limit)

    def tool_leaderboard(
        self,
        *,
        projects: tuple[str, ...] | None = None,
        since: float | None = None,
        sessions: Sequence[int] | None = None,
        limit: int = 10,
    ) -> list[ToolUse]:
        """Return the tools with their files and commands that cost most in the latest 200 (of) *sessions*."""

        from windowpane.store.reads import tool_use

        with self._engine.lend() as connection:
            return tool_use.of_sessions(
                connection, projects=projects, since=since, sessions=sessions, limit=limit
            )

    def composition(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        repository: str | None = None,
        projects: tuple[str, ...] | None = None,
    ) -> Composition:
        """Return the content by name of a session, else of the latest 1,000 sessions since *since*."""
        from windowpane.store.reads import composition

        with self._engine.lend() as connection:
            if session_id is not None:
                return composition.of_session(connection, fleet.current_key(connection, session_id))
            return composition.of_range(connection, since=since, repository=repository, projects=projects)

    def quotas(self, *, now: float) -> list[QuotaForecast]:
        """Return the windows of plans that have not ended, the one that runs out first at the head."""
        from windowpane.core.quota import QuotaReading, quota_forecasts
        from windowpane.store import quotas

        with self._engine.lend() as connection:
            rows = quotas.unexpired(connection, now)
        readings = (
            QuotaReading(agent, minutes, ends, percent / 100, at) for agent, minutes, ends, percent, at in rows
        )
        return quota_forecasts(readings, now=now)

    def spending(
        self, *, since: float, projects: tuple[str, ...] | None = None, roots: Sequence[str] | None = None
    ) -> list[Spending]:
        """Return the cost since *since* of each session with a later event.

        With *roots*, only of these sessions and their sub-agents.
        """
        from windowpane.store.reads import spending

        with self._engine.lend() as connection:
            return spending.since(connection, since, projects, roots)

    def size(self) -> StoreSize:
        """Return how much is stored."""
        with self._engine.lend() as connection:
            (events,) = connection.execute("SELECT coalesce(sum(events), 0) FROM event_types").fetchone()
            (sessions,) = connection.execute(
                f"SELECT count(*) FROM sessions WHERE current = 1 AND {fleet.LISTED}"  # noqa: S608
            ).fetchone()
            return StoreSize(
                events=int(events),
                sessions=sessions,
                bytes=self._engine.stored_bytes(connection),
                contents=content_index.counts(connection).all,
            )

    def version(self) -> int:
        """Return a number that grows with every write of any process."""
        return int(self._store_column("writes"))

    def has_changed_since(self, version: int) -> bool:
        """Return whether there was a write after *version*; a database that announces writes is not asked."""
        announced = self._engine.announced_version()
        return self.version() != version if announced is None else announced > version

    def digester(self) -> Digester:
        """Return the function that makes this store's digests, keyed so they reveal nothing across stores."""
        return keyed_digester(self.digest_key())

    def digest_key(self) -> bytes:
        """Return the key of this store's digests, for a process that works for this one."""
        key: bytes = self._store_column("digest_key")
        return key

    def copy_identity(self) -> str:
        """Return a name that no other store has, for copies: a digest with this store's key."""
        return self.digester()("windowpane.store")

    def load_metric_base(self) -> bytes | None:
        """Return the metric counters of the sessions that retention deleted; None before the first."""
        base: bytes | None = self._store_column("metric_base")
        return base

    def replays(self, *, limit: int = 50) -> list[ReplayRow]:
        """Return the latest policy replays, newest first."""
        from windowpane.store import replays

        with self._engine.lend() as connection:
            return replays.latest(connection, limit)

    def replay(self, replay_id: str) -> StoredReplay | None:
        """Return a policy replay with its runs and their timelines, or None."""
        from windowpane.store import replays

        with self._engine.lend() as connection:
            return replays.read(connection, replay_id)

    def endpoints(self) -> Sequence[Endpoint]:
        """Return the registered `/metrics` endpoints, oldest first."""

        from windowpane.store import registry

        with self._engine.lend() as connection:
            return registry.endpoints(connection)

    def export(
        self,
        file: str | Path,
        *,
        form: ExportFormat = "jsonl",
        session_id: str | None = None,
        project: str | None = None,
    ) -> int:
        """Write all events, or those of a session or project, to a file; return how many. Raises `StoreError`."""
        from windowpane.store.reads import export

        if session_id is None and project is not None:
            batches = self.export_batches(EventFilter(projects=(project,)))
        else:
            batches = export.read_batches(self._read, session_id)
        write = export.write_parquet if form == "parquet" else export.write_json_lines
        return write(batches, Path(file))

    def close(self) -> None:
        """Close the connections."""
        with self._engine.reporting():
            self._engine.close_readers()

    # -- internals --------------------------------------------------------------------------------------------

    def _find(self, query: EventFilter, columns: str) -> list[tuple[Any, ...]]:
        with self._engine.lend() as connection:
            scope = events.scope_of(connection, query)
            if scope is None:
                return []
            find = search.find if query.text else events.find
            return find(connection, query, scope, columns)

    def _read(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._engine.lend() as connection:
            return connection.execute(sql, values).fetchall()

    def _store_column(self, name: str) -> Any:
        return self._read(f"SELECT {name} FROM store")[0][0]  # noqa: S608  # our columns


def _window_at_start(started: SessionStarted) -> EvidentWindow | None:
    """Return the window that the session started with, if its recording does not show its size."""
    tokens, source = started.limit_tokens, started.limit_source
    is_evident = tokens is not None and source in ("settings", "status_line", "earlier")
    return EvidentWindow(tokens, source) if tokens is not None and source is not None and is_evident else None
