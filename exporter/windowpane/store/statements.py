"""SQL under construction: conditions for reads, and batches of statements for writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from windowpane.store.database import Database

Value = str | bytes | int | float | None
"""A value that a column can hold."""

Item = TypeVar("Item")

END: Final = 2**62
"""Above every event number and every turn."""


def padded(values: Sequence[Item]) -> list[Item]:
    """Return *values* with the last one repeated up to a power of two, for a list after IN.

    A database prepares a statement for each length of the list: so there are few.
    """
    count = 1 << (len(values) - 1).bit_length()
    return [*values, *(count - len(values)) * [values[-1]]]


def in_lists(values: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Yield *values* in lists for IN, `padded`, of at most *size* each."""
    for start in range(0, len(values), size):
        yield padded(values[start : start + size])


def placeholders(values: Sequence[object]) -> str:
    """Return as many placeholders as there are values, for a list after IN."""
    return ", ".join("?" * len(values))


@dataclass(slots=True)
class Conditions:
    """Conditions joined by AND, and their values in order."""

    conditions: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def add(self, condition: str, *values: Value) -> None:
        """Add one condition with the values of its placeholders."""
        self.conditions.append(condition)
        self.values += values

    def among(self, column: str, values: Sequence[Value] | None) -> None:
        """Add the condition that a column has one of *values*; None matches all, an empty sequence nothing."""
        if values is not None:
            self.add(f"{column} IN ({', '.join('?' * len(values))})" if values else "FALSE", *values)

    @property
    def clause(self) -> str:
        """The WHERE clause; true without any condition."""
        return " AND ".join(self.conditions) or "TRUE"


class StatementBatch:
    """Statements in the order they must run; equal neighbors are passed to SQLite in one call.

    A read through `first` or `fetch` sees every statement added before it.
    """

    def __init__(self, connection: Database) -> None:
        self.connection = connection
        self._statement = ""
        self._rows: list[tuple[Value, ...]] = []
        self._deferred: dict[str, list[tuple[Value, ...]]] = {}

    def add(self, statement: str, row: tuple[Value, ...]) -> None:
        """Run *statement* with *row* after everything added before."""
        if statement is not self._statement:
            self._run()
            self._statement = statement
        self._rows.append(row)

    def add_all(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run *statement* with each of *rows* after everything added before."""
        for row in rows:
            self.add(statement, row)

    def defer(self, statement: str, row: tuple[Value, ...]) -> None:
        """Run *statement* with *row* at the end: for changes that nothing else in the batch reads or writes."""
        self._deferred.setdefault(statement, []).append(row)

    def first(self, statement: str, row: tuple[Value, ...]) -> tuple[Value, ...] | None:
        """Return the first row of a query, or None."""
        self._run()
        first: tuple[Value, ...] | None = self.connection.execute(statement, row).fetchone()
        return first

    def finish(self) -> None:
        """Run everything, the deferred statements last."""
        self._run()
        for statement, rows in self._deferred.items():
            self.connection.executemany(statement, rows)
        self._deferred.clear()

    def _run(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self.connection.executemany(self._statement, rows)
