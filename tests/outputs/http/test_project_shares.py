"""Capacity and turns that projects share."""

from __future__ import annotations

import asyncio

import pytest

from windowpane.outputs.http.project_shares import RoundRobin, SharedCapacity, Turns


def test_a_project_may_use_at_most_what_remains_free_for_the_others() -> None:
    capacity = SharedCapacity(100)

    assert [capacity.take("noisy", 10) for _ in range(6)] == [True] * 5 + [False]
    assert capacity.take("small", 25)
    assert not capacity.take("small", 1)
    assert not capacity.take("third", 13)
    assert capacity.take("third", 12)
    capacity.give_back("noisy", 50)
    assert capacity.take("small", 15)
    assert capacity.used == 52


def test_the_first_batch_of_a_project_can_always_be_taken() -> None:
    capacity = SharedCapacity(10)

    assert capacity.take_first("large", 50)
    assert not capacity.take_first("large", 50)
    assert capacity.take_first("other", 1)
    capacity.give_back("large", 50)
    assert capacity.take_first("large", 50)


def test_projects_are_served_in_turn_and_one_that_was_not_served_comes_first() -> None:
    queue = RoundRobin[str]()
    for number in range(3):
        queue.put("noisy", f"noisy {number}")
    first = queue.take()
    queue.put("small", "small 0")
    queue.put("third", "third 0")
    queue.put("small", "small 1")

    assert first == "noisy 0"
    assert queue.next == "small 0"
    assert [queue.take() for _ in range(5)] == ["small 0", "third 0", "noisy 1", "small 1", "noisy 2"]
    assert not queue


def test_slots_are_given_in_turn_and_a_cancelled_request_takes_none() -> None:
    order: list[str] = []

    async def run() -> None:
        turns, go = Turns(1), asyncio.Event()

        async def request(name: str) -> None:
            async with turns.slot(name.split(maxsplit=1)[0]):
                order.append(name)
                await go.wait()

        names = ("noisy 0", "noisy 1", "noisy 2", "gone 0", "small 0", "noisy 3")
        tasks = {name: asyncio.create_task(request(name)) for name in names}
        await asyncio.sleep(0)
        tasks["gone 0"].cancel()
        tasks["noisy 0"].cancel()
        go.set()
        await asyncio.wait(tasks.values())
        async with asyncio.timeout(5), turns.slot("late"):
            order.append("late")

    asyncio.run(run())

    assert order == ["noisy 0", "small 0", "noisy 1", "noisy 2", "noisy 3", "late"]


def test_a_request_that_is_cancelled_as_it_gets_a_slot_passes_it_on() -> None:
    async def run() -> None:
        turns = Turns(1)

        async def request() -> None:
            async with turns.slot("any"):
                pytest.fail("it was cancelled")

        async with turns.slot("first"):
            task = asyncio.create_task(request())
            await asyncio.sleep(0)
        task.cancel()  # its slot is given, and it has not run since
        await asyncio.wait([task])
        async with asyncio.timeout(5), turns.slot("late"):
            pass

    asyncio.run(run())
