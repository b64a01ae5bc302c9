"""The bounded queue of calls in front of the process that reads them, which is started again when it dies."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.proxy.call_messages import EndedCall, FailedCall, LostCalls, SentCall, size_of
from windowpane.proxy.reader_process import ReaderError, ReaderProcess, ReaderSettings

MAXIMUM_WAITING_BYTES: Final = 128 << 20
CLOSE_SECONDS: Final = 40.0
"""Time to read what waits when the proxy stops."""
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
"""A process that ran for this long is started again without a longer pause."""


class CallQueue:
    """The calls that wait to be read by a process; as a context manager it ends with the block.

    Raises `ReaderError` if the process does not start.
    """

    def __init__(self, settings: ReaderSettings, *, maximum_bytes: int = MAXIMUM_WAITING_BYTES) -> None:
        self._settings = settings
        self._maximum_bytes = maximum_bytes
        self._boundary = ErrorBoundary(logging.getLogger("windowpane"))
        self._changed = threading.Condition()
        """Guards the queue, and is notified of what its thread waits for."""
        self._waiting: deque[SentCall | EndedCall | FailedCall] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        """Calls and replies that were not passed on and not reported yet."""
        self._closing = False
        self._pause = FIRST_PAUSE_SECONDS
        self._reader = ReaderProcess(settings, self._notify)
        url = self._reader.metrics_url
        if url is not None:  # another process serves the metrics at the same address
            self._settings = msgspec.structs.replace(settings, metrics_port=urlsplit(url).port or 0)
        self._thread = threading.Thread(target=self._run, name="windowpane-calls", daemon=True)
        self._thread.start()

    @property
    def reader(self) -> ReaderProcess:
        """The process that reads now."""
        return self._reader

    def put(self, message: SentCall | EndedCall | FailedCall) -> bool:
        """Queue a message; the bytes of one that finds no room are dropped and counted."""
        size = size_of(message)
        with self._changed:
            has_room = self._waiting_bytes + size <= self._maximum_bytes and not self._closing
            if not has_room:
                self._lost += 1
                self._boundary.warn("full", "calls pass faster than they are read: some were not read")
                if isinstance(message, SentCall):
                    return False
                if isinstance(message, EndedCall):  # the call ends, without its reply
                    message = msgspec.structs.replace(message, body=())
                    size = size_of(message)
            self._waiting.append(message)
            self._waiting_bytes += size
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
            if self._reader.has_ended:
                self._restart()
            else:
                self._pass_on()

    def _wait_for_work(self) -> bool:
        """Wait for messages, or the end of the process; returns False when there is nothing left to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._lost or self._closing or self._reader.has_ended)
            return not self._closing or bool(self._waiting and not self._reader.has_ended)

    def _pass_on(self) -> None:
        """Send the next message; it is lost with a process that dies."""
        message: SentCall | EndedCall | FailedCall | LostCalls
        with self._changed:
            if self._lost:
                message, self._lost = LostCalls(self._lost), 0
            else:
                message = self._waiting.popleft()
                self._waiting_bytes -= size_of(message)
        try:
            self._reader.send(message)
        except (OSError, ValueError):
            self._reader.stop(0)
            with self._changed:
                self._lost += message.count if isinstance(message, LostCalls) else 1

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
            self._reader = ReaderProcess(self._settings, self._notify)
        except (ReaderError, OSError) as error:
            self._boundary.warn("start", "the process that reads calls did not start: %s", error)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify()
