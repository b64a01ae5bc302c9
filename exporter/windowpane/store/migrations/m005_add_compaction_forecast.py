"""The level at which the agent compacts by itself, and the turns until then, of sessions and turns."""

from __future__ import annotations

import sqlite3
from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE sessions ADD COLUMN compaction_tokens INTEGER",
    "ALTER TABLE sessions ADD COLUMN compaction_evidence TEXT",
    "ALTER TABLE sessions ADD COLUMN turns_until_compaction REAL",
    "ALTER TABLE turns ADD COLUMN compaction_tokens INTEGER",
    "ALTER TABLE turns ADD COLUMN turns_until_compaction REAL",
    "ALTER TABLE turns ADD COLUMN turns_until_compaction_p10 REAL",
    "ALTER TABLE turns ADD COLUMN turns_until_compaction_p90 REAL",
    """CREATE INDEX sessions_compacted ON sessions (agent, model, last_at)
        WHERE compaction_evidence = 'recorded' AND current = 1""",
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the columns; they are unknown for the turns and sessions so far."""
    for statement in STATEMENTS:
        connection.execute(statement)
