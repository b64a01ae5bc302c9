"""A thread that calls a function when it starts, when it is woken, when it is time, and for callers that wait."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.time_limit import TimeLimit

FAILED_SECONDS: Final = 30.0
"""Pause after a call that failed."""

_log = logging.getLogger("windowpane")
_pollers: weakref.WeakSet[Poller] = weakref.WeakSet()


class Caller:
    """A caller that waits until everything so far is done; with *stops* the thread ends afterwards."""

    def __init__(self, limit: TimeLimit, *, stops: bool, reported_loss: object) -> None:
        self.limit = limit
        self.stops = stops
        self.reported_loss = reported_loss
        """The last loss that a flush had reported when the caller started to wait."""
        self.done = threading.Event()
        self.is_handled = False
        self.is_complete = False
        """Nothing was lost since the flush before."""


class Poller:
    """A daemon thread that calls *poll* when it starts, when it is woken, and when it is time again.

    *poll* returns the seconds until the next call; after None only a caller wakes the thread, which ends if
    that takes *idle_seconds*. When it is woken, it first waits *linger_seconds* for a second signal. *settle* is
    called for a caller that waits, with its time limit and whether the thread is to end; it returns whether
    everything is done.
    """

    def __init__(
        self,
        name: str,
        poll: Callable[[], float | None],
        *,
        settle: Callable[[TimeLimit, bool], bool] | None = None,
        linger_seconds: float = 0.0,
        idle_seconds: float | None = None,
    ) -> None:
        self._name = name
        self._poll = poll
        self._settle = settle
        self._linger = linger_seconds
        self._idle = idle_seconds
        self._boundary = ErrorBoundary(_log)
        self._closed = False
        self._is_abandoned = False
        """True after closing has stopped waiting for the thread."""
        self._reset()
        _pollers.add(self)

    def _reset(self) -> None:
        """Be without a thread, as in a forked child."""
        self._signals: SimpleQueue[Caller | None] = SimpleQueue()
        self._signaled = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        """Prevents two threads."""
        self._poll_at: float | None = 0.0
        self._stopping: Caller | None = None
        self._loss = self._reported_loss = object()
        """The last loss, and the last one that a flush has reported; each loss is another object."""

    @property
    def is_closed(self) -> bool:
        """True from the start of closing on."""
        return self._closed

    @property
    def is_running(self) -> bool:
        """True while the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_own_thread(self) -> bool:
        """True on this thread."""
        return threading.current_thread() is self._thread

    def start(self) -> None:
        """Start the thread unless it runs. Raises `RuntimeError` where none can be started."""
        if not self.is_running and self._starting.acquire(blocking=False):
            try:
                if not self.is_running:
                    self._thread = threading.Thread(
                        target=self._run, name=f"windowpane-{self._name}", daemon=True
                    )
                    self._thread.start()
            except RuntimeError:  # the interpreter shuts down
                self._thread = None
                self._signaled = False
                raise
            finally:
                self._starting.release()

    def wake(self) -> None:
        """Have the thread poll now, if it has started."""
        if not self._signaled:
            self._signaled = True
            self._signals.put(None)

    def wait(self, timeout_seconds: float) -> bool:
        """Return True when everything so far is done; False on timeout, or when an attempt failed."""
        caller = self._submit(timeout_seconds, stops=False)
        return caller.done.wait(timeout_seconds) and caller.is_handled

    def flush(self, timeout_seconds: float) -> bool:
        """Wait as `wait` does; also return False, once, after something was lost."""
        caller = self._submit(timeout_seconds, stops=False)
        return caller.done.wait(timeout_seconds) and caller.is_handled and caller.is_complete

    def record_loss(self) -> None:
        """Have the next flush return False."""
        self._loss = object()

    def stop(self, timeout_seconds: float) -> Caller:
        """Have the thread end within that time, without waiting for it as `close` does."""
        self._closed = True
        if self._stopping is None:
            self._stopping = self._submit(timeout_seconds, stops=True)
        return self._stopping

    def close(self, timeout_seconds: float) -> bool:
        """Have the thread finish its work, and end; return False on timeout."""
        caller = self.stop(timeout_seconds)
        caller.done.wait(timeout_seconds)
        self.abandon()
        return caller.is_handled and caller.is_complete

    def abandon(self) -> None:
        """Let the thread end after what it is doing now."""
        self._is_abandoned = True
        self._signals.put(None)

    def join(self, timeout_seconds: float) -> None:
        """Wait until the thread of a closed poller has ended."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_seconds)

    def _submit(self, timeout_seconds: float, *, stops: bool) -> Caller:
        caller = Caller(TimeLimit(timeout_seconds), stops=stops, reported_loss=self._reported_loss)
        if self.is_own_thread:
            caller.done.set()  # it would wait for itself
            return caller
        if not self._has_items() and not self.is_running and (stops or self._settle is None):
            self._answer(caller, is_handled=True)
            return caller
        self._signals.put(caller)
        try:
            self.start()
        except RuntimeError as error:
            self._boundary.log_failure(f"starting {self._name}", error)
            caller.done.set()
        return caller

    def _has_items(self) -> bool:
        return False

    # -- run by the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_abandoned:
                caller = self._next_signal()
                if caller is None:
                    self._poll_now()
                    continue
                self._answer(caller, is_handled=self._settled(caller))
                if caller.stops:
                    return
                self._poll_at = 0.0  # what was done may have changed the time
        except Empty:  # nothing came for a while
            self._thread = None  # before the last look: an item that is put later starts another thread
            if self._has_items() or not self._signals.empty():
                self.start()
        finally:
            self._signaled = False

    def _next_signal(self) -> Caller | None:
        """Return a caller who waits, or None when it is time to poll. Raises `Empty` if the thread may end."""
        is_due = self._poll_at is not None
        seconds = self._idle if self._poll_at is None else max(0.0, self._poll_at - time.monotonic())
        try:
            caller = self._signals.get(timeout=seconds)
        except Empty:
            if is_due:
                return None
            raise
        if caller is None and self._linger:
            with suppress(Empty):
                return self._signals.get(timeout=self._linger)
        return caller

    def _poll_now(self) -> None:
        self._signaled = False  # before the call: a signal that comes meanwhile is not overlooked
        seconds: float | None = FAILED_SECONDS
        with self._boundary.contain(self._name):
            seconds = self._poll()
        self._poll_at = None if seconds is None else time.monotonic() + seconds

    def _settled(self, caller: Caller) -> bool:
        is_settled = self._settle is None
        if self._settle is not None:
            with self._boundary.contain(self._name):
                is_settled = self._settle(caller.limit, caller.stops)
        return is_settled

    def _answer(self, caller: Caller, *, is_handled: bool) -> None:
        loss = self._loss
        caller.is_complete = loss is caller.reported_loss
        caller.is_handled = is_handled
        self._reported_loss = loss
        caller.done.set()


def _start_over() -> None:
    for poller in list(_pollers):
        poller._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
