"""A connection to PostgreSQL as the store's functions use one, with question marks and inserts by COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import psycopg
from psycopg.pq import TransactionStatus

from windowpane.store.database import Cursor, Dialect, Row
from windowpane.store.postgres.bulk_statements import Conflicts, ManyRows, for_many_rows, translated
from windowpane.store.postgres.dialect import POSTGRES
from windowpane.store.postgres.values import ARRAYS

COPY_ROWS: Final = 24
"""Rows from which a COPY costs less than an INSERT of arrays, which the other statements do not wait for."""


class PostgresDatabase:
    """One connection to PostgreSQL. Not safe to share between threads."""

    dialect: ClassVar[Dialect] = POSTGRES

    def __init__(self, connection: psycopg.Connection[Row], *, local_settings: Sequence[str] = ()) -> None:
        """*local_settings* are set in each transaction, behind a pooler that may change connections after it."""
        self.connection = connection
        self.is_pooled = bool(local_settings)
        self._local_settings = local_settings
        self._types: dict[ManyRows, list[int]] = {}
        self._waiting: list[tuple[bytes, Sequence[Any]]] = []

    @property
    def in_transaction(self) -> bool:
        """True inside a transaction."""
        return self.connection.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    @property
    def is_alive(self) -> bool:
        """False once the connection was closed or lost."""
        return not self.connection.closed

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Run one statement, and before it those that wait."""
        if not self._waiting:
            return self.connection.execute(translated(sql), parameters or None)
        with self.connection.pipeline():
            self._send_waiting()
            return self.connection.execute(translated(sql), parameters or None)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor:
        """Run a statement once per row of values.

        In a transaction inserts of many rows are copied. The other statements wait until the next one that is
        executed and are sent together with it, each with all of its rows where it can take arrays.
        """
        rows = parameters if isinstance(parameters, list) else list(parameters)
        cursor = self.connection.cursor()
        many = for_many_rows(sql) if rows else None
        if not self.in_transaction:
            cursor.executemany(translated(sql), rows)
        elif many is None:
            self._waiting += [(translated(sql), row) for row in rows]
        elif len(rows) < COPY_ROWS or not self._copies(cursor, many, rows):
            self._wait(many, rows)
        return cursor

    def finish(self) -> None:
        """Run the statements that wait."""
        if self._waiting:
            with self.connection.pipeline():
                self._send_waiting()

    def start_transaction(self, *statements: str, mode: str = "") -> None:
        """Start a transaction with statements without values."""
        start = f"START TRANSACTION {mode}"
        self.connection.execute("; ".join((start, *self._local_settings, *statements)).encode())

    def roll_back(self) -> None:
        """Undo the transaction."""
        self._waiting.clear()
        self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; what it has not committed is undone."""
        self.connection.close()

    # -- internals --------------------------------------------------------------------------------------------

    def _wait(self, many: ManyRows, rows: Sequence[Sequence[Any]]) -> None:
        arrays = [ARRAYS[oid] for oid in self._column_types(many)]
        for run in many.runs(rows):
            columns = zip(*run, strict=True)
            values = [array(column) for array, column in zip(arrays, columns, strict=True)]
            self._waiting.append((many.statement, values))

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        cursor = self.connection.cursor()
        for statement, values in waiting:
            cursor.execute(statement, values)

    def _copies(self, cursor: psycopg.Cursor[Row], insert: ManyRows, rows: Sequence[Sequence[Any]]) -> bool:
        """Copy the rows of an INSERT; return False where it has to look for rows with the same keys."""
        if insert.conflicts is Conflicts.FAIL:
            self.finish()
            self._copy(cursor, insert, rows)
            return True
        if insert.conflicts is not Conflicts.SKIP:
            return False
        self._waiting.append((b"SAVEPOINT copied", ()))
        self.finish()
        try:
            self._copy(cursor, insert, rows)
        except psycopg.errors.UniqueViolation:
            cursor.execute(b"ROLLBACK TO copied")
            return False
        self._waiting.append((b"RELEASE copied", ()))
        return True

    def _copy(self, cursor: psycopg.Cursor[Row], insert: ManyRows, rows: Iterable[Sequence[Any]]) -> None:
        types = self._column_types(insert)
        with cursor.copy(f"COPY {insert.table} ({insert.columns}) FROM STDIN (FORMAT BINARY)".encode()) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _column_types(self, many: ManyRows) -> list[int]:
        types = self._types.get(many)
        if types is None:
            probe = f"SELECT {many.columns} FROM {many.table} LIMIT 0"  # noqa: S608  # our tables
            self.finish()
            description = self.connection.execute(probe.encode()).description or ()
            types = self._types[many] = [column.type_code for column in description]
        return types
