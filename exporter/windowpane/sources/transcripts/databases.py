"""Recordings that are an SQLite database with many sessions, read while the agent writes it.

Nothing is written beside the database, and the agent never waits: a database that is in use is read through its
write-ahead log like by any other reader; one that is not in use is read without locks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from windowpane.core.file_kinds import SHARED_MEMORY, WAL
from windowpane.exceptions import SourceError

if TYPE_CHECKING:
    from windowpane.sources.transcripts.reader import FileStats, Problem
    from windowpane.sources.transcripts.records import Record

MAGIC: Final = b"SQLite format 3\0"
SUFFIXES: Final = frozenset({".db", ".sqlite", ".sqlite3"})
WAIT_SECONDS: Final = 2.0
"""The longest wait for a database whose write-ahead log is being started anew."""
_NO_LOCKS: Final = "&vfs=unix-none"


class SessionState(NamedTuple):
    """The state of one session of a database, which differs whenever the session does."""

    changed_at: float | None
    """Time of its last change, where the database states it."""
    mark: str


@runtime_checkable
class DatabaseReader(Protocol):
    """A reader whose tool keeps all sessions in one database."""

    @property
    def format(self) -> str:
        """Its name."""
        ...

    def sessions(self, path: Path) -> dict[str, SessionState]:
        """Return the states of the sessions by their keys, oldest first.

        Raises `SourceError` when the database cannot be read.
        """
        ...

    def read_session(
        self, path: Path, key: str, *, stats: FileStats, problems: list[Problem]
    ) -> Iterator[Record]:
        """Yield the records of one session. Raises `SourceError` when the database cannot be read."""
        ...


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading. Raises `SourceError` where it, or a query in the block, cannot be read."""
    wal, index = path.with_name(path.name + WAL), path.with_name(path.name + SHARED_MEMORY)
    in_heap = False
    if not wal.exists():
        mode = "mode=ro&immutable=1"
    elif index.exists():
        mode = "mode=ro"
    else:
        mode, in_heap = "mode=ro" + _NO_LOCKS, True
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=WAIT_SECONDS)
        with closing(connection):
            connection.text_factory = _text
            if in_heap:  # a log without an index: it is not in use, and no index is written for it
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for a message on a damaged schema
        raise SourceError(str(path), f"the database cannot be read: {error}") from error


def tables_of(path: Path) -> frozenset[str]:
    """Return the names of the tables; none where the file is not a database that can be read."""
    try:
        with opened(path) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except SourceError:
        return frozenset()
    return frozenset(name for (name,) in rows if isinstance(name, str))


def columns_of(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of the columns of *table*."""
    return frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))


def has_columns(path: Path, head: bytes, table: str, columns: frozenset[str]) -> bool:
    """Return whether the file, which starts with *head*, is a database whose *table* has these columns."""
    if not head.startswith(MAGIC):
        return False
    try:
        with opened(path) as connection:
            return columns_of(connection, table) >= columns
    except SourceError:
        return False


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
