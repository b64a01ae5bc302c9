"""Full-text search over captured texts: those that wait to be indexed, and the number of each indexed one.

The texts that the store holds already wait as well: `SqliteStore.index_text` indexes them later, in batches, so
that opening an old store takes no longer. The index itself is created with its first text, where SQLite has the
trigram tokenizer (3.34).
"""

from __future__ import annotations

import sqlite3
from typing import Final

STATEMENTS: Final = (
    "CREATE TABLE content_queue (digest TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE content_numbers (id INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE)",
    "INSERT INTO content_queue SELECT digest FROM contents",
)


def apply(connection: sqlite3.Connection) -> None:
    """Create both tables; every stored text waits to be indexed."""
    for statement in STATEMENTS:
        connection.execute(statement)
