"""The number of writes, announced by the server at each commit (NOTIFY): live pages ask no query."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import Final

from windowpane.core.store_names import StoreUrl
from windowpane.store.postgres.connections import connect

CHANNEL: Final = "windowpane_writes"
ANNOUNCE: Final = f"SELECT pg_notify('{CHANNEL}', writes::text) FROM store"  # noqa: S608  # a constant
"""To be run before a commit; the server sends it after."""
POLL_SECONDS: Final = 1.0
"""The longest that closing waits for the thread to notice."""
RETRY_SECONDS: Final = 5.0

_log: Final = logging.getLogger(__name__)


class WriteCount:
    """Listens on one connection, in a thread that starts with the first question. Thread-safe."""

    def __init__(self, address: StoreUrl) -> None:
        self._address = address
        self._start_over()

    def _start_over(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()  # guards the start of the thread
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._count: int | None = None

    def latest(self) -> int | None:
        """Return the number of writes as far as announced; None while nothing listens, so it has to be read."""
        if self._process != os.getpid():
            self._start_over()
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                thread = threading.Thread(target=self._run, name="windowpane-writes", daemon=True)
                with suppress(RuntimeError):  # no thread can be started while the interpreter shuts down
                    thread.start()
                    self._thread = thread
        return self._count

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        thread = self._thread
        if thread is not None and self._process == os.getpid():
            thread.join(2 * POLL_SECONDS)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except Exception as error:  # noqa: BLE001  # the next attempt may succeed
                _log.warning("%s: writes are not announced for now: %s", self._address, type(error).__name__)
            finally:
                self._count = None
            self._closed.wait(RETRY_SECONDS)

    def _listen(self) -> None:
        database = connect(self._address, busy_seconds=RETRY_SECONDS)
        try:
            if database.is_pooled:  # a pooler passes no announcements on
                self._closed.set()
                return
            database.execute(f"LISTEN {CHANNEL}")
            (self._count,) = database.execute("SELECT writes FROM store").fetchone()
            while not self._closed.is_set():
                for announced in database.connection.notifies(timeout=POLL_SECONDS):
                    self._count = int(announced.payload)
        finally:
            database.close()
