"""The opening of a store's file for writing, brought to this release first."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from windowpane.store import migrations, projection
from windowpane.store.connection import open_writer, transaction


def open_migrated(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    """Return a connection to a store that is created, migrated and folded again where its projections are old."""
    connection = open_writer(path, busy_seconds=busy_seconds)
    try:
        migrations.migrate(connection, path)
        if projection.has_stale(connection):
            with transaction(connection):
                projection.rebuild_stale(connection)
    except BaseException:
        connection.close()
        raise
    return connection
