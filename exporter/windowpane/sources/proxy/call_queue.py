"""The bounded queue of calls in front of the process that reads them, which is started again when it dies.

A call waits in memory for a moment, until a thread has written it to the file from which the process reads: so a
slow disk delays no call, and a process that is started again continues where the one before was killed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from windowpane.config.paths import data_folder
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.private_files import create_folder
from windowpane.effects.worker import RetryLaterError, Worker
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

_Message = SentCall | EndedCall | FailedCall


class CallQueue:
    """The calls that wait to be read by a process; as a context manager it ends with the block.

    Raises `ReaderError` if the process does not start.
    """

    def __init__(self, settings: ReaderSettings, *, maximum_bytes: int = MAXIMUM_WAITING_BYTES) -> None:
        self._settings = settings
        self._boundary = ErrorBoundary(logging.getLogger("windowpane"))
        self._worker: Worker[_Message] = Worker(
            "calls",
            self._write,
            capacity=min(MAXIMUM_UNWRITTEN_BYTES, maximum_bytes),
            poll=self._watch_reader,
            on_drop=self._count_lost,
        )
        self._lost = 0
        """Calls and replies that were not passed on and not reported yet."""
        self._pause = FIRST_PAUSE_SECONDS
        self._restart_at: float | None = None
        """Time at which the process that ended is started again."""
        self._spool = Spool.create(_spool_folder(), maximum_bytes)
        try:
            self._reader = ReaderProcess(settings, self._spool, self._worker.wake)
        except ReaderError:
            self._spool.close()
            raise
        url = self._reader.metrics_url
        if url is not None:  # another process serves the metrics at the same address
            self._settings = msgspec.structs.replace(settings, metrics_port=urlsplit(url).port or 0)
        self._worker.start()

    @property
    def reader(self) -> ReaderProcess:
        """The process that reads now."""
        return self._reader

    @property
    def waiting_bytes(self) -> int:
        """Bytes on the disk that are not read yet."""
        return self._spool.waiting_bytes

    def put(self, message: _Message) -> bool:
        """Queue a message; the bytes of one that finds no room are dropped and counted."""
        if self._worker.put(message, weight=max(1, size_of(message))):
            return True
        if isinstance(message, EndedCall):  # the call ends, without its reply
            message = msgspec.structs.replace(message, body=())
        if not isinstance(message, SentCall):
            self._worker.put(message, weight=max(1, size_of(message)), required=True)
        return False

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Pass on what waits, and wait until it is read and stored."""
        deadline = time.monotonic() + timeout_seconds
        self._worker.close(timeout_seconds)
        remaining = 0.0 if self._worker.waiting else max(0.0, deadline - time.monotonic())
        if self._reader.stop(remaining) is None:
            self._boundary.warn("close", "reading the last calls took too long: some were not read")
        self._worker.join(STOP_SECONDS)
        if not self._worker.is_running:  # else the disk hangs
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

    def _write(self, messages: Iterable[_Message]) -> None:
        """Write messages to the disk; those that it has no room for stay queued."""
        for message in messages:
            if lost := self._lost:
                self._write_one(LostCalls(lost))
                self._lost -= lost
            self._write_one(message)
            self._reader.wake()

    def _write_one(self, message: _Message | LostCalls) -> None:
        try:
            if self._spool.write(msgspec.msgpack.encode(message)):
                return
        except OSError as error:
            self._boundary.warn("disk", "calls cannot be written for the process that reads them: %s", error)
            if self._worker.is_closed:
                return
        raise RetryLaterError("the disk has no room")

    def _count_lost(self, _reason: str, messages: int) -> None:
        self._lost += messages
        self._boundary.warn("full", "calls pass faster than they are read: some were not read")

    def _watch_reader(self) -> float | None:
        """Start another process for one that ended, after a pause that grows with each; meanwhile calls wait."""
        if not self._reader.has_ended or self._worker.is_closed:
            return None
        now = time.monotonic()
        if self._restart_at is None:
            code = self._reader.stop(0)
            self._boundary.warn(
                "ended", "the process that reads calls ended (exit code %s) and is started again", code
            )
            if now - self._reader.started_at > STEADY_SECONDS:
                self._pause = FIRST_PAUSE_SECONDS
            self._restart_at = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        if now < self._restart_at:
            return self._restart_at - now
        self._restart_at = None
        try:
            self._reader = ReaderProcess(self._settings, self._spool, self._worker.wake)
            self._reader.wake()
        except (ReaderError, OSError) as error:
            self._boundary.warn("start", "the process that reads calls did not start: %s", error)
        return 0.0


def _spool_folder() -> Path | None:
    """Return the folder of the waiting calls; None where the user's data folder cannot be made."""
    folder = data_folder()
    try:
        create_folder(folder)
    except OSError:
        return None
    return folder
