"""The memory of imported files: what a file looked like, and what reading it resulted in."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection
from typing import Final

from windowpane.core.characters import encodable
from windowpane.store.database import Database

_READ: Final = "SELECT inode, size, mtime_ns, reading, report FROM read_files WHERE path = ?"
_WRITE: Final = (
    "INSERT INTO read_files (path, inode, size, mtime_ns, reading, report) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (path) DO UPDATE SET inode = excluded.inode, size = excluded.size, "
    "mtime_ns = excluded.mtime_ns, reading = excluded.reading, report = excluded.report"
)


@dataclass(frozen=True, slots=True)
class FileState:
    """The identity of a file's content, without reading it."""

    inode: int
    size: int
    mtime_ns: int
    reading: str
    """Release and settings that it is read with."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was imported."""

    state: FileState
    report: bytes
    """The result as the importer wrote it."""


def load(connection: Database | Connection, path: str) -> ReadFile | None:
    """Return what is remembered of the file at *path*."""
    row = connection.execute(_READ, (encodable(path),)).fetchone()
    return None if row is None else ReadFile(FileState(*row[:4]), row[4])


def save(connection: Database, path: str, read: ReadFile) -> None:
    """Remember a file, in place of what was remembered of it."""
    state = read.state
    row = (encodable(path), state.inode, state.size, state.mtime_ns, state.reading, read.report)
    connection.execute(_WRITE, row)
