"""One store's copy in ClickHouse, batch by batch.

A batch is the next events of the store with the rows of their sessions as they are now. Its rows are inserted
before its position, which is kept in ClickHouse too. So a batch that was interrupted anywhere is copied again
from its start, and its rows replace those that had arrived. Rows that are newer than the batch's events do no
harm: they state absolute values, and the events behind them follow.

Sessions of the store may be folded again without new events. So a copy that is opened compares the sums of
each session, and replaces the rows of those that differ.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from time import time
from typing import Final

from windowpane.core.protocols import Clock
from windowpane.exceptions import StoreError
from windowpane.store.clickhouse import rows
from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.derived import (
    NAMED_SESSIONS,
    UpdatedDays,
    remove_superseded,
    sum_days,
)
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.tables import (
    ALERTS,
    EVENTS,
    POSITIONS,
    SESSION_DAYS,
    SESSIONS,
    TABLES,
    TOOL_USE,
    TURNS,
    CopyTable,
)
from windowpane.store.filters import AlertFilter
from windowpane.store.reads.event_records import FOLDED_SUMS, EventRecord
from windowpane.store.reads.reader import Reader
from windowpane.store.records import SessionRow

BATCH_EVENTS: Final = 20_000
INSERTED_ROWS: Final = 20_000
"""Rows of a table that are held before they are inserted."""
ALL: Final = 1_000_000
ALERT_EVENTS: Final = frozenset(
    {"alert.fired", "alert.resolved", "notification.delivered", "notification.failed"}
)

_COLUMNS: Final = "SELECT table, name FROM system.columns WHERE database = {database:String}"
_ENGINES: Final = "SELECT name, engine_full FROM system.tables WHERE database = {database:String}"
_POSITIONS: Final = "SELECT store, max(seq) FROM positions GROUP BY store"
_SUMS: Final = (
    f"SELECT session_id, {', '.join(FOLDED_SUMS)} FROM sessions FINAL "  # noqa: S608  # our columns
    "WHERE session_id IN {ids:Array(String)}"
)

_VERSION: Final = slice(1, 3)
"""Revision and number of events, in a row of sums."""

_log: Final = logging.getLogger(__name__)


class StoreCopy:
    """The copy of *store*; `open` first, then `copy_batch` as often as it copies something."""

    def __init__(
        self,
        store: Reader,
        clickhouse: ClickHouse,
        schema: Schema,
        *,
        clock: Clock = time,
        batch_events: int = BATCH_EVENTS,
    ) -> None:
        self._store = store
        self._clickhouse = clickhouse
        self._schema = schema
        self._clock = clock
        self._batch_events = batch_events
        self._identity = store.copy_identity()
        self.position = 0
        """Number of the last event that is copied with all its rows."""

    def open(self) -> None:
        """Create what is missing of the tables and read the position. Raises `ClickHouseError`, `StoreError`."""
        self._prepare_tables()
        positions = self._positions()
        if positions and self._identity not in positions:
            raise StoreError(
                f"the ClickHouse database {self._schema.database} holds the copy of another store, whose events "
                "have the same numbers; set clickhouse.database to another name"
            )
        if not positions:
            self._start()
        self.position = positions.get(self._identity, 0)
        self._replace_refolded()

    def copy_batch(self) -> int:
        """Copy the next events and the rows of their sessions; return how many events, 0 when all are copied.

        Raises `ClickHouseError` and `StoreError`; the batch is then copied again from its start.
        """
        records = self._store.event_records(after_seq=self.position, limit=self._batch_events)
        if not records:
            return 0
        inserts = Inserts(self._clickhouse)
        changed = self._insert_sessions(inserts, records)
        for record in records:
            inserts.add(EVENTS, [rows.event_row(record)])
        inserts.finish()
        remove_superseded(self._clickhouse, changed, inserts.days)
        last = records[-1].seq
        sum_days(self._clickhouse, inserts.days, version=last)
        self._set_position(last)
        return len(records)

    def lag_events(self) -> int:
        """Return the distance to the store's newest event. Raises `StoreError`."""
        return max(0, self._store.newest_seq() - self.position)

    # -- internals --------------------------------------------------------------------------------------------

    def _prepare_tables(self) -> None:
        """Bring the tables to this release.

        Where all exist, none is created: a user may not be allowed to.
        """
        present = self._columns()
        if not present.keys() >= {table.name for table in TABLES}:
            for statement in self._schema.create():
                self._clickhouse.define(statement)
            present = self._columns()
        engines = dict(self._describe(_ENGINES))
        for statement in (*self._schema.add_columns(present), *self._schema.set_retention(engines)):
            self._clickhouse.define(statement)

    def _columns(self) -> dict[str, set[str]]:
        """Return the columns of each table that is there."""
        columns: dict[str, set[str]] = {}
        for table, column in self._describe(_COLUMNS):
            columns.setdefault(table, set()).add(column)
        return columns

    def _describe(self, statement: str) -> Sequence[tuple[str, str]]:
        """Return rows about the tables of the database, which need not exist."""
        rows = self._clickhouse.describe(statement, {"database": self._schema.database})
        return [(str(table), str(value)) for table, value in rows]

    def _positions(self) -> dict[str, int]:
        """Return the position of the copy by the identity of its store."""
        return {str(store): int(seq) for store, seq in self._clickhouse.query(_POSITIONS)}

    def _start(self) -> None:
        """Copy the trends of what retention deleted before there was a copy, and then never again."""
        inserts = Inserts(self._clickhouse)
        inserts.add(SESSION_DAYS, rows.pruned_day_rows(self._store.pruned_days()))
        inserts.finish()
        sum_days(self._clickhouse, inserts.days, version=0)
        self._set_position(0)

    def _insert_sessions(self, inserts: Inserts, records: Sequence[EventRecord]) -> list[SessionRow]:
        """Insert the rows of the batch's sessions; return those that are there."""
        first_turns: dict[str, int] = {}
        with_alerts = set()
        for record in records:
            session_id = record.session_id
            first_turns[session_id] = min(record.turn, first_turns.get(session_id, record.turn))
            if record.type in ALERT_EVENTS:
                with_alerts.add(session_id)
        changed = []
        for session_id, first_turn in first_turns.items():
            # First the session: rows that are read later are as new as its version, or newer.
            session = self._session(session_id)
            if session is None:
                continue
            changed.append(session)
            self._insert_session(inserts, session, first_turn=first_turn, with_alerts=session_id in with_alerts)
        return changed

    def _insert_session(
        self, inserts: Inserts, session: SessionRow, *, first_turn: int, with_alerts: bool
    ) -> None:
        session_id = session.session_id
        inserts.add(SESSIONS, [rows.session_row(session)])
        inserts.add(TURNS, rows.turn_rows(session, self._store.turns(session_id, first=first_turn)))
        inserts.add(SESSION_DAYS, rows.session_day_rows(session, self._store.session_days(session_id)))
        inserts.add(TOOL_USE, rows.tool_use_rows(session, self._store.tool_use(session_id, limit=ALL)))
        if with_alerts:
            inserts.add(
                ALERTS,
                rows.alert_rows(session, self._store.alerts(AlertFilter(session_id=session_id, limit=ALL))),
            )

    def _replace_refolded(self) -> None:
        """Insert the rows again of sessions whose copy has their events, but other sums."""
        inserts = Inserts(self._clickhouse)
        for session_id in self._refolded():
            session = self._session(session_id)
            if session is not None:
                self._insert_session(inserts, session, first_turn=1, with_alerts=True)
        inserts.finish()
        sum_days(self._clickhouse, inserts.days, version=self.position)

    def _refolded(self) -> Iterator[str]:
        """Yield the sessions whose copy has the same events as the store's, but other sums."""
        after = ""
        while stored := self._store.session_sums(after=after, limit=NAMED_SESSIONS):
            after = str(stored[-1][0])
            ids = {"ids": [row[0] for row in stored]}
            copied = {row[0]: row for row in self._clickhouse.query(_SUMS, ids)}
            for row in stored:
                copy = copied.get(row[0], row)
                if copy != row and copy[_VERSION] == row[_VERSION]:
                    yield row[0]

    def _session(self, session_id: str) -> SessionRow | None:
        """Return a session; None where it was deleted since, and where its row cannot be read."""
        try:
            return self._store.session(session_id)
        except StoreError as error:
            _log.warning("session %s is copied without its turns and sums: %s", session_id, error)
            return None

    def _set_position(self, seq: int) -> None:
        self._clickhouse.insert(POSITIONS, [[self._identity, seq, self._clock()]])
        self.position = seq


class Inserts:
    """Rows on their way into the tables, of which a bounded number is held."""

    def __init__(self, clickhouse: ClickHouse) -> None:
        self._clickhouse = clickhouse
        self._rows: dict[CopyTable, list[rows.Row]] = {}
        self.days = UpdatedDays()
        """Days of which a sum has changed."""

    def add(self, table: CopyTable, added: Iterable[rows.Row]) -> None:
        """Insert rows soon."""
        waiting = self._rows.setdefault(table, [])
        waiting += added
        if len(waiting) >= INSERTED_ROWS:
            self._insert(table)

    def finish(self) -> None:
        """Insert everything that waits."""
        for table in self._rows:
            self._insert(table)

    def _insert(self, table: CopyTable) -> None:
        inserted, self._rows[table] = self._rows[table], []
        if table in (SESSION_DAYS, TOOL_USE):
            day = [column.name for column in table.columns].index("day")
            self.days.add(table, (row[day] for row in inserted))
        self._clickhouse.insert(table, inserted)
