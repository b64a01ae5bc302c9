"""The files that were imported, as they were then, so that an unchanged one is not read again."""

from __future__ import annotations

import sqlite3
from typing import Final

STATEMENT: Final = """CREATE TABLE read_files (
    path TEXT PRIMARY KEY,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    reading TEXT NOT NULL,
    report BLOB NOT NULL
) WITHOUT ROWID"""


def apply(connection: sqlite3.Connection) -> None:
    """Create the table."""
    connection.execute(STATEMENT)
