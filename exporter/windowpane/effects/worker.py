"""Threads for everything that must not delay its caller: a poller, and the worker, which has a bounded queue too.

`put` never blocks, never raises and never waits for a lock, so it also works in a signal handler, in a finalizer
and in a child process after a fork. Items are handled in order, in batches. Every failure ends in one
boundary. The weight of what waits may be off for a moment and is corrected whenever the queue is empty.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, Generic, Protocol, TypeVar

from windowpane.effects.error_boundary import ErrorBoundary

FAILED_SECONDS: Final = 30.0
"""Pause after a call that failed."""
FIRST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 30.0

T = TypeVar("T")

_log = logging.getLogger("windowpane")
_pollers: weakref.WeakSet[Poller] = weakref.WeakSet()


class TimeLimit:
    """The rest of a time of *seconds*, by a clock that is never set."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Remaining seconds; 0 when the time is up."""
        return max(0.0, self._end - time.monotonic())

    def share(self, ratio: float) -> float:
        """Return this part of the remaining seconds."""
        return ratio * self.remaining


def run_within(seconds: float, call: Callable[[], object]) -> bool:
    """Run *call*, which raises nothing, for at most *seconds*; return False if it has not ended by then."""
    thread = threading.Thread(target=call, name="windowpane-limited", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be started while the interpreter shuts down
        call()
        return True
    thread.join(seconds)
    return not thread.is_alive()


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
        thread = self._thread  # read once: a thread that ends takes it away
        return thread is not None and thread.is_alive()

    @property
    def is_own_thread(self) -> bool:
        """True on this thread."""
        return threading.current_thread() is self._thread

    def start(self) -> None:
        """Start the thread unless it runs. Raises `RuntimeError` where none can be started.

        Who finds the lock taken does not wait for it: its holder looks again after the release.
        """
        while not self.is_running and self._starting.acquire(blocking=False):
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
            if not self._is_needed():
                return

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

    def _is_needed(self) -> bool:
        return not self._is_abandoned and (self._has_items() or not self._signals.empty())

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
            if self._is_needed():
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
        try:
            seconds = self._poll()
        except Exception as error:  # noqa: BLE001  # the thread continues
            self._boundary.log_failure(self._name, error)
        self._poll_at = None if seconds is None else time.monotonic() + seconds

    def _settled(self, caller: Caller) -> bool:
        is_settled = self._settle is None
        if self._settle is not None:
            try:
                is_settled = self._settle(caller.limit, caller.stops)
            except Exception as error:  # noqa: BLE001  # the caller is answered
                self._boundary.log_failure(self._name, error)
        return is_settled

    def _answer(self, caller: Caller, *, is_handled: bool) -> None:
        loss = self._loss
        caller.is_complete = loss is caller.reported_loss
        caller.is_handled = is_handled
        self._reported_loss = loss
        caller.done.set()


class RetryLaterError(Exception):
    """Raised by the work: its items stay first in the queue and are handled again after a pause."""

    def __init__(self, reason: str = "", *, after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds
        """Shortest pause; without it, pauses grow with each failure."""


class Backoff:
    """Pauses before further attempts, which double with each failure; a random part of them spreads the load."""

    def __init__(self) -> None:
        self._pause = 0.0
        self.retry_at = 0.0
        """Time of the next attempt, by the monotonic clock; 0 after a success."""

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the next attempt."""
        return max(0.0, self.retry_at - time.monotonic())

    def fail(self, *, after_seconds: float = 0.0) -> None:
        """Pause after a failed attempt, for *after_seconds* at least."""
        self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        pause = random.uniform(0.5, 1.0) * self._pause  # noqa: S311  # spreads the load
        self.retry_at = time.monotonic() + max(pause, after_seconds)

    def succeed(self) -> None:
        """Start again with the shortest pause."""
        self._pause = self.retry_at = 0.0


class ProgressCounter(Protocol):
    """Receives the weight that was accepted and finished so far."""

    def accept(self, number: int) -> None:
        """Receive the accepted weight."""
        ...

    def finish(self, number: int) -> None:
        """Receive the finished weight."""
        ...


class Worker(Poller, Generic[T]):
    """Hands the items of a queue to *work*, on a thread that starts with the first item.

    *work* receives items until they weigh *batch* together, and may raise `RetryLaterError`. After any other
    exception the items are lost. *capacity* bounds the weight of the items that are not handled yet. The thread
    waits *linger_seconds* for more items, unless they weigh *urgent*, and ends after *idle_seconds* without any.
    *poll* and *settle* are called after the queue, as by a `Poller`. *on_drop* is called with a reason (`full`,
    `closed`, `error`) and a number of items.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[T]], object],
        *,
        capacity: int,
        batch: int = 1,
        linger_seconds: float = 0.0,
        urgent: int | None = None,
        idle_seconds: float | None = None,
        poll: Callable[[], float | None] | None = None,
        settle: Callable[[TimeLimit, bool], bool] | None = None,
        on_drop: Callable[[str, int], object] | None = None,
    ) -> None:
        self._work = work
        self._capacity = capacity
        self._batch = batch
        self._urgent = capacity if urgent is None else urgent
        self._poll_too = poll
        self._on_drop = on_drop
        super().__init__(
            name, self._poll_queue, settle=settle, linger_seconds=linger_seconds, idle_seconds=idle_seconds
        )

    def _reset(self) -> None:
        """Start with an empty queue; a forked child never handles the parent's items."""
        super()._reset()
        self._queue: deque[tuple[T, int]] = deque()
        """Items with their weights."""
        self._urgency_signaled = False
        self._accepted = self._finished = 0
        self._backoff = Backoff()
        self.progress: ProgressCounter | None = None

    @property
    def waiting(self) -> int:
        """Approximate weight of the items that are not handled yet."""
        return max(0, self._accepted - self._finished)

    def has_room(self, weight: int) -> bool:
        """Return whether an item of this weight would be accepted."""
        return not self._closed and self._accepted - self._finished + weight <= self._capacity

    def put(self, item: T, *, weight: int = 1, required: bool = False) -> bool:
        """Queue an item; returns False if the queue is full or closed and the item was dropped.

        A *required* item is accepted by a full queue too: the end of something whose start was accepted.
        """
        try:
            if self._closed or not (required or self.has_room(weight)):
                self._lose("closed" if self._closed else "full", 1)
                return False
            self._accepted += weight
            if self.progress is not None:
                self.progress.accept(self._accepted)
            self._queue.append((item, weight))
            if not self._signaled:
                self.wake()
                self.start()
            if not self._urgency_signaled and self._accepted - self._finished >= self._urgent:
                self._urgency_signaled = True
                self._signals.put(None)  # the second signal ends the wait for more
        except Exception as error:  # noqa: BLE001  # no exception may reach the agent
            self._boundary.log_failure(f"queueing for {self._name}", error)
            return False
        return True

    def close(self, timeout_seconds: float) -> bool:
        """Handle what is queued and accept nothing more; False on timeout, after which the rest is dropped."""
        is_handled = super().close(timeout_seconds)
        rest = self.take_waiting()
        if rest:
            self._lose("closed", len(rest))
        return is_handled

    def take_waiting(self) -> list[T]:
        """Remove and return the items that wait."""
        items: list[T] = []
        for _ in range(len(self._queue)):
            with suppress(IndexError):  # the thread has taken it
                item, weight = self._queue.popleft()
                items.append(item)
                self._finished += weight
        return items

    def record_progress(self) -> None:
        """State again how much is finished."""
        if self.progress is not None:
            self.progress.finish(self._finished)

    def _lose(self, reason: str, items: int) -> None:
        """Count lost items, and have the next flush report them."""
        self.record_loss()
        if self._on_drop is not None:
            with self._boundary.contain("counting dropped items"):
                self._on_drop(reason, items)

    def _has_items(self) -> bool:
        return bool(self._queue)

    # -- run by the thread ------------------------------------------------------------------------------------

    def _poll_queue(self) -> float | None:
        """Handle the queue unless it is retried later, and poll; return the seconds to the next time."""
        if not self._backoff.remaining_seconds:
            self._handle_queue()
        seconds = None if self._poll_too is None else self._poll_too()
        if self._queue and self._backoff.retry_at:
            pause = self._backoff.remaining_seconds
            return pause if seconds is None else min(pause, seconds)
        return seconds

    def _settled(self, caller: Caller) -> bool:
        """Handle what is queued, for one that closes again until its time is up."""
        is_handled = self._handle_queue()
        while caller.stops and not is_handled and not self._is_abandoned:
            pause = self._backoff.remaining_seconds
            if pause >= caller.limit.remaining:
                break
            time.sleep(pause)
            is_handled = self._handle_queue()
        return super()._settled(caller) and is_handled

    def _handle_queue(self) -> bool:
        """Handle the items that are queued now; those put meanwhile send another signal."""
        self._signaled = self._urgency_signaled = False
        remaining = len(self._queue)
        while remaining > 0:
            taken, weight = self._next_batch(remaining)
            remaining -= len(taken)
            if not taken:
                break
            if not self._handle(taken, weight):
                return False
        if not self._queue:
            self._accepted = self._finished
        return True

    def _next_batch(self, maximum: int) -> tuple[list[tuple[T, int]], int]:
        taken: list[tuple[T, int]] = []
        weight = 0
        while len(taken) < maximum and weight < self._batch:
            try:
                taken.append(self._queue.popleft())
            except IndexError:  # closing has dropped the rest
                break
            weight += taken[-1][1]
        return taken, weight

    def _handle(self, taken: list[tuple[T, int]], weight: int) -> bool:
        """Hand items to the work; returns False if they wait for another attempt."""
        try:
            self._work([item for item, _ in taken])
        except RetryLaterError as error:
            if self._is_abandoned:
                self._lose("closed", len(taken))
            else:
                self._queue.extendleft(reversed(taken))
                self._backoff.fail(after_seconds=error.after_seconds)
            return False
        except BaseException as error:
            self._lose("error", len(taken))
            if not isinstance(error, Exception):
                self._finished += weight
                raise  # the thread ends
            self._boundary.log_failure(self._name, error)  # later items are handled
        self._backoff.succeed()
        self._finished += weight
        self.record_progress()
        return True


def _start_over() -> None:
    for poller in list(_pollers):
        poller._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
