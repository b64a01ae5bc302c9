"""Writes to files off the agent's thread: in order, bounded, and awaited for a moment only.

A write normally ends within milliseconds, and its caller knows the outcome. On a slow disk, or while another
process holds a lock, the caller continues after `WAIT_SECONDS` and the write ends later; while one is
under way the next ones are not awaited at all. So a disk delays a hook once per fault, by a bounded time.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from windowpane.effects.commands import CommandResult
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.time_limit import TimeLimit
from windowpane.exceptions import UnfinishedWriteError

WAIT_SECONDS: Final = 0.25
"""Longest wait of a hook for one write."""
END_SECONDS: Final = 5.0
"""Longest wait for pending writes at the end of a session, and of the process."""
MAXIMUM_CHARACTERS: Final = 32_000_000
"""Characters that may wait to be written; further writes fail."""

OnLate = Callable[[CommandResult], object]
"""Called on the writer's thread with the outcome of a write that its caller no longer awaits."""

_log = logging.getLogger(__name__)
_boundary: Final = ErrorBoundary(_log)


class _Write:
    """One write and its outcome."""

    def __init__(self, run: Callable[[], Any], characters: int, on_late: OnLate | None) -> None:
        self.characters = characters
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
        self._maximum_characters = maximum_characters
        self._start_over()
        _writers.add(self)

    def _start_over(self) -> None:
        """Forget what waits: after a fork, the parent writes it."""
        self._changed = threading.Condition()  # guards everything below
        self._writes: deque[_Write] = deque()
        self._characters = 0
        self._is_running = False

    @property
    def is_idle(self) -> bool:
        """True if no write is under way or waits."""
        with self._changed:
            return not self._writes

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
        one = _Write(write, characters, on_late)
        with self._changed:
            if self._characters + characters > self._maximum_characters:
                return CommandResult(error=OSError("earlier writes are still under way, and too much waits"))
            if self._writes and wait_seconds <= WAIT_SECONDS:
                wait_seconds = 0.0
            self._writes.append(one)
            self._characters += characters
            must_start, self._is_running = not self._is_running, True
        if must_start:
            self._start()
        return one.result_within(wait_seconds)

    def settle(self, timeout_seconds: float = END_SECONDS) -> bool:
        """Wait until everything is written; False on timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._writes, timeout_seconds)

    def _start(self) -> None:
        try:
            threading.Thread(target=self._carry_out_all, name="windowpane-files", daemon=True).start()
        except RuntimeError:  # no thread can be started while the interpreter shuts down
            self._carry_out_all()

    def _carry_out_all(self) -> None:
        while True:
            with self._changed:
                if not self._writes:
                    self._is_running = False
                    return
                one = self._writes[0]
            one.carry_out()
            with self._changed:
                self._writes.popleft()
                self._characters -= one.characters
                self._changed.notify_all()


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


def _start_over_in_child() -> None:
    for writer in list(_writers):
        writer._start_over()  # this module's own class


atexit.register(_settle_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over_in_child)
