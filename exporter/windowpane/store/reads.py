"""The read side over SQLite: every page's questions, each answered from an index inside one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import Severity
from windowpane.exceptions import OlderStoreError, StoreError
from windowpane.store import contents, export, migrations, registry, rows, search
from windowpane.store import replays as stored_replays
from windowpane.store.block_projection import IN_WINDOW
from windowpane.store.connection import ReaderPool, reporting
from windowpane.store.interface import EventFilter, OnUnreadable, SessionFilter
from windowpane.store.queries import EventScope, alert_query, event_count, event_query, session_query
from windowpane.store.records import AlertRow, BlockRow, DamagedEvent, SessionRow, StoredEvent, StoreSize, TurnRow

MAXIMUM_FOUND_SESSIONS: Final = 20

_KEY: Final = "SELECT key FROM sessions WHERE session_id = ? AND current = 1"
_EXTENT: Final = "SELECT key, events FROM sessions WHERE session_id = ? AND current = 1"
_SESSION: Final = f"SELECT {rows.SESSION_COLUMNS} FROM sessions WHERE session_id = ? AND current = 1"  # noqa: S608
_FIND: Final = (
    f"SELECT {rows.SESSION_COLUMNS} FROM sessions WHERE session_id >= ? AND session_id < ? "  # noqa: S608
    f"AND current = 1 ORDER BY session_id LIMIT {MAXIMUM_FOUND_SESSIONS}"
)
_TURNS: Final = (
    f"SELECT {rows.TURN_COLUMNS} FROM turns WHERE session = ? AND turn >= ? AND turn <= ? ORDER BY turn"  # noqa: S608
)
_TURN_AT: Final = (
    "SELECT turn, first_seq, call_seq FROM turns WHERE session = ? AND turn <= ? ORDER BY turn DESC LIMIT 1"
)
_FIRST_SEQ: Final = "SELECT first_seq FROM turns WHERE session = ? AND turn >= ? ORDER BY turn LIMIT 1"
_BLOCKS: Final = f"SELECT {rows.BLOCK_COLUMNS} FROM blocks AS b JOIN events AS e ON e.seq = b.event_seq "  # noqa: S608
_BLOCKS_AT: Final = (
    _BLOCKS + "WHERE b.session = ? AND b.left_seq > ? AND b.entered_seq <= ? ORDER BY b.position, b.event_seq"
)
_BLOCKS_LEFT: Final = (
    _BLOCKS + "WHERE b.session = ? AND b.left_seq <= ? ORDER BY b.left_seq DESC, b.event_seq DESC LIMIT ?"
)
_BLOCKS_REGRETTED: Final = _BLOCKS_LEFT.replace(" ORDER BY", " AND b.regretted_turn IS NOT NULL ORDER BY")
_SCAN: Final = (
    f"SELECT {rows.EVENT_COLUMNS} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608
    "WHERE e.seq > ? ORDER BY e.seq LIMIT ?"
)


class SqliteReader:
    """An `EventReader` over a database file that it never writes to.

    Safe to share between threads. Raises `StoreError` where the file is missing or is no store.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._pool = ReaderPool(self.path)
        with self._pool.lend() as connection:
            done = migrations.applied(connection)
        migrations.check(done, self.path)
        if not done:
            raise StoreError(f"{self.path}: is not a Windowpane store; nothing was changed. Name another file")
        missing = [step.name for step in migrations.available() if step.name not in done]
        if missing:
            raise OlderStoreError(
                f"{self.path}: was written by an older release (it lacks {missing[0]}); "
                "open it once for writing, for example with `windowpane serve`"
            )

    # -- sessions ---------------------------------------------------------------------------------------------

    def sessions(self, query: SessionFilter = SessionFilter()) -> Sequence[SessionRow]:  # noqa: B008  # frozen
        """Sessions that match, in the asked order; the current revision of each."""
        sql, values = session_query(query, rows.SESSION_COLUMNS)
        with self._pool.lend() as connection:
            return [rows.session_row(row) for row in connection.execute(sql, values)]

    def session(self, session_id: str) -> SessionRow | None:
        """One session, or None."""
        with self._pool.lend() as connection:
            row = connection.execute(_SESSION, (session_id,)).fetchone()
        return None if row is None else rows.session_row(row)

    def find_sessions(self, prefix: str) -> Sequence[SessionRow]:
        """Sessions whose id begins with *prefix*, at most 20."""
        with self._pool.lend() as connection:
            found = connection.execute(_FIND, (prefix, prefix + "\U0010ffff")).fetchall()
        return [rows.session_row(row) for row in found]

    def turns(self, session_id: str, *, first: int = 1, last: int | None = None) -> Sequence[TurnRow]:
        """The turns of a session in order."""
        with self._pool.lend() as connection:
            key = _key(connection, session_id)
            found = connection.execute(_TURNS, (key, first, IN_WINDOW if last is None else last)).fetchall()
        return [rows.turn_row(row) for row in found]

    def replays(self, *, limit: int = 50) -> list[stored_replays.ReplayRow]:
        """The latest policy replays, newest first."""
        with self._pool.lend() as connection:
            return stored_replays.latest(connection, limit)

    def replay(self, replay_id: str) -> stored_replays.StoredReplay | None:
        """A policy replay with its runs and their timelines, or None."""
        with self._pool.lend() as connection:
            return stored_replays.read(connection, replay_id)

    # -- the window at a turn ---------------------------------------------------------------------------------

    def blocks_at(self, session_id: str, turn: int) -> Sequence[BlockRow]:
        """The exact window at the call of *turn*, in order; the reply of that turn is not part of it."""
        with self._pool.lend() as connection:
            key = _key(connection, session_id)
            moment = _moment(connection, key, turn)
            return _block_rows(connection, _BLOCKS_AT, (key, moment, moment))

    def removed_blocks(
        self, session_id: str, turn: int, *, limit: int = 500, regretted: bool = False
    ) -> Sequence[BlockRow]:
        """Blocks that had left by the call of *turn*, latest departure first; *regretted*: those needed again."""
        statement = _BLOCKS_REGRETTED if regretted else _BLOCKS_LEFT
        with self._pool.lend() as connection:
            key = _key(connection, session_id)
            return _block_rows(connection, statement, (key, _moment(connection, key, turn), limit))

    # -- events -----------------------------------------------------------------------------------------------

    def events(self, query: EventFilter) -> Sequence[StoredEvent]:
        """Events that match, by `seq`; of a named session, those of its current revision.

        Raises `EventFormatError` where one of them is damaged.
        """
        return [rows.stored_event(row) for row in self._matching(query, rows.EVENT_COLUMNS)]

    def events_or_damage(self, query: EventFilter) -> Sequence[StoredEvent | DamagedEvent]:
        """Events that match, by `seq`, damaged ones in their places; for who shows what is still there."""
        return [rows.recorded_event(row) for row in self._matching(query, rows.RECORD_COLUMNS)]

    def export_batches(self, query: EventFilter) -> Iterator[list[export.ExportRow]]:
        """The record of every event that matches, whatever the limit, in batches by `seq`; for exports."""
        size = search.MAXIMUM_HITS if query.text else export.BATCH  # a search finds that many at once anyway
        while True:
            asked = replace(query, limit=size, newest_first=False)
            found = [export.ExportRow(*row) for row in self._matching(asked, export.COLUMNS)]
            if found:
                yield found
            if len(found) < size:
                return
            query = replace(query, after_seq=found[-1].seq)

    def count_events(self, query: EventFilter) -> int:
        """How many events match, whatever the limit."""
        with self._pool.lend() as connection:
            scope = _scope(connection, query)
            if scope is None:
                return 0
            if query.text:
                return search.count(connection, query, scope)
            if scope.session is None and scope.turns is None and not query.after_seq:
                return sum(scope.types.values()) if scope.types else scope.total
            sql, values = event_count(query, scope)
            return int(connection.execute(sql, values).fetchone()[0])

    def scan(
        self, *, after_seq: int = 0, batch: int = 1_000, unreadable: OnUnreadable | None = None
    ) -> Iterator[Sequence[StoredEvent]]:
        """Every event of every session and revision from *after_seq* on, in batches; for folds.

        *unreadable* hears of stored bytes that are no event, with their seq, and they are passed over; without
        it they raise `EventFormatError`. A batch may then be empty.
        """
        while True:
            with self._pool.lend() as connection:
                found = connection.execute(_SCAN, (after_seq, batch)).fetchall()
            if not found:
                return
            after_seq = found[-1][0]
            yield list(rows.readable_events(found, unreadable))

    # -- the rest ---------------------------------------------------------------------------------------------

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
        with self._pool.lend() as connection:
            session = None if session_id is None else _key(connection, session_id)
            sql, values = alert_query(
                session=session, alert=alert, severity=severity, firing=firing, columns=rows.ALERT_COLUMNS,
                limit=limit,
            )  # fmt: skip
            return [rows.alert_row(row) for row in connection.execute(sql, values)]

    def content(self, digest: str) -> str | None:
        """The captured text of a digest, or None."""
        with self._pool.lend() as connection:
            return contents.read(connection, digest)

    def facets(self) -> dict[str, tuple[str, ...]]:
        """Distinct agents, models, sources and event types, for filters."""
        with self._pool.lend() as connection:
            return registry.facets(connection)

    def size(self) -> StoreSize:
        """How much is stored."""
        with self._pool.lend() as connection:
            return registry.size(connection)

    def version(self) -> int:
        """Grows with every write of any process; unchanged means every read would give the same."""
        with self._pool.lend() as connection:
            return int(connection.execute("SELECT writes FROM store").fetchone()[0])

    def digester(self) -> Digester:
        """The function that makes this store's digests: keyed, so they reveal nothing across stores."""
        with self._pool.lend() as connection:
            return registry.digester(connection)

    def load_metric_base(self) -> bytes | None:
        """What the metric fold kept of sessions that retention deleted; None before the first."""
        with self._pool.lend() as connection:
            found: bytes | None = connection.execute("SELECT metric_base FROM store").fetchone()[0]
            return found

    def endpoints(self) -> Sequence[registry.Endpoint]:
        """The `/metrics` endpoints that processes have registered."""
        with self._pool.lend() as connection:
            return registry.endpoints(connection)

    def export(
        self, file: str | Path, *, form: export.ExportFormat = "jsonl", session_id: str | None = None
    ) -> int:
        """Write the record, or one session's, to a file; returns how many events. Raises `StoreError`."""
        batches = export.rows(self._read, session_id)
        if form == "parquet":
            return export.write_parquet(batches, Path(file))
        return export.write_json_lines(batches, Path(file))

    def close(self) -> None:
        """Release the connections."""
        with reporting(self.path):
            self._pool.close()

    def _matching(self, query: EventFilter, columns: str) -> list[tuple[Any, ...]]:
        with self._pool.lend() as connection:
            scope = _scope(connection, query)
            if scope is None:
                return []
            if query.text:
                return search.found(connection, query, scope, columns)
            sql, values = event_query(query, scope, columns)
            return connection.execute(sql, values).fetchall()

    def _read(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._pool.lend() as connection:
            return connection.execute(sql, values).fetchall()


def _key(connection: sqlite3.Connection, session_id: str) -> int:
    """Row number of a session's current revision; 0, which no row has, when it is unknown."""
    found = connection.execute(_KEY, (session_id,)).fetchone()
    return 0 if found is None else int(found[0])


def _moment(connection: sqlite3.Connection, key: int, turn: int) -> int:
    """The event number at which the call of *turn* was made; now for a turn without a call yet."""
    row = connection.execute(_TURN_AT, (key, turn)).fetchone()
    if row is None:
        return 0
    found_turn, _first_seq, call_seq = row
    if found_turn == turn:
        return IN_WINDOW - 1 if call_seq is None else int(call_seq)
    following = connection.execute(_FIRST_SEQ, (key, turn)).fetchone()
    return IN_WINDOW - 1 if following is None else int(following[0])


def _block_rows(connection: sqlite3.Connection, statement: str, values: tuple[int, ...]) -> list[BlockRow]:
    found = connection.execute(statement, values).fetchall()
    added = [rows.block_event(*row[-3:]) for row in found]
    previews = contents.previews(connection, {event.data.digest for event in added})
    return [rows.block_row(row, event, previews) for row, event in zip(found, added, strict=True)]


def _scope(connection: sqlite3.Connection, query: EventFilter) -> EventScope | None:
    """The filter in the database's own numbers; None when it can match nothing."""
    key = total = None
    if query.session_id is not None:
        found = connection.execute(_EXTENT, (query.session_id,)).fetchone()
        if found is None:
            return None
        key, total = found
    counts = {
        name: (type_id, n) for type_id, name, n in connection.execute("SELECT id, name, events FROM event_types")
    }
    types = dict(counts[name] for name in query.types if name in counts)
    if query.types and not types:
        return None
    turns = None
    if query.turn_from is not None or query.turn_to is not None:
        first = query.turn_from if query.turn_from is not None else 0
        last = query.turn_to if query.turn_to is not None else IN_WINDOW
        turns = (first, last, *_sequence(connection, key, first, last))
    return EventScope(key, turns, types, sum(n for _, n in counts.values()) if total is None else total)


def _sequence(connection: sqlite3.Connection, key: int | None, first: int, last: int) -> tuple[int, int]:
    """Numbers of the first event of turn *first* and of the first one after turn *last*."""
    if key is None:
        return 0, IN_WINDOW
    begin = connection.execute(_FIRST_SEQ, (key, first)).fetchone() if first > 0 else (0,)
    end = connection.execute(_FIRST_SEQ, (key, last + 1)).fetchone() if last < IN_WINDOW else None
    return (IN_WINDOW if begin is None else int(begin[0])), (IN_WINDOW if end is None else int(end[0]))
