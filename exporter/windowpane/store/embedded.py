"""The embedded store: one SQLite file that several processes of a host write to and read from."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from windowpane.core.store_names import store_file
from windowpane.store.reads.reader import Reader
from windowpane.store.sqlite.engine import BUSY_SECONDS, SqliteEngine
from windowpane.store.store import Store, StoreOptions


class SqliteStore(Store):
    """A `Store` in a database file, created when missing and migrated when old.

    A write waits at most *busy_seconds* for another process's, then raises `StoreBusyError`.
    """

    def __init__(
        self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS, **options: Unpack[StoreOptions]
    ) -> None:
        self.path = Path(store_file(str(path)))
        super().__init__(SqliteEngine(self.path, busy_seconds=busy_seconds), **options)


class SqliteReader(Reader):
    """A `Reader` of a database file. Raises `StoreError` for a missing file or one that is not a store."""

    def __init__(self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = Path(store_file(str(path)))
        engine = SqliteEngine(self.path, busy_seconds=busy_seconds)
        engine.check()
        super().__init__(engine)
