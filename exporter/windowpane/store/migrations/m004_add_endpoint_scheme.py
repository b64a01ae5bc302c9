"""The scheme of a running endpoint, HTTP or HTTPS, for service discovery."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    """Add the column; what is registered already is taken for HTTP, as it was until now."""
    connection.execute("ALTER TABLE endpoints ADD COLUMN scheme TEXT NOT NULL DEFAULT 'http'")
