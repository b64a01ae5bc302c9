"""The worker: a daemon thread with a bounded queue, for everything that must not delay its caller.

`put` never blocks, never raises and never waits for a lock, so it also works in a signal handler, in a finalizer
and in a child process after a fork. Items are handled in order, in batches. Every failure ends in one boundary.
The weight of what waits may be off for a moment and is corrected whenever the queue is empty.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.forks import ForkLock, follow_forks
from windowpane.effects.time_limit import TimeLimit

FIRST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 30.0

T = TypeVar("T")

_log = logging.getLogger("windowpane")
_workers: weakref.WeakSet[Worker[Any]] = weakref.WeakSet()


class RetryLaterError(Exception):
    """Raised by the work: its items stay first in the queue and are handled again after a pause."""

    def __init__(self, reason: str = "", *, after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds
        """Shortest pause; without it, pauses grow with each failure."""


class ProgressCounter(Protocol):
    """Receives the weight that was accepted and finished so far."""

    def accept(self, number: int) -> None:
        """Receive the accepted weight."""
        ...

    def finish(self, number: int) -> None:
        """Receive the finished weight."""
        ...


class _Request:
    """A caller that waits until everything put so far is handled; with *stops* the thread ends afterwards."""

    def __init__(self, limit: TimeLimit, *, stops: bool, reported_loss: object) -> None:
        self.limit = limit
        self.stops = stops
        self.reported_loss = reported_loss
        """The last loss that a flush had reported when the caller started to wait."""
        self.done = threading.Event()
        self.is_handled = False
        self.is_complete = False
        """No item was lost since the flush before."""


class Worker(Generic[T]):
    """Hands the items of a queue to *work*, on a thread that starts with the first item.

    An item weighs 1, or what *weigh* returns; *work* receives items until they weigh *batch* together, and may
    raise `RetryLaterError`. After any other exception the items are lost.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[T]], object] = lambda _: None,
        *,
        capacity: int = 0,
        weigh: Callable[[T], int] | None = None,
        batch: int = 1,
        linger_seconds: float = 0.0,
        urgent: int | None = None,
        idle_seconds: float | None = None,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
        longest_pause_seconds: float = LONGEST_PAUSE_SECONDS,
        poll: Callable[[], float | None] | None = None,
        settle: Callable[[TimeLimit, bool], bool] | None = None,
        bounds_current: bool = True,
        follows_forks: bool = True,
        fork_waits: bool = False,
        works_without_thread: bool = False,
        on_drop: Callable[[str, int], object] | None = None,
    ) -> None:
        """Make a worker.

        *capacity* bounds the weight that waits, with what is being handled unless *bounds_current* is False. The
        thread waits *linger_seconds* for more items unless *urgent* is reached, and ends after *idle_seconds*
        without any. *poll* is called when the thread starts, when it is woken, and when the seconds are over that
        the call before returned. *settle* is called for a caller that waits, with its time limit and whether the
        worker is being closed; it returns whether all that was handled is done. With *fork_waits* a fork waits
        for what is being handled; the owner calls the methods about forks where *follows_forks* is False.
        *works_without_thread* handles items on the caller's thread where no other can be started. *on_drop* is
        called with a reason (`full`, `closed`, `error`) and a number of items.
        """
        self._name = name
        self._work = work
        self._capacity = capacity
        self._weigh = weigh
        self._batch = batch
        self._linger = linger_seconds
        self._urgent = capacity if urgent is None else urgent
        self._idle = idle_seconds
        self._first_pause = first_pause_seconds
        self._longest_pause = longest_pause_seconds
        self._poll = poll
        self._settle = settle
        self._bounds_current = bounds_current
        self._fork_waits = fork_waits
        self._works_without_thread = works_without_thread
        self._on_drop = on_drop
        self._boundary = ErrorBoundary(_log)
        self._closed = False
        self._is_abandoned = False
        """True after closing has stopped waiting for the thread."""
        self.works_late = False
        """At the end of the process: items that are put after closing are handled on the caller's thread."""
        self._reset()
        if follows_forks:
            _workers.add(self)

    def _reset(self) -> None:
        """Start with an empty queue and no thread; a forked child never handles the parent's items."""
        self._queue: deque[T] = deque()
        self._signals: SimpleQueue[_Request | None] = SimpleQueue()
        self._signaled = self._urgency_signaled = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        """Prevents two threads."""
        self.handling = ForkLock()
        """Held during a batch and a poll, and by a thread that forks."""
        self._accepted = self._finished = 0
        self._current = 0
        """Weight that is being handled, where the capacity does not bound it."""
        self._pause = self._retry_at = 0.0
        self._poll_at: float | None = 0.0
        self._stopping: _Request | None = None
        self._loss = self._reported_loss = object()
        """The last loss, and the last one that a flush has reported; each loss is another object."""
        self.progress: ProgressCounter | None = None

    # -- called by producers ----------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Approximate weight of the items that wait, as far as the capacity bounds it."""
        return max(0, self._accepted - self._finished - self._current)

    @property
    def is_closed(self) -> bool:
        """True if nothing more is accepted."""
        return self._closed

    def has_room(self, weight: int) -> bool:
        """Return whether an item of this weight would be accepted."""
        return not self._closed and self._accepted - self._finished - self._current + weight <= self._capacity

    def put(self, item: T, *, required: bool = False) -> bool:
        """Queue an item; returns False if the queue is full or closed and the item was dropped.

        A *required* item is accepted by a full queue too: the end of something whose start was accepted.
        """
        try:
            weight = 1 if self._weigh is None else self._weigh(item)
            if self._closed or not (required or self.has_room(weight)):
                if self._closed and self.works_late:
                    return self._handle([item], weight)
                self._drop(1)
                return False
            self._accepted += weight
            if self.progress is not None:
                self.progress.accept(self._accepted)
            self._queue.append(item)
            if not self._signaled or self._accepted - self._finished >= self._urgent:
                self._signal()
        except Exception as error:  # noqa: BLE001  # no exception may reach the agent
            self._boundary.log_failure(f"queueing for {self._name}", error)
            return False
        return True

    def put_all(self, items: Sequence[T]) -> int:
        """Queue items that weigh 1, and return how many the queue accepted; the others were dropped."""
        room = 0 if self._closed else min(len(items), max(0, self._capacity - self.waiting))
        try:
            if room:
                self._accepted += room
                self._queue.extend(items[:room])
                self._signal()
            if room < len(items):
                self._drop(len(items) - room)
        except Exception as error:  # noqa: BLE001  # no exception may reach the agent
            self._boundary.log_failure(f"queueing for {self._name}", error)
        return room

    @property
    def is_own_thread(self) -> bool:
        """True on the worker's thread."""
        return threading.current_thread() is self._thread

    @property
    def is_running(self) -> bool:
        """True while the thread runs."""
        return self._has_thread()

    def wake(self) -> None:
        """Have the thread poll now, if it has started."""
        if not self._signaled:
            self._signaled = True
            self._signals.put(None)

    def start(self) -> None:
        """Start the thread before the first item. Raises `RuntimeError` where none can be started."""
        if not self._has_thread():
            self._start()

    def wait(self, timeout_seconds: float) -> bool:
        """Return True when everything put so far was handled; False on timeout, or when an attempt failed."""
        request = self._submit(timeout_seconds, stops=False)
        return request.done.wait(timeout_seconds) and request.is_handled

    def flush(self, timeout_seconds: float) -> bool:
        """Return True when everything put so far was handled; also False, once, after items were lost."""
        request = self._submit(timeout_seconds, stops=False)
        return request.done.wait(timeout_seconds) and request.is_handled and request.is_complete

    def stop(self, timeout_seconds: float) -> _Request:
        """Accept nothing more and have the thread end within that time; `close` waits for it."""
        self._closed = True
        if self._stopping is None:
            self._stopping = self._submit(timeout_seconds, stops=True)
        return self._stopping

    def close(self, timeout_seconds: float) -> bool:
        """Handle what is queued and accept nothing more; False on timeout, after which the rest is dropped."""
        request = self.stop(timeout_seconds)
        request.done.wait(timeout_seconds)
        self.abandon()
        rest = self.take_waiting()
        if rest:
            self._drop(len(rest))
        return request.is_handled and request.is_complete

    def abandon(self) -> None:
        """Let the thread end after what it is handling now."""
        self._is_abandoned = True
        self._signals.put(None)

    def take_waiting(self) -> list[T]:
        """Remove and return the items that wait."""
        items: list[T] = []
        for _ in range(len(self._queue)):
            with suppress(IndexError):  # the thread has taken it
                items.append(self._queue.popleft())
                self._finished += self._weight(items[-1])
        return items

    def record_loss(self) -> None:
        """Have the next flush return False."""
        self._loss = object()

    def record_progress(self) -> None:
        """State again how much is finished."""
        if self.progress is not None:
            self.progress.finish(self._finished)

    def join(self, timeout_seconds: float) -> None:
        """Wait until the thread of a closed worker has ended."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_seconds)

    def before_fork(self) -> None:
        """Wait for the batch that is being handled, and start no other until the fork is done."""
        if self._fork_waits:
            self.handling.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self.handling.after_fork_in_parent()

    def after_fork(self) -> None:
        """Start over in a forked child, without the parent's items."""
        self._reset()

    def _weight(self, item: T) -> int:
        return 1 if self._weigh is None else self._weigh(item)

    def _signal(self) -> None:
        """Wake the thread for what was queued; once more when much waits, which ends its wait for more."""
        if not self._signaled:
            self._signaled = True
            self._signals.put(None)
            if not self._has_thread():
                self._start()
        if not self._urgency_signaled and self._accepted - self._finished >= self._urgent:
            self._urgency_signaled = True
            self._signals.put(None)

    def _drop(self, items: int) -> None:
        self._lose("closed" if self._closed else "full", items)

    def _lose(self, reason: str, items: int) -> None:
        """Count lost items, and have the next flush report them."""
        self.record_loss()
        if self._on_drop is not None:
            with self._boundary.contain("counting dropped items"):
                self._on_drop(reason, items)

    def _has_thread(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return
        try:
            if not self._has_thread():
                self._thread = threading.Thread(target=self._run, name=f"windowpane-{self._name}", daemon=True)
                self._thread.start()
        except RuntimeError:  # no thread can be started while the interpreter shuts down
            self._thread = None
            self._signaled = False
            if not self._works_without_thread:
                raise
            while self._queue and self._handle_queue():
                continue
        finally:
            self._starting.release()

    def _submit(self, timeout_seconds: float, *, stops: bool) -> _Request:
        request = _Request(TimeLimit(timeout_seconds), stops=stops, reported_loss=self._reported_loss)
        if self.is_own_thread:
            request.done.set()  # it would wait for itself
            return request
        if not self._queue and not self._has_thread() and (stops or self._settle is None):
            self._answer(request, is_handled=True)
            return request
        self._signals.put(request)
        try:
            self.start()
        except RuntimeError as error:
            self._boundary.log_failure(f"starting {self._name}", error)
            request.done.set()
            return request
        if not self._has_thread():  # handled on this thread
            self._answer(request, is_handled=not self._queue)
        return request

    def _answer(self, request: _Request, *, is_handled: bool) -> None:
        loss = self._loss
        request.is_complete = loss is request.reported_loss
        request.is_handled = is_handled
        self._reported_loss = loss
        request.done.set()

    # -- run by the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_abandoned:
                request = self._next_request()
                if request is not None:
                    self._complete(request)
                    if request.stops:
                        return
                    continue
                if time.monotonic() >= self._retry_at:
                    self._handle_queue()
                if self._poll is not None:
                    self._poll_at = self._polled(self._poll)
        except Empty:  # nothing came for a while
            self._thread = None  # before the last look: an item that is put later starts another thread
            if self._queue or not self._signals.empty():
                self._start()
        finally:
            self._signaled = self._urgency_signaled = False

    def _next_request(self) -> _Request | None:
        """Wait until items are to be handled, or a caller waits for them; return the caller's request.

        Raises `Empty` when the thread may end.
        """
        due = [self._retry_at] if self._queue and self._retry_at else []
        if self._poll is not None and self._poll_at is not None:
            due.append(self._poll_at)
        try:
            request = self._signals.get(timeout=max(0.0, min(due) - time.monotonic()) if due else self._idle)
        except Empty:
            if due:
                return None
            raise
        if request is None and self._linger:
            with suppress(Empty):
                return self._signals.get(timeout=self._linger)
        return request

    def _complete(self, request: _Request) -> None:
        """Handle what is queued, for one that closes again until its time is up, and answer *request*."""
        is_handled = self._handle_queue()
        while request.stops and not is_handled and not self._is_abandoned:
            pause = max(0.0, self._retry_at - time.monotonic())
            if pause >= request.limit.remaining:
                break
            time.sleep(pause)
            is_handled = self._handle_queue()
        if self._settle is not None:
            is_settled = False
            with self._boundary.contain(self._name):
                is_settled = self._settle(request.limit, request.stops)
            is_handled = is_handled and is_settled
        self._answer(request, is_handled=is_handled)

    def _polled(self, poll: Callable[[], float | None]) -> float | None:
        """Poll, and return the time of the next call; None if only a caller wakes the thread."""
        self._signaled = False  # before the call: one that wakes it meanwhile is not overlooked
        seconds: float | None = self._longest_pause
        with self._boundary.contain(self._name), self._lock():
            seconds = poll()
        return None if seconds is None else time.monotonic() + seconds

    def _handle_queue(self) -> bool:
        """Handle the items that are queued now; those put meanwhile send another signal."""
        self._signaled = self._urgency_signaled = False
        remaining = len(self._queue)
        while remaining > 0:
            items, weight = self._next_items(remaining)
            remaining -= len(items)
            if not items:
                break
            if not self._handle(items, weight):
                return False
        if not self._queue:
            self._accepted = self._finished
        return True

    def _next_items(self, maximum: int) -> tuple[list[T], int]:
        items: list[T] = []
        weight = 0
        while len(items) < maximum and weight < self._batch:
            try:
                items.append(self._queue.popleft())
            except IndexError:  # closing has dropped the rest
                break
            weight += self._weight(items[-1])
        return items, weight

    def _handle(self, items: list[T], weight: int) -> bool:
        """Hand items to the work; returns False if they wait for another attempt."""
        if not self._bounds_current:
            self._current = weight
        with self._lock():
            try:
                self._work(items)
            except RetryLaterError as error:
                return self._postpone(items, error.after_seconds)
            except Exception as error:  # noqa: BLE001  # later items are handled
                self._boundary.log_failure(self._name, error)
                self._lose("error", len(items))
            except BaseException:
                self._lose("error", len(items))
                self._finished, self._current = self._finished + weight, 0
                raise
            self._pause = self._retry_at = 0.0
        self._finished, self._current = self._finished + weight, 0
        self.record_progress()
        return True

    def _lock(self) -> AbstractContextManager[object]:
        return self.handling.lock if self._fork_waits else nullcontext()

    def _postpone(self, items: list[T], after_seconds: float) -> bool:
        if self._is_abandoned:
            self._lose("closed", len(items))
            return False
        self._queue.extendleft(reversed(items))
        self._current = 0
        self._pause = min(max(2 * self._pause, self._first_pause), self._longest_pause)
        self._retry_at = time.monotonic() + max(self._pause, after_seconds)
        return False


follow_forks(_workers)
