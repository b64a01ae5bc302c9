"""The database under a store: what the store's functions are passed, and what an engine provides.

Every statement outside an engine is in the SQL that SQLite and PostgreSQL both take. `sqlite3.Connection` is a
`Database` as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]

Opened = Callable[["Database"], None]
"""Called with a connection that was just opened."""


class Cursor(Protocol):
    """The result of one statement."""

    @property
    def rowcount(self) -> int:
        """Rows that the statement changed."""
        ...

    @property
    def description(self) -> Sequence[Sequence[Any]] | Any:
        """The columns of the result, each with its name first."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""
        ...


class Database(Protocol):
    """One connection. Placeholders are question marks."""

    @property
    def in_transaction(self) -> bool:
        """True inside a transaction."""
        ...

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor:
        """Run a statement once per row of values."""
        ...

    def close(self) -> None:
        """Close the connection; what it has not committed is undone."""
        ...


class Engine(Protocol):
    """One store's database: its connections, transactions and errors, whatever the kind of database."""

    @property
    def name(self) -> str:
        """The store as errors and messages name it, without any password."""
        ...

    def reporting(self) -> AbstractContextManager[None]:
        """Turn errors of the database into a `StoreError` that names the store and what to do."""
        ...

    # -- reading ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `StoreError` unless there is a store that this release can read."""
        ...

    def lend(self) -> AbstractContextManager[Database]:
        """Lend a connection for the time of one read, which sees one state of the store."""
        ...

    def stored_bytes(self, database: Database) -> int:
        """Return how many bytes the store takes."""
        ...

    def close_readers(self) -> None:
        """Close the reading connections that no read holds."""
        ...

    # -- writing ----------------------------------------------------------------------------------------------

    def open_writer(self) -> Database:
        """Return the writing connection of a store that is created when missing, and migrated when old."""
        ...

    def check_writer(self, database: Database) -> None:
        """Raise `StoreError` where *database* is no longer a connection to the store of this name."""
        ...

    def transaction(self, database: Database) -> AbstractContextManager[object]:
        """Run all of the block's statements or none, excluding every other writer from the start."""
        ...

    def sync(self, database: Database) -> None:
        """Return only when everything committed so far survives a power cut."""
        ...
