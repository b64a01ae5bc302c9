"""The SQL of PostgreSQL, whose statistics choose between indexes."""

from __future__ import annotations

from typing import Final

from windowpane.store.database import ContentIndex, EventIndex
from windowpane.store.text_indexes.gin import GinContentIndex, GinEventIndex


class PostgresDialect:
    """The parts of statements for PostgreSQL."""

    def __init__(self) -> None:
        self.event_index: EventIndex = GinEventIndex()
        self.content_index: ContentIndex = GinContentIndex()

    def contains(self, expression: str) -> str:
        """Return the condition that a text or bytes contain the value of its one placeholder."""
        return f"position(? IN {expression}) > 0"

    def unindexed(self, column: str) -> str:
        """Return the column as it is."""
        return column

    def by_index(self, name: str) -> str:  # noqa: ARG002  # the planner chooses
        """Return nothing."""
        return ""


POSTGRES: Final = PostgresDialect()
