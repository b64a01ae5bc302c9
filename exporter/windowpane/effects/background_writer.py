"""Writes to files off the agent's thread: in order, bounded, and awaited for a moment only.

A write normally ends within milliseconds, and its caller knows the outcome. On a slow disk, or while another
process holds a lock, the caller continues after `WAIT_SECONDS` and the write ends later; while one is
under way the next ones are not awaited at all. So a disk delays a hook once per fault, by a bounded time.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

from windowpane.effects.commands import CommandResult
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import TimeLimit, Worker
from windowpane.exceptions import UnfinishedWriteError

WAIT_SECONDS: Final = 0.25
"""Longest wait of a hook for one write."""
END_SECONDS: Final = 5.0
"""Longest wait for pending writes at the end of a session, and of the process."""
IDLE_SECONDS: Final = 1.0
"""Time without writes after which the thread ends."""
MAXIMUM_CHARACTERS: Final = 32_000_000
"""Characters that may wait to be written; further writes fail."""

OnLate = Callable[[CommandResult], object]
"""Called on the writer's thread with the outcome of a write that its caller no longer awaits."""

_log = logging.getLogger(__name__)
_boundary: Final = ErrorBoundary(_log)


class _Write:
    """One write and its outcome."""

    def __init__(self, run: Callable[[], Any], on_late: OnLate | None) -> None:
        self._run = run
        self._on_late = on_late
        self._deciding = threading.Lock()  # whether the caller or `on_late` gets the outcome
        self._ended = threading.Event()
        self._is_awaited = True
        self._result = CommandResult()

    def carry_out(self) -> None:
        try:
            result = CommandResult(self._run())
        except Exception as error:  # noqa: BLE001 (the caller decides what a failed write means)
            result = CommandResult(error=error)
        with self._deciding:
            self._result = result
            self._ended.set()
            is_late = not self._is_awaited
        if not is_late:
            return
        if result.error is not None:
            _log.warning("a write that took long failed: %s: %s", type(result.error).__name__, result.error)
        if self._on_late is not None:
            with _boundary.contain("reporting a late write"):
                self._on_late(result)

    def result_within(self, seconds: float) -> CommandResult:
        """Return the outcome, or a failure with `UnfinishedWriteError` if there is none in time."""
        self._ended.wait(seconds)
        with self._deciding:
            self._is_awaited = self._ended.is_set()
        return self._result if self._is_awaited else CommandResult(error=UnfinishedWriteError())


class BackgroundWriter:
    """Carries out writes in order, on a daemon thread that runs while there are any."""

    def __init__(self, *, maximum_characters: int = MAXIMUM_CHARACTERS) -> None:
        self._worker: Worker[_Write] = Worker(
            "files", self._carry_out, capacity=maximum_characters, idle_seconds=IDLE_SECONDS
        )
        _writers.add(self)

    @property
    def is_idle(self) -> bool:
        """True if no write is under way or waits."""
        return not self._worker.waiting

    def run(
        self,
        write: Callable[[], Any],
        *,
        characters: int = 0,
        wait_seconds: float = WAIT_SECONDS,
        on_late: OnLate | None = None,
    ) -> CommandResult:
        """Carry out *write* after the earlier ones, and return its outcome if it is known within the wait.

        While an earlier write is under way, nothing is awaited unless *wait_seconds* is longer than usual. An
        outcome that comes later is passed to *on_late*.
        """
        one = _Write(write, on_late)
        if not self.is_idle and wait_seconds <= WAIT_SECONDS:
            wait_seconds = 0.0
        try:
            self._worker.start()
        except RuntimeError:  # no thread can be started while the interpreter shuts down
            self._carry_out([*self._worker.take_waiting(), one])
        else:
            if not self._worker.put(one, weight=1 + characters):
                return CommandResult(error=OSError("earlier writes are still under way, and too much waits"))
        return one.result_within(wait_seconds)

    def settle(self, timeout_seconds: float = END_SECONDS) -> bool:
        """Wait until everything is written; False on timeout."""
        return self._worker.wait(timeout_seconds)

    def _carry_out(
        self, writes: Iterable[_Write]
    ) -> None:  # a method: its thread keeps the writer of a name alive
        for write in writes:
            write.carry_out()


_writers: Final = weakref.WeakSet[BackgroundWriter]()
_by_name: Final = weakref.WeakValueDictionary[str, BackgroundWriter]()


def writer_named(name: str) -> BackgroundWriter:
    """Return the writer of *name* in this process: two sessions of one task write in order."""
    writer = _by_name.get(name)
    if writer is None:
        writer = _by_name.setdefault(name, BackgroundWriter())
    return writer


def _settle_all() -> None:
    """Let pending writes end with the process, within a bounded time."""
    limit = TimeLimit(END_SECONDS)
    for writer in list(_writers):
        if not writer.settle(limit.remaining):
            _log.error("files were not written in time; the process ends without them")


atexit.register(_settle_all)
