"""The SQL of PostgreSQL, whose statistics choose between indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.store.database import ContentIndex, EventIndex
from windowpane.store.postgres import schema
from windowpane.store.search.gin import GIN_INDEXES, GinContentIndex, GinEventIndex

BUILD_MEMORY: Final = "256MB"
"""Memory of the server in which the entries of a new index are sorted."""


class PostgresDialect:
    """The parts of statements for PostgreSQL."""

    def __init__(self) -> None:
        self.event_index: EventIndex = GinEventIndex()
        self.content_index: ContentIndex = GinContentIndex()

    table_exists = "SELECT 1 WHERE to_regclass(?) IS NOT NULL"
    create_store = staticmethod(schema.create_store)
    create_table = staticmethod(schema.create_table)
    define = staticmethod(schema.define)

    def contains(self, expression: str) -> str:
        """Return the condition that a text or bytes contain the value of its one placeholder."""
        return f"position(? IN {expression}) > 0"

    def unindexed(self, column: str) -> str:
        """Return the column as it is."""
        return column

    def by_index(self, name: str) -> str:  # noqa: ARG002  # the planner chooses
        """Return nothing."""
        return ""

    def new_numbers(self, table: str, column: str) -> str:
        """Return the query of the next values of the column's sequence."""
        sequence = f"pg_get_serial_sequence('{table}', '{column}')"
        return f"SELECT nextval({sequence}) FROM generate_series(1, ?)"  # noqa: S608  # our tables

    def can_store(self, text: str) -> bool:
        """Return False for a text with NUL."""
        return "\0" not in text

    def continue_numbers(self, table: str, column: str) -> Sequence[str]:
        """Return the statement that sets the sequence of the column, where it has one."""
        sequence = f"pg_get_serial_sequence('{table}', '{column}')"
        following = f"(SELECT coalesce(max({column}), 0) + 1 FROM {table})"  # noqa: S608  # our tables
        return (f"SELECT setval({sequence}, {following}, FALSE) WHERE {sequence} IS NOT NULL",)

    @property
    def before_filling(self) -> Sequence[str]:
        """The statements that drop the GIN indexes, to which adding rows costs more than building them."""
        return tuple(f"DROP INDEX IF EXISTS {name}" for name in GIN_INDEXES)

    @property
    def after_filling(self) -> Sequence[str]:
        """The statements that build the GIN indexes where they are missing."""
        created = (f"CREATE INDEX IF NOT EXISTS {name} ON {on}" for name, on in GIN_INDEXES.items())
        return (f"SET LOCAL maintenance_work_mem = '{BUILD_MEMORY}'", *created)


POSTGRES: Final = PostgresDialect()
