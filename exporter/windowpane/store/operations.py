"""Statements in the order they must run, grouped so that equal neighbours go to SQLite in one call."""

from __future__ import annotations

import sqlite3

Value = str | bytes | int | float | None


class Operations:
    """Collects statements; a read through `one` sees all that were added before it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._statement = ""
        self._rows: list[tuple[Value, ...]] = []
        self._deferred: dict[str, list[tuple[Value, ...]]] = {}

    def add(self, statement: str, row: tuple[Value, ...]) -> None:
        """Run *statement* with *row* after everything added before."""
        if statement is not self._statement:
            self.run()
            self._statement = statement
        self._rows.append(row)

    def defer(self, statement: str, row: tuple[Value, ...]) -> None:
        """Run *statement* with *row* at the end: for changes that nothing else in the batch reads or writes."""
        self._deferred.setdefault(statement, []).append(row)

    def finish(self) -> None:
        """Hand over everything, the deferred statements last."""
        self.run()
        for statement, rows in self._deferred.items():
            self.connection.executemany(statement, rows)
        self._deferred.clear()

    def one(self, statement: str, row: tuple[Value, ...]) -> tuple[Value, ...] | None:
        """The first row of a query."""
        self.run()
        found: tuple[Value, ...] | None = self.connection.execute(statement, row).fetchone()
        return found

    def all(self, statement: str, row: tuple[Value, ...]) -> list[tuple[Value, ...]]:
        """All rows of a query."""
        self.run()
        return self.connection.execute(statement, row).fetchall()

    def run(self) -> None:
        """Hand over what was collected."""
        if self._rows:
            rows, self._rows = self._rows, []
            self.connection.executemany(self._statement, rows)
