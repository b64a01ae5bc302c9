"""The sessions that the trends count on several rows, so that a reader can count each once."""

from __future__ import annotations

from typing import Final

from windowpane.store.database import Database

_STATEMENTS: Final = (
    "ALTER TABLE session_days ADD COLUMN repeated BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX session_days_repeated ON session_days (day) WHERE repeated = 1",
    """CREATE TABLE pruned_days (
        number BIGINT NOT NULL, day BIGINT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
        release TEXT NOT NULL, project TEXT NOT NULL, peak_millis BIGINT NOT NULL,
        PRIMARY KEY (number, day, agent, model, release)
    )""",
    "CREATE INDEX pruned_days_day ON pruned_days (day)",
    "INSERT INTO stale_sessions (session) SELECT key FROM sessions WHERE true ON CONFLICT DO NOTHING",
)
"""The last one has every session folded again."""


def apply(connection: Database) -> None:
    """Add the mark, and the table of the sessions that retention deletes."""
    for statement in _STATEMENTS:
        connection.execute(statement)
