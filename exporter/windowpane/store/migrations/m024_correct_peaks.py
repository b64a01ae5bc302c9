"""The peak of a session counts its window as it is now, and a corrected limit replaces the one before it."""

from __future__ import annotations

from typing import Final

from windowpane.store.database import Database

_MARK: Final = "INSERT INTO stale_sessions (session) SELECT key FROM sessions WHERE true ON CONFLICT DO NOTHING"


def apply(connection: Database) -> None:
    """Have every session folded again."""
    connection.execute(_MARK)
