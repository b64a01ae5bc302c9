"""The open connections of the endpoint: a bounded number, each with a deadline for what its client has to do.

A client that sends nothing, one byte a second, or never reads the response holds a thread. At its deadline the
connection is closed. When all are taken, the one that has waited longest for its client makes room, so that idle
clients cannot keep a scrape out. Only a connection whose response is being computed is never closed.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress
from typing import Final, NamedTuple

MAXIMUM_CONNECTIONS: Final = 64
"""Connections open at once, each with a thread."""
REQUEST_SECONDS: Final = 10.0
"""Time for the TLS handshake and the whole request."""
RESPONSE_SECONDS: Final = 30.0
"""Time for reading the whole response."""
ADMISSION_SECONDS: Final = 1.0
"""Time that a new connection waits for one of the others to be responded to, when none can be closed."""

_log = logging.getLogger(__name__)


class _Wait(NamedTuple):
    """A wait for a client: for its request, or until it has read the response."""

    since: float
    until: float


class Connections:
    """The connections of one server. Thread-safe."""

    def __init__(self, maximum: int = MAXIMUM_CONNECTIONS) -> None:
        self._maximum = maximum
        self._changed = threading.Condition()
        self._waits: dict[socket.socket, _Wait | None] = {}
        """Each open connection with its wait; None while its response is computed."""
        self._reported = False

    def __len__(self) -> int:
        return len(self._waits)

    def admit(self, connection: socket.socket) -> bool:
        """Add a connection whose request is awaited; return False if all others stay busy with a response."""
        with self._changed:
            if not self._changed.wait_for(self._has_room, timeout=ADMISSION_SECONDS):
                return False
            self._waits[connection] = self._wait(REQUEST_SECONDS)
            return True

    def respond(self, connection: socket.socket) -> None:
        """Record that the request was read and its response is computed."""
        with self._changed:
            if connection in self._waits:
                self._waits[connection] = None

    def send(self, connection: socket.socket) -> None:
        """Record that the client has to read the response from now on."""
        with self._changed:
            if connection in self._waits:
                self._waits[connection] = self._wait(RESPONSE_SECONDS)
                self._changed.notify()

    def discard(self, connection: socket.socket) -> None:
        """Remove a connection that ends."""
        with self._changed:
            self._waits.pop(connection, None)
            self._changed.notify()

    def close_overdue(self) -> None:
        """Close the connections whose client missed its deadline."""
        now = time.monotonic()
        with self._changed:
            for connection, wait in list(self._waits.items()):
                if wait is not None and now >= wait.until:
                    self._close(connection)

    def _wait(self, seconds: float) -> _Wait:
        now = time.monotonic()
        return _Wait(now, now + seconds)

    def _has_room(self) -> bool:
        """Return whether there is room, after closing the longest wait where it is needed."""
        if len(self._waits) < self._maximum:
            return True
        waits = {connection: wait for connection, wait in self._waits.items() if wait is not None}
        if not waits:
            return False
        if not self._reported:
            self._reported = True
            _log.warning("all %d connections are taken; those that wait longest are closed", self._maximum)
        self._close(min(waits, key=lambda connection: waits[connection].since))
        return True

    def _close(self, connection: socket.socket) -> None:
        """Remove the connection and wake its thread, which finds it closed."""
        del self._waits[connection]
        with suppress(OSError):  # the client has disconnected
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would change it under its thread
