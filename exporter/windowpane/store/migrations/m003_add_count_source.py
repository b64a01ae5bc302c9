"""A session's count source beside its size; indexes of sessions by parent and of firing alerts."""

from __future__ import annotations

import sqlite3
from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE sessions ADD COLUMN count_source TEXT",
    """UPDATE sessions SET count_source = (
        SELECT count_source FROM turns WHERE session = sessions.key AND count_source IS NOT NULL
        ORDER BY turn DESC LIMIT 1
    )""",
    "CREATE INDEX sessions_parent ON sessions (parent_session_id, current) WHERE parent_session_id IS NOT NULL",
    "CREATE INDEX alerts_firing ON alerts (fired_seq) WHERE resolved_turn IS NULL",
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the column, filled from the last turn of each session, and the indexes."""
    for statement in STATEMENTS:
        connection.execute(statement)
