"""A connection to PostgreSQL as the store's functions use one, with question marks and inserts by COPY."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple

import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Loader
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper, StrDumper, StrDumperUnknown

from windowpane.store.database import Cursor, Dialect, Row
from windowpane.store.postgres_dialect import POSTGRES

COPY_ROWS: Final = 24
"""Rows from which a COPY costs less than that many statements in a pipeline."""

_PARTS: Final = re.compile(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(\?)|(%)")
_INSERT: Final = re.compile(
    r"\s*INSERT INTO (?P<table>\w+) \((?P<columns>[^)]*)\)\s+VALUES \((?:\?, )*\?\)"
    r"(?P<conflict>\s+ON CONFLICT .*)?\s*\Z"
)


class _Number(Loader):
    """Sums of integers are integers, as in SQLite."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _Truth(Loader):
    """Comparisons are 0 and 1, as in SQLite."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _IntDumper(Int8BinaryDumper):
    """Every integer has one type, so that a statement is prepared once; truth values are integers, too."""

    def dump(self, obj: Any) -> Buffer | None:
        try:
            return super().dump(int(obj))
        except struct.error as error:  # as SQLite's driver reports it: no later attempt would help
            raise OverflowError("a number of more than 64 bits cannot be stored") from error


def _storable(text: str) -> str:
    """Return a text without NUL, which PostgreSQL cannot store."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text


class _StrDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_storable(obj))


class _StrBinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_storable(obj))


class _StrDumperUnknown(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_storable(obj))


def adapt(context: AdaptContext) -> None:
    """Let values go in and come out as they do with SQLite."""
    adapters = context.adapters
    adapters.register_loader("numeric", _Number)
    adapters.register_loader("bool", _Truth)
    adapters.register_dumper(int, _IntDumper)
    adapters.register_dumper(bool, _IntDumper)
    for dumper in (_StrBinaryDumper, _StrDumper, _StrDumperUnknown):
        adapters.register_dumper(str, dumper)


@lru_cache(maxsize=1_000)
def translated(sql: str) -> bytes:
    """Return a statement with the placeholders of psycopg."""
    return _PARTS.sub(_translated_part, sql).encode()


def _translated_part(match: re.Match[str]) -> str:
    quoted, placeholder, _percent = match.groups()
    if quoted:
        return str(quoted).replace("%", "%%")
    return "%s" if placeholder else "%%"


class BulkInsert(NamedTuple):
    """An INSERT that a COPY can carry out."""

    table: str
    columns: str
    expects_conflicts: bool
    """The statement states what happens where the key of a row exists."""


@lru_cache(maxsize=200)
def bulk_insert(sql: str) -> BulkInsert | None:
    """Return the insert that *sql* is, None for any other statement."""
    match = _INSERT.match(sql)
    return None if match is None else BulkInsert(match["table"], match["columns"], match["conflict"] is not None)


class PostgresDatabase:
    """One connection to PostgreSQL. Not safe to share between threads."""

    dialect: ClassVar[Dialect] = POSTGRES

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection
        self._types: dict[BulkInsert, list[int]] = {}
        self._waiting: list[tuple[str, list[Sequence[Any]]]] = []

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
        """Run a statement once per row of values; inserts of many rows are copied.

        In a transaction fewer rows wait until the next statement, and are sent together with it.
        """
        rows = parameters if isinstance(parameters, list) else list(parameters)
        cursor = self.connection.cursor()
        if not self.in_transaction:
            cursor.executemany(translated(sql), rows)
        elif len(rows) < COPY_ROWS or not self._copies(cursor, sql, rows):
            self._waiting.append((sql, rows))
        return cursor

    def finish(self) -> None:
        """Run the statements that wait."""
        if self._waiting:
            with self.connection.pipeline():
                self._send_waiting()

    def roll_back(self) -> None:
        """Undo the transaction."""
        self._waiting.clear()
        self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; what it has not committed is undone."""
        self.connection.close()

    # -- internals --------------------------------------------------------------------------------------------

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        cursor = self.connection.cursor()
        for sql, rows in waiting:
            statement = translated(sql)
            for row in rows:
                cursor.execute(statement, row)

    def _copies(self, cursor: psycopg.Cursor[Row], sql: str, rows: list[Sequence[Any]]) -> bool:
        """Copy the rows if the statement is an insert that can be copied; else return False."""
        insert = bulk_insert(sql)
        if insert is None:
            return False
        self.finish()
        if insert.expects_conflicts:
            return self._copies_new(cursor, insert, rows)
        self._copy(cursor, insert, rows)
        return True

    def _copy(self, cursor: psycopg.Cursor[Row], insert: BulkInsert, rows: Iterable[Sequence[Any]]) -> None:
        types = self._column_types(insert)
        with cursor.copy(f"COPY {insert.table} ({insert.columns}) FROM STDIN (FORMAT BINARY)".encode()) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _copies_new(self, cursor: psycopg.Cursor[Row], insert: BulkInsert, rows: Iterable[Sequence[Any]]) -> bool:
        """Copy rows whose keys are usually new; where one is not, copy none and return False."""
        cursor.execute("SAVEPOINT bulk")
        try:
            self._copy(cursor, insert, rows)
        except psycopg.errors.UniqueViolation:
            cursor.execute("ROLLBACK TO bulk")
            return False
        cursor.execute("RELEASE bulk")
        return True

    def _column_types(self, insert: BulkInsert) -> list[int]:
        types = self._types.get(insert)
        if types is None:
            probe = f"SELECT {insert.columns} FROM {insert.table} LIMIT 0"  # noqa: S608  # our tables
            description = self.connection.execute(probe.encode()).description or ()
            types = self._types[insert] = [column.type_code for column in description]
        return types
