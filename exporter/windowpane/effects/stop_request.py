"""The request to end a long-running command: Ctrl-C or SIGTERM."""

from __future__ import annotations

import math
import signal
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Final

from windowpane.effects.worker import TimeLimit

WAKE_SECONDS: Final = 0.5
"""Longest uninterrupted wait: a signal that comes as the wait starts, or on another thread, does not end it."""


class StopRequest:
    """Set by the first signal from its creation on. For the main thread.

    The handler takes no lock, unlike that of a `threading.Event`: it may interrupt this very wait.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._signals = SimpleQueue[int]()
        self._handlers: dict[int, Any] = {
            number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)
        }

    def wait(self, seconds: float = math.inf) -> bool:
        """Return whether a stop was requested, after at most *seconds*."""
        limit = TimeLimit(seconds)
        while not self.is_set and limit.remaining:
            try:
                self._signals.get(timeout=min(WAKE_SECONDS, limit.remaining))
            except Empty:
                continue
        return self.is_set

    def restore_handlers(self) -> None:
        """Leave later signals to the handlers that were installed before."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.is_set = True
        self._signals.put(number)
