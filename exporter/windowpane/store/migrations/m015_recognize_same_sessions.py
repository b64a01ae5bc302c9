"""The calls of each session by the ids that providers gave them, and the sessions that are one."""

from __future__ import annotations

from typing import Final

import msgspec

from windowpane.core.same_session import call_number
from windowpane.store.database import Database

STATEMENTS: Final = (
    "ALTER TABLE sessions ADD COLUMN same_as TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX sessions_same_as ON sessions (same_as, current) WHERE same_as <> ''",
    "CREATE TABLE call_ids (session BIGINT NOT NULL, call BIGINT NOT NULL, PRIMARY KEY (session, call))",
    "CREATE INDEX call_ids_call ON call_ids (call)",
)
_SESSIONS: Final = "SELECT key FROM sessions WHERE current = 1"
_BLOCKS: Final = """SELECT body FROM events WHERE session = ?
    AND type = (SELECT id FROM event_types WHERE name = 'block.added')"""
_INSERT: Final = "INSERT INTO call_ids (session, call) VALUES (?, ?)"


class _Block(msgspec.Struct):
    content_type: str = ""
    tool_call_id: str | None = None


class _Added(msgspec.Struct):
    data: _Block


_decoder: Final = msgspec.json.Decoder(_Added)


def apply(connection: Database) -> None:
    """Add column and table, and the calls of stored sessions: their events name tool calls only."""
    for statement in STATEMENTS:
        connection.execute(statement)
    for (session,) in connection.execute(_SESSIONS).fetchall():
        bodies = connection.execute(_BLOCKS, (session,))
        numbers = {number for (body,) in bodies if (number := _number(body)) is not None}
        connection.executemany(_INSERT, [(session, number) for number in sorted(numbers)])


def _number(body: bytes) -> int | None:
    """Return the number of the tool call that an event adds; None for other content and a damaged event."""
    try:
        block = _decoder.decode(body).data
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return None
    return call_number(block.tool_call_id) if block.content_type == "tool_call" else None
