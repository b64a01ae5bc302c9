"""Makes every projection again from the events; the same fold as when they arrived, so the same rows."""

from __future__ import annotations

import sqlite3
from itertools import groupby
from operator import itemgetter
from typing import Final

from windowpane.core.codec import decode
from windowpane.store import session_state
from windowpane.store.operations import Operations
from windowpane.store.projection import Projection

_EMPTY: Final = ("DELETE FROM turns", "DELETE FROM blocks", "DELETE FROM alerts", "DELETE FROM late_events")
_SESSIONS: Final = "SELECT key, current FROM sessions ORDER BY key"
_EVENTS: Final = "SELECT turn, seq, body FROM events WHERE session = ? ORDER BY seq"
_TURN: Final = itemgetter(0)


def rebuild(connection: sqlite3.Connection) -> int:
    """Rebuild inside the caller's transaction; returns how many sessions. Old revisions keep their row only."""
    for statement in _EMPTY:
        connection.execute(statement)
    current = [key for key, is_current in connection.execute(_SESSIONS).fetchall() if is_current]
    for key in current:
        _rebuild_session(connection, key)
    return len(current)


def _rebuild_session(connection: sqlite3.Connection, key: int) -> None:
    stored = session_state.load_key(connection, key)
    assert stored is not None
    state = stored.cleared()
    reading = connection.cursor()
    # A turn at a time, as events arrived: what a batch holds back is then bounded here too.
    for _, events in groupby(reading.execute(_EVENTS, (key,)), key=_TURN):
        operations = Operations(connection)
        projection = Projection(operations)
        for _turn, seq, body in events:
            event = decode(body)
            projection.enter(state, event)
            projection.apply(state, event, seq)
        projection.save()
    session_state.save(connection, state)
