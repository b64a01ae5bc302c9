"""Work that many requests want at once and that is done once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SharedRuns(Generic[Result]):
    """Runs of functions, one at a time; callers with the same key share a run.

    A run starts after each of its callers called, so a result is never older than its request. Any number of
    requests at once costs two runs at most: the one that has started, and the next.
    """

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._lock = threading.Lock()
        self._next: dict[Hashable, Future[Result]] = {}
        """The run that will start next, by key."""

    def run(self, key: Hashable, function: Callable[[], Result]) -> Result:
        """Return the result of *function*, or raise what it raised, from a run that other callers may share."""
        with self._lock:
            is_first = key not in self._next
            future = self._next.setdefault(key, Future())
        if is_first:
            with self._running:
                with self._lock:
                    del self._next[key]  # later callers need a newer run
                try:
                    future.set_result(function())
                except BaseException as error:  # noqa: BLE001  # raised for every caller by result()
                    future.set_exception(error)
        return future.result()
