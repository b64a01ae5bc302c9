"""Comparison of the rows that pages read with those that the events give.

The events of one session at a time are folded again, by the writer's own fold, into a scratch database that
SQLite moves to a temporary file when it grows; then the rows of both are read side by side.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

from windowpane.exceptions import EventFormatError, StoreError
from windowpane.store import migrations
from windowpane.store.database import Database
from windowpane.store.projections import rebuild as projection_rebuild
from windowpane.store.projections import session_drafts, trends
from windowpane.store.sqlite.dialect import SqliteDatabase
from windowpane.store.sqlite.engine import transaction
from windowpane.store.tables import PROJECTIONS, Table
from windowpane.store.writes import session_import

_STRAY: Final = {
    table.name: f"SELECT session FROM {table.name} WHERE session NOT IN (SELECT key FROM sessions) LIMIT 1"  # noqa: S608
    for table in PROJECTIONS
}


class ProjectionAudit:
    """Folds sessions again and compares; `close` deletes the scratch database."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._scratch = sqlite3.connect("", isolation_level=None, factory=SqliteDatabase)
        migrations.create_tables(self._scratch)

    def close(self) -> None:
        """Delete the scratch database."""
        self._scratch.close()

    def problem(self, key: int) -> str | None:
        """Return the first row of the session with this row number that its events do not give, or None."""
        try:
            stored = session_drafts.load_key(self._connection, key)
            with transaction(self._scratch):
                session = projection_rebuild.fold_session(self._connection, key, into=self._scratch)
        except (StoreError, EventFormatError) as error:
            return str(error)
        assert stored is not None
        try:
            return (
                self._session_problem(stored, session)
                or self._rows_problem(session)
                or _counted_problem(self._connection, stored)
            )
        finally:
            with transaction(self._scratch):
                projection_rebuild.remove_session(self._scratch, key)

    def stray_problem(self) -> str | None:
        """Return a row that belongs to no session, or None."""
        for table, statement in _STRAY.items():
            row = self._connection.execute(statement).fetchone()
            if row is not None:
                return f"{table} has a row of session number {row[0]}, which does not exist"
        return trends.problem(self._connection)

    def _session_problem(
        self, stored: session_drafts.SessionDraft, session: session_drafts.SessionDraft
    ) -> str | None:
        expected = session_drafts.projected_values(session)
        for name, value in session_drafts.projected_values(stored).items():
            if _differs(value, expected[name]):
                return f"sessions.{name} is {_short(value)}, the events give {_short(expected[name])}"
        return None

    def _rows_problem(self, session: session_drafts.SessionDraft) -> str | None:
        for table in PROJECTIONS:
            stored = _rows(self._connection, table, session.key)
            folded = _rows(self._scratch, table, session.key) if session.current else iter(())
            for row, expected in zip_longest(stored, folded):
                if row is None or expected is None or any(_differs(row[name], expected[name]) for name in row):
                    return _difference(table, row, expected)
        return None


def _counted_problem(connection: Database, stored: session_drafts.SessionDraft) -> str | None:
    """Return what is wrong with the first event that the metrics count, or None."""
    expected = session_import.counted_from(connection, stored)
    if stored.counted_from == expected:
        return None
    return f"sessions.counted_from is {_short(stored.counted_from)}, the events give {expected}"


def _rows(connection: Database, table: Table, key: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a session by column, in order."""
    order = ", ".join(table.key)
    rows = connection.execute(f"SELECT * FROM {table.name} WHERE session = ? ORDER BY {order}", (key,))  # noqa: S608
    names = [column[0] for column in rows.description]
    for row in rows:
        yield dict(zip(names, row, strict=True))


def _difference(table: Table, row: dict[str, Any] | None, expected: dict[str, Any] | None) -> str:
    """Return the first difference of a stored row from the row that the events give."""
    either = row or expected or {}
    identity = table.key[1:]
    where = f"{table.name} ({', '.join(f'{name} {_short(either[name])}' for name in identity)})"
    if row is None or expected is None:
        return f"{where} is missing" if row is None else f"{where} is not what the events give"
    for name, value in row.items():
        if _differs(value, expected[name]):
            if name in identity:
                return f"{where} is not what the events give"
            return f"{where}: {name} is {_short(value)}, the events give {_short(expected[name])}"
    return f"{where} is not what the events give"


def _differs(stored: object, expected: object) -> bool:
    """Return whether two values differ otherwise than by NUL, which PostgreSQL does not hold in texts."""
    if stored == expected:
        return False
    return not isinstance(expected, str) or stored != expected.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
