"""The bounded queue of calls in front of the process that reads them, which is started again when it dies.

A call waits in memory for a moment, until a thread has written it to the file from which the process reads: so a
slow disk delays no call, and a process that is started again continues where the one before was killed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from windowpane.config.paths import data_folder
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.private_files import create_folder
from windowpane.sources.proxy.call_messages import EndedCall, FailedCall, LostCalls, SentCall, size_of
from windowpane.sources.proxy.reader_process import ReaderError, ReaderProcess, ReaderSettings
from windowpane.sources.proxy.spool import Spool

MAXIMUM_UNWRITTEN_BYTES: Final = 128 << 20
"""Calls in memory, which the disk has not taken yet."""
MAXIMUM_WAITING_BYTES: Final = 512 << 20
"""Calls on the disk."""
CLOSE_SECONDS: Final = 40.0
"""Time to read what waits when the proxy stops."""
STOP_SECONDS: Final = 1.0
"""Time for the queue's thread to stop when its process has ended."""
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 60.0
FULL_PAUSE_SECONDS: Final = 0.1
"""Pause while the disk has no room."""
STEADY_SECONDS: Final = 60.0
"""A process that ran for this long is started again without a longer pause."""


class CallQueue:
    """The calls that wait to be read by a process; as a context manager it ends with the block.

    Raises `ReaderError` if the process does not start.
    """

    def __init__(self, settings: ReaderSettings, *, maximum_bytes: int = MAXIMUM_WAITING_BYTES) -> None:
        self._settings = settings
        self._maximum_unwritten = min(MAXIMUM_UNWRITTEN_BYTES, maximum_bytes)
        self._boundary = ErrorBoundary(logging.getLogger("windowpane"))
        self._changed = threading.Condition()
        """Guards the queue, and is notified of what its thread waits for."""
        self._unwritten: deque[SentCall | EndedCall | FailedCall] = deque()
        self._unwritten_bytes = 0
        self._lost = 0
        """Calls and replies that were not passed on and not reported yet."""
        self._closing = False
        self._pause = FIRST_PAUSE_SECONDS
        self._spool = Spool.create(_spool_folder(), maximum_bytes)
        try:
            self._reader = ReaderProcess(settings, self._spool, self._notify)
        except ReaderError:
            self._spool.close()
            raise
        url = self._reader.metrics_url
        if url is not None:  # another process serves the metrics at the same address
            self._settings = msgspec.structs.replace(settings, metrics_port=urlsplit(url).port or 0)
        self._thread = threading.Thread(target=self._run, name="windowpane-calls", daemon=True)
        self._thread.start()

    @property
    def reader(self) -> ReaderProcess:
        """The process that reads now."""
        return self._reader

    @property
    def waiting_bytes(self) -> int:
        """Bytes on the disk that are not read yet."""
        return self._spool.waiting_bytes

    def put(self, message: SentCall | EndedCall | FailedCall) -> bool:
        """Queue a message; the bytes of one that finds no room are dropped and counted."""
        size = size_of(message)
        with self._changed:
            has_room = self._unwritten_bytes + size <= self._maximum_unwritten and not self._closing
            if not has_room:
                self._lost += 1
                self._boundary.warn("full", "calls pass faster than they are read: some were not read")
                if isinstance(message, SentCall):
                    return False
                if isinstance(message, EndedCall):  # the call ends, without its reply
                    message = msgspec.structs.replace(message, body=())
                    size = size_of(message)
            self._unwritten.append(message)
            self._unwritten_bytes += size
            self._changed.notify()
        return has_room

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Pass on what waits, and wait until it is read and stored."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_seconds)
        remaining = 0.0 if self._thread.is_alive() else max(0.0, deadline - time.monotonic())
        if self._reader.stop(remaining) is None:
            self._boundary.warn("close", "reading the last calls took too long: some were not read")
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():  # else the disk hangs
            self._spool.close()

    def __enter__(self) -> Self:
        """Return the queue."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # -- inside -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._wait_for_work():
            is_done = False
            with self._boundary.contain("passing calls on"):
                if self._reader.has_ended:
                    self._restart()
                    continue
                is_done = self._write_next()
            if not is_done:
                time.sleep(FULL_PAUSE_SECONDS)

    def _wait_for_work(self) -> bool:
        """Wait for messages, or the end of the process; returns False when there is nothing left to do."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._unwritten or self._lost or self._closing or self._reader.has_ended
            )
            return not self._closing or bool(self._unwritten and not self._reader.has_ended)

    def _write_next(self) -> bool:
        """Write the next message to the disk; returns False if the disk has no room: the message stays queued."""
        with self._changed:
            reported = self._lost
            message = LostCalls(reported) if reported else self._unwritten[0]
        try:
            if not self._spool.write(msgspec.msgpack.encode(message)):
                return False
        except OSError as error:
            self._boundary.warn("disk", "calls cannot be written for the process that reads them: %s", error)
            if not self._closing:
                return False
        with self._changed:
            self._lost -= reported
            if not reported:
                self._unwritten_bytes -= size_of(self._unwritten.popleft())
        self._reader.wake()
        return True

    def _restart(self) -> None:
        """Start another process after a pause, which grows with each; meanwhile calls wait in the queue."""
        code = self._reader.stop(0)
        self._boundary.warn(
            "ended", "the process that reads calls ended (exit code %s) and is started again", code
        )
        if time.monotonic() - self._reader.started_at > STEADY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        with self._changed:
            self._changed.wait_for(lambda: self._closing, self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        try:
            self._reader = ReaderProcess(self._settings, self._spool, self._notify)
        except (ReaderError, OSError) as error:
            self._boundary.warn("start", "the process that reads calls did not start: %s", error)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify()


def _spool_folder() -> Path | None:
    """Return the folder of the waiting calls; None where the user's data folder cannot be made."""
    folder = data_folder()
    try:
        create_folder(folder)
    except OSError:
        return None
    return folder
