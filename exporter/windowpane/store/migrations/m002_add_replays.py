"""Results of policy replays, apart from `events`: nothing that reads sessions sees them."""

from __future__ import annotations

import sqlite3
from typing import Final

STATEMENTS: Final = (
    """CREATE TABLE replays (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        at REAL NOT NULL,
        sessions INTEGER NOT NULL,
        runs INTEGER NOT NULL,
        notes TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX replays_at ON replays (at)",
    """CREATE TABLE replay_runs (
        replay TEXT NOT NULL,
        number INTEGER NOT NULL,
        session TEXT NOT NULL,
        setup TEXT NOT NULL,
        kind TEXT NOT NULL,
        policy TEXT NOT NULL,
        preset TEXT NOT NULL,
        limit_tokens INTEGER NOT NULL,
        measures TEXT NOT NULL,
        config TEXT NOT NULL,
        timeline BLOB NOT NULL,
        note TEXT NOT NULL,
        PRIMARY KEY (replay, number)
    ) WITHOUT ROWID""",
)


def apply(connection: sqlite3.Connection) -> None:
    """Create the two tables."""
    for statement in STATEMENTS:
        connection.execute(statement)
