"""Indexes of alerts by the time they fired: recordings are imported in any order."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    """Replace the indexes that have the order of the store."""
    connection.execute("DROP INDEX IF EXISTS alerts_fired")
    connection.execute("DROP INDEX IF EXISTS alerts_firing")
    connection.execute("CREATE INDEX alerts_at ON alerts (fired_at, fired_seq)")
    connection.execute(
        "CREATE INDEX alerts_unresolved_at ON alerts (fired_at, fired_seq) WHERE resolved_turn IS NULL"
    )
