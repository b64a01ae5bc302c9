"""The database under a store: what the store's functions are passed, and what an engine provides.

Every statement outside an engine is in the SQL that SQLite and PostgreSQL both take. `sqlite3.Connection` is a
`Database` as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from windowpane.core.store_names import StoreName
from windowpane.store.tables import Column, Table

Row = tuple[Any, ...]


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
    def dialect(self) -> Dialect:
        """The SQL that differs between engines."""
        ...

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


@dataclass(frozen=True, slots=True)
class WordSearch:
    """Events to find by their words."""

    terms: Sequence[str]
    """All of them are in the event; the last one may be the start of a word."""
    types: Sequence[str]
    """Names of the wanted types; empty for all."""
    first_seq: int
    last_seq: int
    condition: str
    """Further condition on the event `e`; empty without one."""
    values: Sequence[Any]
    """Values of that condition."""
    limit: int
    newest_first: bool


class EventIndex(Protocol):
    """The words of events by event number."""

    def add(self, database: Database, texts: Iterable[tuple[int, str]]) -> None:
        """Add events by number with their searchable text."""
        ...

    def remove(self, database: Database, session: int, *, indexed: int) -> None:
        """Remove a session's events up to the number *indexed*, before they are deleted."""
        ...

    def is_used(self, database: Database, word: str) -> bool:
        """Return whether a stored event contains the word."""
        ...

    def with_word(self, database: Database, word: str, *, kind: str, limit: int) -> list[tuple[str, bytes]]:
        """Return session id and body of the latest events of a type with the word, of current revisions."""
        ...

    def find(self, database: Database, query: WordSearch) -> Iterator[int]:
        """Yield the first or last numbers of events that match."""
        ...


class ContentIndex(Protocol):
    """The three-letter sequences (trigrams) of captured texts, by the number of the text."""

    @property
    def is_supported(self) -> bool:
        """False where this installation cannot keep the index; each text is then read."""
        ...

    def add(self, database: Database, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts by number."""
        ...

    def remove(self, database: Database, number: int, text: str) -> None:
        """Remove a text, which must be the one that was added."""
        ...

    def clear(self, database: Database) -> None:
        """Remove every text."""
        ...

    def candidates(self, database: Database, trigrams: Sequence[str]) -> Iterator[int] | None:
        """Yield the numbers of the texts that contain all trigrams, the latest first; None without an index."""
        ...


class Dialect(Protocol):
    """The differences between engines inside statements: parts of them, and the indexes for search."""

    @property
    def event_index(self) -> EventIndex:
        """The index over the words of events."""
        ...

    @property
    def content_index(self) -> ContentIndex:
        """The index over captured texts."""
        ...

    @property
    def table_exists(self) -> str:
        """The query that has a row where there is a table of the name that is its one placeholder."""
        ...

    def create_store(self) -> Iterator[str]:
        """Yield the statements that create the tables of a store, with their indexes and triggers."""
        ...

    def objects(self, database: Database) -> dict[str, str]:
        """Return everything that decides what a statement on the store's tables reads and writes, by its name.

        Tables, indexes, triggers and the like, each with its definition in words of the database.
        """
        ...

    def expected_objects(self) -> dict[str, str]:
        """Return what `objects` returns for a store that no one changed."""
        ...

    def inconsistency(self, database: Database) -> str | None:
        """Return an index that does not hold the rows of its table; None also where the database cannot check."""
        ...

    def create_table(self, table: Table) -> Iterator[str]:
        """Yield the statements that create a table and its indexes; for migrations."""
        ...

    def define(self, column: Column) -> str:
        """Return the definition of a column that a migration adds to a table."""
        ...

    def contains(self, expression: str) -> str:
        """Return the condition that a text or bytes contain the value of its one placeholder."""
        ...

    def unindexed(self, column: str) -> str:
        """Return a column for a condition that must not choose the index; unchanged where statistics choose."""
        ...

    def by_index(self, name: str) -> str:
        """Return what follows a table to read it through this index; empty where statistics choose."""
        ...

    def new_numbers(self, table: str, column: str) -> str:
        """Return the query of as many unused numbers for new rows as the value of its one placeholder."""
        ...

    def can_store(self, text: str) -> bool:
        """Return False for a text that a column would hold with changed characters."""
        ...

    def continue_numbers(self, table: str, column: str) -> Sequence[str]:
        """Return the statements after which new rows are numbered behind the highest number of the table."""
        ...

    @property
    def before_filling(self) -> Sequence[str]:
        """The statements after which many rows are added to the indexes for search at the least cost."""
        ...

    @property
    def after_filling(self) -> Sequence[str]:
        """The statements after which the added rows are found by the indexes for search."""
        ...


class Engine(Protocol):
    """One store's database: its connections, transactions and errors, whatever the kind of database."""

    @property
    def address(self) -> StoreName:
        """The store's name, for messages and for opening it again."""
        ...

    def reporting(self) -> AbstractContextManager[None]:
        """Turn errors of the database into a `StoreError` that names the store and what to do."""
        ...

    # -- reading ----------------------------------------------------------------------------------------------

    def identity(self) -> object:
        """Return a value that differs where another database has taken the place of this one."""
        ...

    def check(self) -> None:
        """Raise `StoreError` unless there is a store that this release can read."""
        ...

    def lend(self) -> AbstractContextManager[Database]:
        """Lend a connection for the time of one read, which sees one state of the store."""
        ...

    def stored_bytes(self, database: Database) -> int:
        """Return how many bytes the store takes."""
        ...

    def announced_version(self) -> int | None:
        """Return the number of writes that the database has announced; None where it has to be read."""
        ...

    def close_readers(self) -> None:
        """Close the reading connections that no read holds."""
        ...

    # -- writing ----------------------------------------------------------------------------------------------

    def open_writer(self) -> Database:
        """Return the writing connection of a store that is created when missing, and migrated when old."""
        ...

    def is_usable(self, database: Database) -> bool:
        """Return False where the connection was lost, so that another one has to be opened."""
        ...

    def check_writer(self, database: Database) -> None:
        """Raise `StoreError` where *database* is no longer a connection to the store of this name."""
        ...

    def transaction(self, database: Database, *, durable: bool = False) -> AbstractContextManager[object]:
        """Run all of the block's statements or none, excluding every other writer from the start.

        After a *durable* one everything committed so far survives a power cut, as after `sync`.
        """
        ...

    def sync(self, database: Database) -> None:
        """Return only when everything committed so far survives a power cut."""
        ...

    def claim_session(self, database: Database, session_id: str) -> bool:
        """Claim a session for this connection; return False where another one has it. Waits for nothing."""
        ...

    def release_session(self, database: Database, session_id: str) -> None:
        """Release a session that this connection has claimed."""
        ...

    def make_room(self, database: Database, last_seq: int) -> None:
        """Let events up to this number be stored that were numbered by another store; inside a transaction."""
        ...

    def reclaim(self, database: Database) -> None:
        """Return space to the system where retention has deleted sessions, if that needs no long wait."""
        ...
