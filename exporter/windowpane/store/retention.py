"""Forgetting whole sessions, oldest first, leaving a tombstone in the store-wide chain."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from windowpane.exceptions import EventFormatError
from windowpane.store import registry, search
from windowpane.store.importing import FORGET_PROJECTIONS
from windowpane.store.records import StoredEvent
from windowpane.store.rows import EVENT_COLUMNS, readable_events
from windowpane.store.session_state import load_key
from windowpane.store.writes import Writer

_log: Final = logging.getLogger(__name__)

MetricFold = Callable[[bytes | None, Iterable[StoredEvent]], bytes]
"""The stored metric base and the events of a session that goes, to the base that includes them."""

_OLDEST: Final = (
    "SELECT session_id, max(coalesce(last_at, 0.0)) AS newest FROM sessions GROUP BY session_id "
    "ORDER BY newest, min(key) LIMIT 1"
)
_TOO_OLD: Final = (
    "SELECT session_id, max(last_at) AS newest FROM sessions GROUP BY session_id "
    "HAVING newest > 0 AND newest < ? ORDER BY newest, min(key) LIMIT 1"
)
"""Recordings without times have no age, and must not stand before those that do."""
_REVISIONS: Final = "SELECT key FROM sessions WHERE session_id = ? ORDER BY revision"
_EVENTS: Final = (
    f"SELECT {EVENT_COLUMNS} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # our columns
    "WHERE e.session = ? ORDER BY e.seq"
)
_COUNTS: Final = "SELECT type, count(*) FROM events WHERE session = ? GROUP BY type"


def prune_oldest(writer: Writer, *, before: float | None, max_bytes: int | None, fold: MetricFold | None) -> int:
    """Delete the oldest session if it is too old or the store too large; returns 1 or 0.

    One session a transaction: a reader sees each gone or whole, and other writers get their turn in between.
    """
    connection = writer.connection
    found = None if before is None else connection.execute(_TOO_OLD, (before,)).fetchone()
    if found is None and max_bytes is not None and registry.size(connection).bytes > max_bytes:
        found = connection.execute(_OLDEST).fetchone()
    if found is None:
        return 0
    session_id = found[0]
    keys = [key for (key,) in connection.execute(_REVISIONS, (session_id,)).fetchall()]
    if fold is not None:
        (base,) = connection.execute("SELECT metric_base FROM store").fetchone()
        for key in keys:
            base = fold(base, _events(connection, key))
        connection.execute("UPDATE store SET metric_base = ?", (base,))
    for key in keys:
        _delete(writer, key)
    _drop_orphans(connection)
    writer.forget()
    return 1


def _events(connection: sqlite3.Connection, key: int) -> Iterator[StoredEvent]:
    return readable_events(connection.execute(_EVENTS, (key,)), _passed_over)


def _passed_over(seq: int, error: EventFormatError) -> None:
    _log.warning("event %d cannot be read and is counted nowhere: %s", seq, error)


def _delete(writer: Writer, key: int) -> None:
    connection = writer.connection
    state = load_key(connection, key)
    assert state is not None
    writer.add_head("pruned", state)
    search.remove(connection, key)
    for kind, events in connection.execute(_COUNTS, (key,)).fetchall():
        connection.execute("UPDATE event_types SET events = events - ? WHERE id = ?", (events, kind))
    for statement in FORGET_PROJECTIONS:
        connection.execute(statement, (key,))
    connection.execute("DELETE FROM events WHERE session = ?", (key,))
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))


def _drop_orphans(connection: sqlite3.Connection) -> None:
    """Without sessions there is nothing that captured texts could belong to."""
    if connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is None:
        connection.execute("DELETE FROM contents")
