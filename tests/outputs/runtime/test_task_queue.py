"""The queue of work taken off the agent's thread: order, bounds, failures and forks."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from windowpane.outputs.runtime.task_queue import TaskQueue


@pytest.fixture
def build() -> Iterator[Callable[..., TaskQueue]]:
    """Builds queues and closes them after the test."""
    made: list[TaskQueue] = []

    def make(**options: object) -> TaskQueue:
        queue = TaskQueue("test", **options)  # type: ignore[arg-type]
        made.append(queue)
        return queue

    yield make
    for queue in made:
        queue.close(2)


def test_tasks_run_in_order_on_another_thread(build: Callable[..., TaskQueue]) -> None:
    queue = build(linger_seconds=60)
    ran: list[tuple[int, str]] = []
    for number in range(1_000):
        assert queue.put("counting", lambda number=number: ran.append((number, threading.current_thread().name)))

    assert queue.flush(10)
    assert [number for number, _ in ran] == list(range(1_000))
    assert {name for _, name in ran} == {"windowpane-test"}
    assert queue.waiting == 0


def test_tasks_run_without_a_flush(build: Callable[..., TaskQueue]) -> None:
    done = threading.Event()
    build(linger_seconds=0.01).put("waiting", done.set)
    assert done.wait(10)

    many = threading.Event()
    queue = build(linger_seconds=60, capacity=10)
    queue.put("one", many.set, weight=6)
    assert many.wait(10)


def test_a_failing_task_does_not_stop_the_others(
    build: Callable[..., TaskQueue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = build(linger_seconds=0.01)
    done = threading.Event()
    queue.put("dividing", lambda: 1 // 0)
    queue.put("waiting", done.set)

    assert queue.flush(10)
    assert done.is_set()
    assert "dividing failed: ZeroDivisionError" in caplog.text


def test_a_full_queue_drops_and_counts(build: Callable[..., TaskQueue], caplog: pytest.LogCaptureFixture) -> None:
    dropped: list[str] = []
    queue = build(capacity=10, count_drop=dropped.append)
    running, proceed = threading.Event(), threading.Event()
    ran: list[int] = []

    def hold() -> None:
        running.set()
        proceed.wait(30)

    queue.put("holding", hold, weight=8)
    assert running.wait(10)
    with caplog.at_level(logging.WARNING, logger="windowpane"):
        assert [queue.put("next", lambda: ran.append(1), weight=5) for _ in range(3)] == [False] * 3
        assert queue.put("end", lambda: ran.append(2), required=True)
    proceed.set()

    assert not queue.flush(10), "once: tasks were dropped"
    assert queue.flush(10)
    assert ran == [2]
    assert dropped == ["full"] * 3
    assert caplog.text.count("was full") == 1
    assert queue.put("later", lambda: ran.append(3), weight=5)


def test_close_is_bounded_and_accepts_nothing_more(build: Callable[..., TaskQueue]) -> None:
    dropped: list[str] = []
    queue = build(linger_seconds=0, count_drop=dropped.append)
    proceed = threading.Event()
    ran: list[int] = []
    running = threading.Event()
    queue.put("hanging", lambda: (running.set(), proceed.wait(30)))
    assert running.wait(10)
    queue.put("waiting", lambda: ran.append(1))

    assert not queue.close(0.05)
    assert not queue.put("late", lambda: ran.append(2), required=True)
    assert dropped == ["closed"] * 2
    proceed.set()
    assert not ran


def test_put_from_a_task_is_no_deadlock(build: Callable[..., TaskQueue]) -> None:
    queue = build(linger_seconds=0)
    seen: list[bool] = []
    queue.put("outer", lambda: queue.put("inner", lambda: seen.append(queue.flush(1))))

    assert queue.flush(10)
    assert queue.flush(10)
    assert seen == [False]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_with_an_empty_queue(build: Callable[..., TaskQueue]) -> None:
    queue = build(linger_seconds=60)
    ran: list[str] = []
    queue.put("parent", lambda: ran.append("parent"))
    pid = os.fork()
    if pid == 0:
        queue.put("child", lambda: ran.append("child"))
        ok = queue.flush(10) and ran == ["child"]
        os._exit(0 if ok else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert queue.flush(10)
    assert ran == ["parent"]


def test_a_flush_that_comes_while_the_worker_finishes_is_not_overlooked(build: Callable[..., TaskQueue]) -> None:
    queue = build(linger_seconds=60)
    results: list[bool] = []
    came, ran, flush_arrived = threading.Event(), threading.Event(), threading.Event()

    class Tasks(deque[Any]):
        def __bool__(self) -> bool:
            if not len(self) and ran.is_set() and not came.is_set():
                came.set()
                flushing.start()
                assert flush_arrived.wait(10)
                return False
            return len(self) > 0

    class Signals(SimpleQueue[Any]):
        def put(self, item: object, *arguments: Any) -> None:
            super().put(item, *arguments)
            if item is not None:
                flush_arrived.set()

    flushing = threading.Thread(target=lambda: results.append(queue.flush(5)))
    queue.worker._queue, queue.worker._signals = Tasks(), Signals()
    queue.put("work", ran.set)
    assert queue.flush(10)
    assert came.wait(10)
    flushing.join()

    assert results == [True]
