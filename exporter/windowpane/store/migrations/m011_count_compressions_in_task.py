"""Count of the compressions of a session in the middle of a task: the exchange continued after them."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import msgspec

_SESSIONS: Final = "SELECT key, memory FROM sessions WHERE compressions > 0"
_EVENTS: Final = """SELECT name, body FROM events JOIN event_types ON event_types.id = events.type
    WHERE session = ? AND name IN ('block.added', 'content.compressed', 'turn.ended') ORDER BY seq"""
_UPDATE: Final = "UPDATE sessions SET compressions_in_task = ?, memory = ? WHERE key = ?"


def apply(connection: sqlite3.Connection) -> None:
    """Add the column and count from the events of sessions with compressions; damaged ones are skipped."""
    connection.execute("ALTER TABLE sessions ADD COLUMN compressions_in_task INTEGER NOT NULL DEFAULT 0")
    for key, memory in connection.execute(_SESSIONS).fetchall():
        in_task, waiting = _count(connection, key)
        values = _decoded(memory)
        if values:
            raw = msgspec.json.encode({**values, "compressed_exchange": waiting})
            connection.execute(_UPDATE, (in_task, raw, key))


def _count(connection: sqlite3.Connection, key: int) -> tuple[int, int | None]:
    in_task, exchange = 0, 0
    waiting: int | None = None
    for name, body in connection.execute(_EVENTS, (key,)):
        data = _decoded(body).get("data", {})
        if name == "block.added":
            exchange = max(exchange, data.get("exchange", 0))
        elif name == "content.compressed":
            if data.get("outcome") == "accepted":
                waiting = exchange
        elif waiting is not None:
            in_task += waiting == exchange
            waiting = None
    return in_task, waiting


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, TypeError):
        return {}
