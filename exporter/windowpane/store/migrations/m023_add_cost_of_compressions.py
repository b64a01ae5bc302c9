"""The cost of a session and of its days contains that of the model calls that compressed its content."""

from __future__ import annotations

from typing import Final

import msgspec

from windowpane.store.database import Database

_COMPRESSIONS: Final = """SELECT session, body FROM events
    WHERE type = (SELECT id FROM event_types WHERE name = 'content.compressed')"""
_MARK: Final = "INSERT INTO stale_sessions (session) VALUES (?) ON CONFLICT DO NOTHING"


class _Compression(msgspec.Struct):
    cost_dollars: float | None = None


class _Event(msgspec.Struct):
    data: _Compression


_decoder: Final = msgspec.json.Decoder(_Event)


def apply(connection: Database) -> None:
    """Have the sessions with such a call folded again."""
    rows = connection.execute(_COMPRESSIONS).fetchall()
    for session in sorted({session for session, body in rows if _has_cost(body)}):
        connection.execute(_MARK, (session,))


def _has_cost(body: bytes) -> bool:
    try:
        return _decoder.decode(body).data.cost_dollars is not None
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return False  # a damaged event
