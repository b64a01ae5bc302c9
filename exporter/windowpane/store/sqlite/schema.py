"""SQLite's statements for the tables of the catalogue, the index of events and the triggers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
