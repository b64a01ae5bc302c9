"""An index of events by their time: recordings are imported in any order."""

from __future__ import annotations

from windowpane.store.database import Database


def apply(connection: Database) -> None:
    """Create the index."""
    connection.execute("CREATE INDEX events_at ON events (at)")
