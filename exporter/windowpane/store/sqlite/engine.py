"""The engine of a store in a SQLite file.

Durability: a batch commits in write-ahead mode with synchronous=NORMAL, so it survives the death of the process
but, until the next `sync`, not a power cut. `sync` commits once with synchronous=FULL, which makes SQLite call
fsync on the log before the commit returns. The log is one file, so everything committed earlier by any process is
on the disk as well; what was moved out of the log before was synced by the checkpoint that moved it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import cast

from windowpane.core.files import WAL
from windowpane.exceptions import OlderStoreError, StoreError, StoreReplacedError
from windowpane.store import migrations
from windowpane.store.database import Database
from windowpane.store.sqlite.connection import (
    BUSY_SECONDS,
    FileIdentity,
    ReaderPool,
    identity_of,
    open_writer,
    reporting,
    transaction,
)
from windowpane.store.sqlite.dialect import SqliteDatabase


class SqliteEngine:
    """Connections to one file. The writer's next check reports that it or its log was deleted or replaced."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._pool = ReaderPool(path, busy_seconds=busy_seconds)
        self._log = path.with_name(path.name + WAL)
        self._files: tuple[FileIdentity | None, FileIdentity | None] = (None, None)
        """The file and its log as the writer has them open."""

    @property
    def address(self) -> Path:
        """The path."""
        return self.path

    def reporting(self) -> AbstractContextManager[None]:
        """Turn errors of sqlite3 into a `StoreError` that names the file and what to do."""
        return reporting(self.path)

    # -- reading ----------------------------------------------------------------------------------------------

    def identity(self) -> FileIdentity | None:
        """Return the identity of the file; None without one."""
        return identity_of(self.path)

    def check(self) -> None:
        """Raise `StoreError` for a missing file, one that is not a store, or one of another release."""
        with self.lend() as connection:
            version = migrations.stored_version(connection, self.path)
        if version is None:
            raise StoreError(f"{self.path}: is not a Windowpane store; nothing was changed. Name another file")
        if version < migrations.SCHEMA_VERSION:
            raise OlderStoreError(self.path)

    def lend(self) -> AbstractContextManager[SqliteDatabase]:
        """Lend a connection inside a read transaction; a file that was replaced is opened anew."""
        return self._pool.lend()

    def stored_bytes(self, database: Database) -> int:
        """Return the bytes of the pages in use."""
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
        (page_bytes,) = database.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * page_bytes)

    def announced_version(self) -> int | None:
        """Return None: a file announces nothing."""
        return None

    def close_readers(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    # -- writing ----------------------------------------------------------------------------------------------

    def open_writer(self) -> SqliteDatabase:
        """Return a connection to a store that is created or migrated."""
        connection = open_writer(self.path, busy_seconds=self._busy_seconds)
        try:
            migrations.bring_up_to_date(connection, self.path, self.transaction)
        except BaseException:
            connection.close()
            raise
        self._files = self._present_files()
        return connection

    def is_usable(self, database: Database) -> bool:  # noqa: ARG002  # a file does not disconnect
        """Return True."""
        return True

    def check_writer(self, database: Database) -> None:  # noqa: ARG002  # the file is compared
        """Raise `StoreReplacedError` where the file or its log was deleted or replaced."""
        if self._present_files() != self._files:
            raise StoreReplacedError(self.path)

    def _present_files(self) -> tuple[FileIdentity | None, FileIdentity | None]:
        return identity_of(self.path), identity_of(self._log)

    @contextmanager
    def transaction(self, database: Database, *, durable: bool = False) -> Iterator[object]:
        """Run all of the block's statements or none, holding the write lock from the start.

        A *durable* one commits with a synced log, which holds everything committed before.
        """
        if durable:
            database.execute("PRAGMA synchronous = FULL")
        try:
            with transaction(_own(database)):
                yield database
        finally:
            if durable:
                database.execute("PRAGMA synchronous = NORMAL")

    def sync(self, database: Database) -> None:
        """Commit once durably."""
        with self.transaction(database, durable=True):
            database.execute("UPDATE store SET flushes = flushes + 1")

    def claim_session(self, database: Database, session_id: str) -> bool:  # noqa: ARG002  # nothing to claim in
        """Return True: a file does not know its processes."""
        return True

    def release_session(self, database: Database, session_id: str) -> None:
        """Do nothing."""

    def make_room(self, database: Database, last_seq: int) -> None:
        """Do nothing: the file takes any number."""

    def reclaim(self, database: Database) -> None:
        """Do nothing: free pages are used again."""


def _own(database: Database) -> SqliteDatabase:
    return cast("SqliteDatabase", database)
