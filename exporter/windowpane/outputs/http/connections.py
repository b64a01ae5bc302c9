"""The open connections of a server: a bounded number, each with a deadline for what its client has to do.

A client that sends nothing, one byte a second, or never reads the response holds a connection. At its deadline it
is closed. When all are taken, the one that has waited longest for its client makes room, so that idle clients
cannot keep a scrape out. Only a connection whose response is being computed is never closed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one server."""

    connections: int = 64
    """Connections open at once."""
    admission_seconds: float = 1.0
    """Time that a new connection waits for one of the others to be responded to, when none can be closed."""
    head_seconds: float = 10.0
    """Time for the TLS handshake and the head of a request."""
    head_bytes: int = 32_768
    """Longest request line with all headers."""
    body_seconds: float = 10.0
    """Time for the body of a request."""
    response_seconds: float = 30.0
    """Time for reading the response, or what waits of it."""
    idle_seconds: float = 300.0
    """Time between two requests, longer than the interval of any scrape or exporter."""
    refused_seconds: float = 10.0
    """Time for which the rest of a refused request is read and discarded: closing at once would reset the
    connection, and its response with it.
    """
    serves_half_closed: bool = True
    """A client that has closed its side still gets its response; False: it counts as disconnected."""


AGENT_LIMITS: Final = Limits()
"""Those of an agent's process, where each connection has a thread."""
SERVE_LIMITS: Final = Limits(connections=256)
"""Those of `windowpane serve`, where a sender keeps a connection while its events are being stored."""


@dataclass(slots=True)
class _Open:
    """An open connection."""

    close: Callable[[], None]
    until: float | None
    """End of the wait for its client; None while its response is computed."""


class Connections:
    """The connections of one server. Thread-safe."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._changed = threading.Condition()
        self._open: dict[Hashable, _Open] = {}
        """The one that has waited longest is the first of those that wait."""
        self._reported = False
        self.newcomers = 0
        """Connections of an event loop that wait to be admitted."""

    def __len__(self) -> int:
        return len(self._open)

    def admit(
        self, connection: Hashable, close: Callable[[], None], *, seconds: float, admission_seconds: float = 0.0
    ) -> bool:
        """Add a connection whose request has to come within *seconds*.

        Returns False if all others stay busy with a response for *admission_seconds*. *close* must not block; it
        is called at most once.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_room, timeout=admission_seconds):
                return False
            self._open[connection] = _Open(close, time.monotonic() + seconds)
            return True

    @property
    def takes_newcomers(self) -> bool:
        """True while another connection may wait to be admitted."""
        return self.newcomers < self._maximum

    def wait(self, connection: Hashable, seconds: float) -> None:
        """Record that the client has to do something within *seconds*."""
        with self._changed:
            entry = self._open.pop(connection, None)
            if entry is not None:
                entry.until = time.monotonic() + seconds
                self._open[connection] = entry
                self._changed.notify()

    def respond(self, connection: Hashable) -> None:
        """Record that the request was read and its response is computed."""
        with self._changed:
            if connection in self._open:
                self._open[connection].until = None

    def discard(self, connection: Hashable) -> None:
        """Remove a connection that ends."""
        with self._changed:
            self._open.pop(connection, None)
            self._changed.notify()

    def close_overdue(self) -> None:
        """Close the connections whose client missed its deadline."""
        now = time.monotonic()
        with self._changed:
            for connection, entry in list(self._open.items()):
                if entry.until is not None and now >= entry.until:
                    self._close(connection)

    def close_all(self) -> None:
        """Close every connection."""
        with self._changed:
            for connection in list(self._open):
                self._close(connection)

    def _has_room(self) -> bool:
        """Return whether there is room, after closing the longest wait where it is needed."""
        if len(self._open) < self._maximum:
            return True
        longest = next((connection for connection, entry in self._open.items() if entry.until is not None), None)
        if longest is None:
            return False
        if not self._reported:
            self._reported = True
            _log.warning("all %d connections are taken; those that wait longest are closed", self._maximum)
        self._close(longest)
        return True

    def _close(self, connection: Hashable) -> None:
        self._open.pop(connection).close()
