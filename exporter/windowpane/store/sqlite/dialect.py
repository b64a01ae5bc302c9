"""The SQL of SQLite, which has no statistics here: statements name the index or keep it from choosing one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import ClassVar, Final

from windowpane.store.database import ContentIndex, Dialect, EventIndex
from windowpane.store.search.fts5 import Fts5ContentIndex, Fts5EventIndex
from windowpane.store.sqlite import schema


class SqliteDialect:
    """The parts of statements for SQLite."""

    def __init__(self) -> None:
        self.event_index: EventIndex = Fts5EventIndex()
        self.content_index: ContentIndex = Fts5ContentIndex()

    table_exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    create_store = staticmethod(schema.create_store)
    create_table = staticmethod(schema.create_table)
    define = staticmethod(schema.define)

    def contains(self, expression: str) -> str:
        """Return the condition that a text or bytes contain the value of its one placeholder."""
        return f"instr({expression}, ?)"

    def unindexed(self, column: str) -> str:
        """Return a column for a condition that must not choose the index."""
        return f"+{column}"

    def by_index(self, name: str) -> str:
        """Return what follows a table to read it through this index."""
        return f" INDEXED BY {name}"

    def new_numbers(self, table: str, column: str) -> str:  # noqa: ARG002  # of the only such column of a table
        """Return the query of the numbers that AUTOINCREMENT would assign next."""
        return (
            "WITH RECURSIVE numbers (number) AS ("  # noqa: S608  # our tables
            f"SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = '{table}' "
            "UNION ALL SELECT number + 1 FROM numbers) SELECT number FROM numbers LIMIT ?"
        )

    def can_store(self, text: str) -> bool:  # noqa: ARG002  # SQLite keeps every character
        """Return True."""
        return True

    def continue_numbers(self, table: str, column: str) -> Sequence[str]:  # noqa: ARG002  # SQLite does by itself
        """Return no statement."""
        return ()

    @property
    def before_filling(self) -> Sequence[str]:
        """No statement."""
        return ()

    @property
    def after_filling(self) -> Sequence[str]:
        """No statement."""
        return ()


SQLITE: Final = SqliteDialect()


class SqliteDatabase(sqlite3.Connection):
    """A connection that states its dialect; nothing else differs."""

    dialect: ClassVar[Dialect] = SQLITE
