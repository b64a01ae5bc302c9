"""Bodies of requests share memory, of which a client that sends nothing keeps none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from windowpane.outputs.http import request_bodies
from windowpane.outputs.http.request_bodies import MAXIMUM_BODY_BYTES, BodyBudget, BodyError, BodyReader

DECLARED = {"content-length": str(MAXIMUM_BODY_BYTES)}
Receive = Callable[[], Awaitable[Any]]


class Client:
    """A client that sends *pieces* of a body, and then nothing more."""

    def __init__(self, pieces: Iterable[bytes] = ()) -> None:
        self._pieces = iter(pieces)
        self.is_idle = asyncio.Event()

    async def receive(self) -> Any:
        """Return the next piece."""
        piece = next(self._pieces, None)
        if piece is None:
            self.is_idle.set()
            await asyncio.Event().wait()
        return {"type": "http.request", "body": piece, "more_body": True}


async def whole(budget: BodyBudget, body: bytes = b"body") -> bytes:
    """Return the body of a client that sends it at once."""

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    reader = BodyReader(budget)
    try:
        return await reader.read({"content-length": str(len(body))}, receive)
    finally:
        reader.close()


def with_idle_clients(
    then: Callable[[BodyBudget, list[asyncio.Task[bytes]]], Awaitable[None]], *pieces: Iterable[bytes]
) -> None:
    """Run *then* while a client with each of *pieces* is idle."""

    async def run() -> None:
        budget = BodyBudget()
        clients = [Client(sent) for sent in pieces]
        tasks = [asyncio.create_task(BodyReader(budget).read(DECLARED, one.receive)) for one in clients]
        for client in clients:
            await client.is_idle.wait()
        await then(budget, tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_uploads_that_send_nothing_keep_no_one_out() -> None:
    async def check(budget: BodyBudget, _: list[asyncio.Task[bytes]]) -> None:
        assert await whole(budget) == b"body"

    with_idle_clients(check, *([()] * 20))


def test_an_idle_upload_makes_room_the_one_that_waited_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "MAXIMUM_WAITING_BYTES", 200)
    monkeypatch.setattr(request_bodies, "IDLE_SECONDS", 0.0)

    async def check(budget: BodyBudget, tasks: list[asyncio.Task[bytes]]) -> None:
        assert await whole(budget, b"x" * 30) == b"x" * 30
        with pytest.raises(BodyError) as refused:
            await tasks[0]
        assert refused.value.status == 429
        assert not tasks[1].done()
        assert await whole(budget, b"x" * 60) == b"x" * 60  # the memory of the first is free again

    with_idle_clients(check, [b"a" * 20, b"a" * 30], [b"b" * 40])


def test_an_upload_in_progress_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "MAXIMUM_WAITING_BYTES", 200)
    monkeypatch.setattr(request_bodies, "IDLE_SECONDS", 60.0)

    async def check(budget: BodyBudget, tasks: list[asyncio.Task[bytes]]) -> None:
        with pytest.raises(BodyError, match="too many requests") as refused:
            await whole(budget)
        assert refused.value.status == 429
        assert not tasks[0].done()

    with_idle_clients(check, [b"a" * 99])
