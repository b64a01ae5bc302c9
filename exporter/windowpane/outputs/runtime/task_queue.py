"""Work taken off the agent's thread: a bounded queue of tasks that one worker runs in order.

A task keeps what it refers to alive until it has run, so the queue is bounded by the *weight* of its tasks, not
by their number.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.forks import ForkLock, follow_forks
from windowpane.effects.worker import Worker

CAPACITY: Final = 200_000
"""Weight of the tasks that may wait; an observed call weighs as much as it has messages."""
URGENT_SHARE: Final = 8
"""The worker lingers no longer once this part of the capacity is used."""
LINGER_SECONDS: Final = 1.0
"""Time the worker waits for more tasks: it runs many at once, and seldom beside the agent's own code."""

_log = logging.getLogger("windowpane")
_running: Final = weakref.WeakSet[ForkLock]()
"""The locks of all queues: a fork waits for the task that runs, whose locks a child would inherit."""


class _Task(NamedTuple):
    what: str
    run: Callable[[], object]


class TaskQueue:
    """A queue with one worker. A task that fails is logged, and the next one runs."""

    def __init__(
        self, name: str, *, capacity: int = CAPACITY, linger_seconds: float = LINGER_SECONDS,
        count_drop: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        self._name = name
        self._count_drop = count_drop
        self._boundary = ErrorBoundary(_log)
        self._running = ForkLock()
        _running.add(self._running)
        self.works_late = False
        """At the end of the process: tasks that are put after closing run at once, on the caller's thread."""
        self.worker: Worker[_Task] = Worker(
            name, self._run, capacity=capacity, linger_seconds=linger_seconds,
            urgent=capacity // URGENT_SHARE + 1, on_drop=self._drop,
        )  # fmt: skip
        """The thread with its queue."""

    @property
    def waiting(self) -> int:
        """Approximate weight of the tasks that wait."""
        return self.worker.waiting

    def put(self, what: str, run: Callable[[], object], *, weight: int = 1, required: bool = False) -> bool:
        """Queue a task as `Worker.put` does; *what* names the task in the log, if it fails."""
        task = _Task(what, run)
        if self.works_late and self.worker.is_closed:
            self._run([task])
            return True
        return self.worker.put(task, weight=weight, required=required)

    def flush(self, timeout_seconds: float) -> bool:
        """Return True if everything put so far has run; False on timeout, and once after tasks were dropped."""
        return self.worker.flush(timeout_seconds)

    def close(self, timeout_seconds: float) -> bool:
        """Run what is queued and accept nothing more; False on timeout, after which the rest is dropped."""
        return self.worker.close(timeout_seconds)

    def _run(self, tasks: list[_Task]) -> None:
        for task in tasks:
            with self._running.lock:
                try:
                    task.run()
                except Exception as error:  # noqa: BLE001  # written out, on the busiest path
                    self._boundary.log_failure(task.what, error)

    def _drop(self, reason: str, tasks: int) -> None:
        if self._count_drop is not None:
            for _ in range(tasks):
                self._count_drop(reason)
        if reason == "full":
            self._boundary.warn("full", "the queue of the %s was full: work was dropped", self._name)


follow_forks(_running)
