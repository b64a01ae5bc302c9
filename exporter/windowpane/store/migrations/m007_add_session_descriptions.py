"""The names that people recognize sessions by."""

from __future__ import annotations

import sqlite3
from typing import Final

COLUMNS: Final = ("title", "title_source", "folder", "repository", "branch", "agent_version", "label")


def apply(connection: sqlite3.Connection) -> None:
    """Add the columns; they are empty for the sessions so far, whose events do not describe them."""
    for column in COLUMNS:
        connection.execute(f"ALTER TABLE sessions ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
