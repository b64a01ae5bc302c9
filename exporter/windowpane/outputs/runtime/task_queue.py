"""Work taken off the agent's thread: a bounded queue of tasks that one daemon thread runs in order.

`put` never blocks, never raises and never waits for a lock, so it also works in a signal handler, in a finalizer
and in a child process after a fork. A task keeps what it refers to alive until it has run, so the queue is
bounded by the *weight* of its tasks, not by their number.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.forks import ForkLock, follow_forks
from windowpane.outputs.runtime.child_records import Progress

CAPACITY: Final = 200_000
"""Weight of the tasks that may wait; an observed call weighs as much as it has messages."""
URGENT_SHARE: Final = 8
"""The worker lingers no longer once this part of the capacity is used."""
LINGER_SECONDS: Final = 1.0
"""Time the worker waits for more tasks: it runs many at once, and seldom beside the agent's own code."""

_log = logging.getLogger("windowpane")
_queues: weakref.WeakSet[TaskQueue] = weakref.WeakSet()


class _Task(NamedTuple):
    what: str
    run: Callable[[], object]
    weight: int


_STOP: Final = _Task("", lambda: None, 0)
"""Ends the worker."""


class TaskQueue:
    """A queue with one worker. A task that fails is logged, and the next one runs."""

    def __init__(
        self, name: str, *, capacity: int = CAPACITY, linger_seconds: float = LINGER_SECONDS,
        count_drop: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        self._name = name
        self._capacity = capacity
        self._linger = linger_seconds
        self._count_drop = count_drop
        self._boundary = ErrorBoundary(_log)
        self._closed = False
        self.runs_late_tasks = False
        """At the end of the process: tasks that are put after closing run at once, on the caller's thread."""
        self._reset()
        _queues.add(self)

    def _reset(self) -> None:
        """Start with an empty queue and no worker; a forked child never runs the parent's tasks."""
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        """Prevents two workers."""
        self._running = ForkLock()
        """Held by the worker during a task, and by a thread that forks."""
        self._requested = threading.Event()
        """Set while a caller waits for the tasks or many are queued: the worker does not linger."""
        self._accepted = 0
        self._done = 0
        self.progress = Progress()
        self._complete = True
        """No task was dropped since the last flush."""

    @property
    def waiting(self) -> int:
        """Approximate weight of the tasks that wait."""
        return max(0, self._accepted - self._done)

    def put(self, what: str, run: Callable[[], object], *, weight: int = 1, required: bool = False) -> bool:
        """Queue a task; returns False if the queue is full or closed and the task was dropped.

        *what* names the task in the log, if it fails.
        A *required* task is accepted by a full queue too: the end of something whose start was accepted.
        """
        try:
            if self._closed and self.runs_late_tasks:
                with self._running, self._boundary.contain(what):
                    run()
                return True
            if self._closed or (not required and self._accepted - self._done + weight > self._capacity):
                self._drop()
                return False
            self._accepted += weight
            self.progress.accept(self._accepted)
            self._tasks.put(_Task(what, run, weight))
            if self._accepted - self._done > self._capacity // URGENT_SHARE:
                self._requested.set()
            if self._worker is None or not self._worker.is_alive():
                self._start()
        except Exception as error:  # noqa: BLE001  # no exception may reach the agent
            self._boundary.log_failure(what, error)
            return False
        return True

    def flush(self, timeout_seconds: float) -> bool:
        """Return True if everything put so far has run; False on timeout, and once after tasks were dropped."""
        complete, self._complete = self._complete, True
        worker = self._worker
        if worker is None or (not worker.is_alive() and self._tasks.empty()):
            return complete
        if threading.current_thread() is worker:
            return False
        done = threading.Event()
        self._tasks.put(_Task("", done.set, 0))
        self._requested.set()
        if not worker.is_alive():
            self._start()
        return done.wait(timeout_seconds) and complete

    def close(self, timeout_seconds: float) -> bool:
        """Run what is queued and accept nothing more; False on timeout, after which the rest is dropped."""
        self._closed = True
        finished = self.flush(timeout_seconds)
        with suppress(Empty):
            while True:
                if self._tasks.get_nowait().weight:
                    self._drop()
        self._tasks.put(_STOP)
        return finished

    def before_fork(self) -> None:
        """Wait for the task that is running, and start no other until the fork is done."""
        self._running.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on with the tasks."""
        self._running.after_fork_in_parent()

    def after_fork(self) -> None:
        """Start over in a forked child, without the parent's tasks."""
        self._reset()

    def _drop(self) -> None:
        self._complete = False
        if self._count_drop is not None:
            self._count_drop("closed" if self._closed else "full")
        if not self._closed:
            self._boundary.warn("full", "the queue of the %s was full: work was dropped", self._name)

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._run, name=f"windowpane-{self._name}", daemon=True)
                self._worker.start()
        finally:
            self._starting.release()

    def _run(self) -> None:
        tasks = self._tasks
        while True:
            task = tasks.get()
            self._requested.wait(self._linger)
            self._requested.clear()  # before the tasks run: a flush that comes later is not overlooked
            while True:
                if task is _STOP:
                    return
                with self._running, self._boundary.contain(task.what):
                    task.run()
                self._done += task.weight
                self.progress.finish(self._done)
                try:
                    task = tasks.get_nowait()
                except Empty:
                    break
            if tasks.empty():
                self._accepted = self._done


follow_forks(_queues)
