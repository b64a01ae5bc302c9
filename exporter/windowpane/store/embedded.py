"""The embedded store: one SQLite file that several processes of a host write to and read from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from windowpane.core.protocols import Clock
from windowpane.core.store_names import store_file
from windowpane.store.captured_content import Redactor
from windowpane.store.reads.reader import Reader
from windowpane.store.sqlite.engine import BUSY_SECONDS, SqliteEngine
from windowpane.store.store import Store


class SqliteStore(Store):
    """A `Store` in a database file, created when missing and migrated when old.

    A write waits at most *busy_seconds* for another process's, then raises `StoreBusyError`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        capture: bool = False,
        redact: Redactor | None = None,
        audit_key: bytes | None = None,
        old_audit_keys: Sequence[bytes] | None = None,
        clock: Clock = time.time,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.path = Path(store_file(str(path)))
        super().__init__(
            SqliteEngine(self.path, busy_seconds=busy_seconds),
            capture=capture,
            redact=redact,
            audit_key=audit_key,
            old_audit_keys=old_audit_keys,
            clock=clock,
        )


class SqliteReader(Reader):
    """A `Reader` of a database file. Raises `StoreError` for a missing file or one that is not a store."""

    def __init__(self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = Path(store_file(str(path)))
        engine = SqliteEngine(self.path, busy_seconds=busy_seconds)
        engine.check()
        super().__init__(engine)
