"""Poller and worker: order, batches, bounds, retries, polls, and the ends of their threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from windowpane.effects import worker as worker_module
from windowpane.effects.worker import Poller, RetryLaterError, TimeLimit, Worker


@pytest.fixture
def build() -> Iterator[Callable[..., Worker[int]]]:
    """Builds workers and closes them after the test."""
    made: list[Worker[int]] = []

    def make(work: Callable[[list[int]], object] = len, **options: Any) -> Worker[int]:
        made.append(Worker("test", work, **{"capacity": 1_000} | options))
        return made[-1]

    yield make
    for worker in made:
        worker.close(2)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "FIRST_PAUSE_SECONDS", 0.01)


def put_all(worker: Worker[int], items: Iterable[int]) -> list[bool]:
    return [worker.put(item) for item in items]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_items_are_handled_in_order_in_batches(build: Callable[..., Worker[int]]) -> None:
    """No batch exceeds its weight, and a flush ends the wait for more items."""
    batches: list[list[int]] = []
    worker = build(batches.append, batch=4, linger_seconds=60)
    assert put_all(worker, range(10)) == [True] * 10

    assert worker.flush(10)
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert worker.waiting == 0


def test_what_does_not_fit_is_dropped(build: Callable[..., Worker[int]]) -> None:
    drops: list[tuple[str, int]] = []
    worker = build(capacity=3, linger_seconds=60, on_drop=lambda *drop: drops.append(drop))

    assert put_all(worker, range(5)) == [True, True, True, False, False]
    assert drops == [("full", 1), ("full", 1)]
    assert [worker.flush(10), worker.flush(10)] == [False, True]


@pytest.mark.usefixtures("short_pauses")
def test_items_that_are_retried_stay_first(build: Callable[..., Worker[int]]) -> None:
    """A batch that is to be handled later holds up those behind it, and nothing is lost or repeated."""
    attempts, handled = [3], list[int]()

    def work(items: list[int]) -> None:
        if attempts[0]:
            attempts[0] -= 1
            raise RetryLaterError
        handled.extend(items)

    worker = build(work)
    put_all(worker, range(20))

    until(lambda: handled == list(range(20)))
    assert worker.flush(10)


def test_a_flush_tries_at_once_and_reports_that_items_wait(build: Callable[..., Worker[int]]) -> None:
    """It returns after the failed attempt, without waiting for the pause to end."""
    calls: list[float] = []

    def fail(_: list[int]) -> None:
        calls.append(time.monotonic())
        raise RetryLaterError(after_seconds=60)

    worker = build(fail)
    worker.put(1)
    until(lambda: len(calls) == 1)
    started = time.monotonic()

    assert not worker.flush(10)
    assert len(calls) == 2
    assert time.monotonic() - started < 5


@pytest.mark.usefixtures("short_pauses")
def test_what_a_flush_could_not_handle_is_retried_without_another_signal(
    build: Callable[..., Worker[int]],
) -> None:
    attempts, handled, polls = [2], list[int](), list[None]()

    def work(items: list[int]) -> None:
        if attempts[0]:
            attempts[0] -= 1
            raise RetryLaterError
        handled.extend(items)

    worker = build(work, linger_seconds=60, poll=lambda: polls.append(None))
    worker.start()
    until(lambda: bool(polls))
    worker.put(1)

    assert not worker.flush(10)
    until(lambda: handled == [1])


@pytest.mark.usefixtures("short_pauses")
def test_closing_counts_items_that_still_wait(build: Callable[..., Worker[int]]) -> None:
    """Work that keeps failing holds closing until its timeout; what it had is counted as dropped."""
    drops: list[tuple[str, int]] = []

    def fail(_: list[int]) -> None:
        raise RetryLaterError

    worker = build(fail, batch=2, on_drop=lambda *drop: drops.append(drop))
    put_all(worker, range(5))

    assert not worker.close(0.1)
    until(lambda: sum(items for _, items in drops) == 5)
    assert {reason for reason, _ in drops} == {"closed"}


def test_failed_items_are_lost_and_later_ones_handled(build: Callable[..., Worker[int]]) -> None:
    """An exception costs its batch, which is counted and makes one flush return False."""
    drops: list[tuple[str, int]] = []
    handled: list[int] = []
    worker = build(lambda items: handled.append(6 // items[0]), on_drop=lambda *drop: drops.append(drop))
    put_all(worker, [0, 1, 2])

    assert not worker.flush(10)
    assert (handled, drops) == ([6, 3], [("error", 1)])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_replaced(build: Callable[..., Worker[int]]) -> None:
    """An exception that nothing contains costs the items in progress only."""
    handled: list[int] = []

    def work(items: list[int]) -> None:
        if items == [0]:
            raise SystemExit
        handled.extend(items)

    worker = build(work)
    worker.put(0)
    until(lambda: not worker.is_running)
    worker.put(1)

    assert not worker.flush(10), "once: an item was lost"
    assert handled == [1]
    assert worker.waiting == 0


def test_an_idle_thread_ends_and_another_starts(build: Callable[..., Worker[int]]) -> None:
    """Items that come while a thread ends are handled by the next one."""
    handled: list[int] = []
    worker = build(handled.extend, idle_seconds=0.001)
    for number in range(200):
        worker.put(number)
        time.sleep(0.001 if number % 2 else 0)

    assert worker.flush(10)
    assert handled == list(range(200))
    until(lambda: not worker.is_running)


def test_an_item_that_comes_during_a_start_is_handled(
    build: Callable[..., Worker[int]],
) -> None:
    """The thread that was started has ended before the lock of its start is free."""
    handled: list[int] = []
    worker = build(handled.extend, idle_seconds=0.001)

    class HeldLock:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.is_first = True

        def acquire(self, *, blocking: bool) -> bool:
            return self.lock.acquire(blocking=blocking)

        def release(self) -> None:
            if self.is_first:
                self.is_first = False
                until(lambda: not worker.is_running)
                worker.put(1)
            self.lock.release()

    vars(worker)["_starting"] = HeldLock()
    worker.put(0)

    until(lambda: handled == [0, 1])


def test_a_put_where_no_thread_can_be_started_does_not_raise(
    build: Callable[..., Worker[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the interpreter shuts down."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    worker = build()

    assert not worker.put(1)
    with pytest.raises(RuntimeError):
        worker.start()


def test_it_polls_when_woken_and_when_time_is_over() -> None:
    """A poll returns the seconds until the next one; after None only a caller wakes it; closing ends it."""
    polls: list[str] = []
    pauses: list[float | None] = [0.0, 0.001, None]

    def poll() -> float | None:
        polls.append("poll")
        return pauses.pop(0) if pauses else None

    def settle(_: TimeLimit, is_last: bool) -> bool:  # as the worker calls it
        polls.append("end" if is_last else "flush")
        return True

    poller = Poller("test", poll, settle=settle)
    poller.start()
    until(lambda: len(polls) == 3)
    poller.wake()
    until(lambda: len(polls) == 4)

    assert poller.close(10)
    assert polls == [*["poll"] * 4, "end"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_has_an_empty_queue_and_its_own_thread(build: Callable[..., Worker[int]]) -> None:
    """The parent's items are handled once, in the parent."""
    handled: list[int] = []
    worker = build(handled.extend, linger_seconds=60)
    worker.put(1)
    child = os.fork()
    if child == 0:
        worker.put(2)
        os._exit(0 if worker.flush(10) and handled == [2] else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert worker.flush(10)
    assert handled == [1]
