"""Reading connections that no read uses at the moment."""

from __future__ import annotations

import os
import threading
from typing import Final, Generic, Protocol, TypeVar

MAXIMUM_IDLE: Final = 4
"""Reading connections kept open between reads."""


class Closable(Protocol):
    """A connection."""

    def close(self) -> None:
        """Close it."""
        ...


Connection = TypeVar("Connection", bound=Closable)


class IdleConnections(Generic[Connection]):
    """A few open connections, each taken by one thread at a time.

    After a fork, those of the parent are set aside: to close them in the child would end them in the parent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the connections and the process they belong to
        self._connections: list[Connection] = []
        self._process = os.getpid()
        self._inherited: list[Connection] = []

    def take(self) -> Connection | None:
        """Return one, which is idle no more; None without any."""
        with self._lock:
            self._leave_inherited()
            return self._connections.pop() if self._connections else None

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for later reads, or close it where there are enough."""
        with self._lock:
            if len(self._connections) < MAXIMUM_IDLE:
                self._connections.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all."""
        while (connection := self.take()) is not None:
            connection.close()

    def _leave_inherited(self) -> None:
        if self._process != os.getpid():
            self._inherited += self._connections
            self._connections, self._process = [], os.getpid()
