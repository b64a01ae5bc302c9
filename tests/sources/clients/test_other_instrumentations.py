"""Clients whose class has a method of another library, observed with all clients of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.providers.loopback import LoopbackProvider, loopback_provider

import windowpane
from windowpane.outputs.runtime.start import Runtime

MESSAGES: Any = [{"role": "user", "content": "Hello."}]


@pytest.fixture
def outputs(tmp_path: Path) -> Iterator[Runtime]:
    yield windowpane.start(port=0, store=tmp_path / "windowpane.db", notify=[])
    windowpane.stop()


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with loopback_provider() as running:
        yield running


@pytest.mark.parametrize(
    "calls_the_base", [False, True], ids=["the former method", "the method of the base class"]
)
def test_a_request_method_of_another_library_hides_no_call(
    calls_the_base: bool, provider: LoopbackProvider, outputs: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = openai.OpenAI.request

    def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = super(openai.OpenAI, self).request if calls_the_base else former.__get__(self)
        return called(*args, **kwargs)

    monkeypatch.setattr(openai.OpenAI, "request", request, raising=False)
    with windowpane.observe_everything(), openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1") as client:
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
    assert outputs.flush()
    assert outputs.store is not None

    assert [row.turns for row in outputs.store.sessions()] == [1]
    assert openai.OpenAI.request is request


def test_a_cancelled_stream_ends_its_turn(provider: LoopbackProvider, outputs: Runtime) -> None:
    client = windowpane.observe(openai.AsyncOpenAI(api_key="k", base_url=f"{provider.url}/v1"))
    provider.released.clear()

    async def read() -> None:
        started = asyncio.Event()

        async def consume() -> None:
            async for _ in await client.chat.completions.create(model="gpt-4o", messages=MESSAGES, stream=True):
                started.set()

        reading = asyncio.create_task(consume())
        await started.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        provider.released.set()
        await client.chat.completions.create(model="gpt-4o", messages=[*MESSAGES, *MESSAGES])
        await client.close()

    asyncio.run(read())
    assert outputs.flush()
    assert outputs.store is not None

    assert [row.turns for row in outputs.store.sessions()] == [2]
