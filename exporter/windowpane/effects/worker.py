"""The worker: a thread with a bounded queue, for everything that must not delay its caller.

`put` never blocks, never raises and never waits for a lock, so it also works in a signal handler, in a finalizer
and in a child process after a fork. Items are handled in order, in batches. Every failure ends in one
boundary. The weight of what waits may be off for a moment and is corrected whenever the queue is empty.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

from windowpane.effects.poller import Caller, Poller
from windowpane.effects.time_limit import TimeLimit

FIRST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 30.0

T = TypeVar("T")


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
