"""The SQL of SQLite, which has no statistics here: statements name the index or keep it from choosing one.

Its tables are those of the catalogue, with the index of events and the triggers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import ClassVar, Final

from windowpane.store.database import ContentIndex, Database, Dialect, EventIndex
from windowpane.store.search.fts5 import Fts5ContentIndex, Fts5EventIndex
from windowpane.store.tables import (
    ADD_TO_SUMS,
    ADDED_COLUMNS,
    DAILY_KEY,
    TABLES,
    Column,
    Index,
    Kind,
    Table,
    parts_of_day,
)

_TYPES: Final = {
    Kind.INTEGER: "INTEGER", Kind.FLAG: "INTEGER", Kind.DAY: "INTEGER", Kind.REAL: "REAL", Kind.BYTES: "BLOB",
    Kind.TEXT: "TEXT", Kind.NAME: "TEXT", Kind.LIST: "TEXT",
}  # fmt: skip
_EVENTS_TEXT: Final = """CREATE VIRTUAL TABLE events_text USING fts5 (
    text, content = '', columnsize = 0, detail = none,
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
)"""
_SEARCH_TABLES: Final = (
    "contents_text",
    *(f"{index}_{part}" for index in ("events_text", "contents_text") for part in ("config", "data", "idx")),
)
"""Tables that FTS5 makes, in a form that depends on the release of SQLite, and one that only some stores have."""
_SCHEMA: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_'"
_TRIGGERS: Final = (
    ("session_days_added", "INSERT", (("NEW", "+"),)),
    ("session_days_removed", "DELETE", (("OLD", "-"),)),
    ("session_days_changed", "UPDATE", (("OLD", "-"), ("NEW", "+"))),
)


def create_store() -> Iterator[str]:
    """Yield the statements that create every table of a store."""
    for table in TABLES:
        yield from create_table(table)
    yield _EVENTS_TEXT
    for name, operation, changes in _TRIGGERS:
        yield f"CREATE TRIGGER {name} AFTER {operation} ON session_days BEGIN {' '.join(map(_add, changes))} END"


def create_table(table: Table) -> Iterator[str]:
    """Yield the statements that create a table and its indexes.

    A table whose key is a number has that as its rowid; any other one is stored in the order of its key.
    """
    parts = [define(column, table) for column in table.columns]
    if table.integer_key is None:
        parts.append(f"PRIMARY KEY ({', '.join(table.key)})")
    if table.unique:
        parts.append(f"UNIQUE ({', '.join(table.unique)})")
    yield f"CREATE TABLE {table.name} ({', '.join(parts)})" + (" WITHOUT ROWID" if not table.integer_key else "")
    for index in table.indexes:
        yield _create_index(table, index)


def define(column: Column, table: Table | None = None) -> str:
    """Return the definition of a column, of a new *table* or to be added to an existing one."""
    definition = f'"{column.name}" {_TYPES[column.kind]}'
    if table is not None and column == table.integer_key:
        return f"{definition} PRIMARY KEY" + (" AUTOINCREMENT" if table.numbered else "")
    return (
        definition + ("" if column.null else " NOT NULL") + (f" DEFAULT {column.default}" * bool(column.default))
    )


def _create_index(table: Table, index: Index) -> str:
    columns = list(index.columns)
    if table.integer_key is not None and columns[-1].split()[0] == table.integer_key.name:
        columns.pop()  # every index ends with the rowid
    where = f" WHERE {index.where}" if index.where else ""
    return f"CREATE INDEX {index.name} ON {table.name} ({', '.join(columns)}){where}"


def _add(change: tuple[str, str]) -> str:
    """Return the statement that adds a row's parts to the sums, with their factor."""
    row, factor = change
    key = ", ".join(f"{row}.{name}" for name in DAILY_KEY)
    parts = ", ".join(f"{factor}({part})" for part in parts_of_day(row))
    return f"INSERT INTO daily ({ADDED_COLUMNS}) VALUES ({key}, 0, {parts}) {ADD_TO_SUMS};"  # noqa: S608  # our columns


def _entries(database: Database) -> dict[str, str]:
    return {
        f"{kind} {name}": f"{table}: {' '.join(str(sql).split())}"
        for kind, name, table, sql in database.execute(_SCHEMA)
        if kind != "table" or name not in _SEARCH_TABLES
    }


@cache
def _outbox() -> dict[str, str]:
    from windowpane.alerts.delivery import outbox  # for verifications only

    with closing(sqlite3.connect(":memory:", factory=SqliteDatabase)) as database:
        database.execute(outbox.TABLE)
        database.execute(outbox.INDEX)
        return _entries(database)


class SqliteDialect:
    """The parts of statements for SQLite."""

    def __init__(self) -> None:
        self.event_index: EventIndex = Fts5EventIndex()
        self.content_index: ContentIndex = Fts5ContentIndex()

    table_exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    create_store = staticmethod(create_store)
    create_table = staticmethod(create_table)
    define = staticmethod(define)

    def objects(self, database: Database) -> dict[str, str]:
        """Return the entries of the schema, and the numbers that a program may give a file.

        The outbox of alerts is in the file once one was sent; it is not part of a new store.
        """
        optional = _outbox()
        objects = {
            name: definition
            for name, definition in _entries(database).items()
            if optional.get(name) != definition
        }
        for pragma in ("user_version", "application_id"):
            objects[f"pragma {pragma}"] = str(database.execute(f"PRAGMA {pragma}").fetchone()[0])
        return objects

    def expected_objects(self) -> dict[str, str]:
        """Return the entries of the schema of a new store."""
        with closing(sqlite3.connect(":memory:", factory=SqliteDatabase)) as database:
            for statement in create_store():
                database.execute(statement)
            return self.objects(database)

    def inconsistency(self, database: Database) -> str | None:
        """Return the first difference of an index from its table."""
        for table in TABLES:
            result = str(database.execute(f"PRAGMA integrity_check({table.name})").fetchone()[0])
            if result != "ok":
                return f"{table.name}: {result}"
        return None

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
