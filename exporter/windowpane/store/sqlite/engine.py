"""The engine of a store in a SQLite file.

Durability: a batch commits in write-ahead mode with synchronous=NORMAL, so it survives the death of the process
but, until the next `sync`, not a power cut. `sync` commits once with synchronous=FULL, which makes SQLite call
fsync on the log before the commit returns. The log is one file, so everything committed earlier by any process is
on the disk as well; what was moved out of the log before was synced by the checkpoint that moved it.

A store has one writing connection and a few reading ones, each lent to one read at a time. A forked child does
not touch its parent's connections and opens its own.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast
from urllib.parse import quote

from windowpane.core.files import WAL, irregular_kind
from windowpane.effects.private_files import MODE_FILE, create_folder
from windowpane.exceptions import (
    EventsRefusedError,
    OlderStoreError,
    StoreBusyError,
    StoreError,
    StoreReplacedError,
)
from windowpane.store import migrations
from windowpane.store.database import Database
from windowpane.store.idle_connections import IdleConnections
from windowpane.store.sqlite.dialect import SqliteDatabase

BUSY_SECONDS: Final = 30.0
"""The longest that a writer waits for another process's transaction, unless it is opened with another limit."""
PAGE_BYTES: Final = 8192
"""Larger than the default: fewer bytes are lost at the ends of pages that hold events of about 500 bytes."""
LOG_PAGES: Final = 4_000
"""Pages in the log, 32 MB, from which on they are moved into the file: a writer waits for the disk meanwhile."""

_UNREADABLE: Final = ("not a database", "malformed", "encrypted")
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ABOUT_DATA: Final = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError)


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn errors of sqlite3 into a `StoreError` that names the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        kind = StoreError
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY:
            kind = StoreBusyError
        elif isinstance(error, _ABOUT_DATA):
            kind = EventsRefusedError
        raise kind(_explain(path, error)) from error


def _explain(path: Path, error: sqlite3.Error) -> str:
    message = str(error)
    if any(text in message for text in _UNREADABLE):
        return (
            f"{path}: not a readable database ({message}); nothing was changed. "
            "Move the file away or restore a copy, or name another file"
        )
    if "full" in message:
        return f"{path}: the disk is full ({message}); nothing of this batch was stored"
    if "no such module: fts5" in message:
        return f"{path}: the SQLite of this Python lacks FTS5, which a store needs; use a Python that has it"
    if "locked" in message:
        return f"{path}: another process keeps the store locked; try again"
    if "readonly" in message or "unable to open" in message:
        return f"{path}: cannot be opened or written ({message}); check the folder and its permissions"
    return f"{path}: {message}"


def check_kind(path: Path) -> None:
    """Raise `StoreError` for a folder, pipe or device, on which SQLite would fail or wait for ever."""
    try:
        kind = irregular_kind(path.stat().st_mode)
    except OSError as error:
        if error.errno != errno.ELOOP:
            return  # missing, or reported when it is opened
        kind = "a symbolic link to itself"
    if kind:
        raise StoreError(f"{path}: {kind}, not a database file; name another file")


def create_file(path: Path) -> None:
    """Create the file for its owner only, unless it exists; SQLite gives its companion files the same mode."""
    check_kind(path)
    if path.exists():
        return
    try:
        create_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, MODE_FILE))
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{path}: cannot be created ({error.strerror}); check the folder") from error
    try:
        os.fsync(folder)  # so that flush() can promise that the file itself survives
    finally:
        os.close(folder)


class FileIdentity(NamedTuple):
    """A file as the system knows it, whatever its name."""

    device: int
    inode: int


def identity_of(path: Path) -> FileIdentity | None:
    """Return the identity of the file that *path* names now; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return FileIdentity(status.st_dev, status.st_ino)


def open_writer(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> SqliteDatabase:
    """Open the writing connection, in write-ahead mode: a commit is atomic at once, durable at the next flush."""
    create_file(path)
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, factory=SqliteDatabase
    )
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -32768")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def open_reader(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> SqliteDatabase:
    """Open a connection that cannot write; where no lock file can be created, the file is read without locks."""
    check_kind(path)
    if not path.exists():
        raise StoreError(f"{path}: no store here; import a session or start an agent first")
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    try:
        return _connect(address, busy_seconds)
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error):
            raise
        return _connect(address + "&immutable=1", busy_seconds)


def _connect(address: str, busy_seconds: float) -> SqliteDatabase:
    connection = sqlite3.connect(
        address,
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        factory=SqliteDatabase,
    )
    try:
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: SqliteDatabase) -> Iterator[SqliteDatabase]:
    """Run all of the block's statements or none, holding the write lock from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has already undone it where the disk is full
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: SqliteDatabase) -> Iterator[SqliteDatabase]:
    """Let the block's reads see one state of the store."""
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.execute("ROLLBACK")


class _Reader(NamedTuple):
    connection: SqliteDatabase
    file: FileIdentity | None

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class ReaderPool:
    """Reading connections, each lent to one thread at a time; a file that was replaced is opened anew."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._idle = IdleConnections[_Reader]()

    @contextmanager
    def lend(self) -> Iterator[SqliteDatabase]:
        """Lend a connection inside a read transaction for the time of one read."""
        with reporting(self._path):
            reader = self._acquire()
            try:
                with snapshot(reader.connection):
                    yield reader.connection
            except BaseException:
                reader.close()
                raise
            self._idle.give_back(reader)

    def close(self) -> None:
        """Close the idle connections."""
        self._idle.close()

    def _acquire(self) -> _Reader:
        file = identity_of(self._path)
        while (reader := self._idle.take()) is not None:
            if reader.file == file:
                return reader
            reader.close()
        return _Reader(open_reader(self._path, busy_seconds=self._busy_seconds), file)


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
