"""The numbers of the events that were received from other hosts, by stream, so that none is stored twice."""

from __future__ import annotations

import sqlite3
from typing import Final

STATEMENTS: Final = (
    """CREATE TABLE received_streams (
        stream_id TEXT NOT NULL, session_id TEXT NOT NULL, numbers TEXT NOT NULL,
        PRIMARY KEY (stream_id, session_id)
    )""",
    "CREATE INDEX received_streams_of ON received_streams (session_id)",
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the table; of streams that were written here directly nothing is received again."""
    for statement in STATEMENTS:
        connection.execute(statement)
