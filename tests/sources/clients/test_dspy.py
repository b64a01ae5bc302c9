"""The transports of DSPy's own client, by classes of the same form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from windowpane.models.wire.calls import Shape
from windowpane.models.wire.replies import FailedReplyError, Reply
from windowpane.sources.clients.dspy import watch_all_dspy

REPLY = {"choices": [{"message": {"role": "assistant", "content": "Yes."}}], "usage": {"prompt_tokens": 9}}


class Call:
    """The record of a call, with its reply as the worker reads it."""

    def __init__(self, shape: Shape, body: bytes, model: str) -> None:
        self.shape, self.body, self.model = shape, body, model
        self.reply: Reply | Exception | None = None

    def before_return(self) -> None: ...

    def record_reply(self, pieces: list[bytes], read: Callable[[list[bytes], Shape], Reply]) -> None:
        if self.reply is None:
            try:
                self.reply = read(pieces, self.shape)
            except FailedReplyError as error:
                self.reply = error


class Client:
    """A watched client that records its calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def start(self, shape: Shape, body: bytes, *, model: str) -> Call:
        self.calls.append(Call(shape, body, model))
        return self.calls[-1]


def transports(status: int, chunks: list[bytes]) -> Any:
    """Return a module with both classes of transports, which respond with *chunks*."""

    def pieces() -> Iterator[bytes]:
        yield from chunks

    async def async_pieces() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def released(_consumed: bool) -> str:
        return "released"

    class StdlibTransport:
        def stream(self, request: object) -> Any:
            return SimpleNamespace(status=status, _chunks=pieces(), _release=lambda _consumed: "released")

    class StdlibAsyncTransport:
        async def _do_stream(self, request: object) -> Any:
            return SimpleNamespace(status=status, _chunks=async_pieces(), _release=released)

    module: Any = ModuleType("transports")
    module.StdlibTransport, module.StdlibAsyncTransport = StdlibTransport, StdlibAsyncTransport
    return module


def request(path: str = "/v1/chat/completions", method: str = "POST") -> Any:
    return SimpleNamespace(url=f"https://api.example.com{path}", method=method, body=b"{}")


def test_a_reply_is_recorded_as_it_is_read_or_released() -> None:
    text = json.dumps(REPLY).encode()
    module, client = transports(200, [text[:20], text[20:]]), Client()
    (restore, _) = watch_all_dspy(module, client)  # type: ignore[arg-type]
    response = module.StdlibTransport().stream(request())
    assert b"".join(response._chunks) == text

    async def read() -> None:
        response = await module.StdlibAsyncTransport()._do_stream(request())
        assert b"".join([chunk async for chunk in response._chunks]) == text
        assert await response._release(True) == "released"

    asyncio.run(read())
    unread = module.StdlibTransport().stream(request())
    assert unread._release(False) == "released"
    restore()
    module.StdlibTransport().stream(request())

    texts = [[part.text for part in call.reply.parts] for call in client.calls if isinstance(call.reply, Reply)]
    assert texts == [["Yes."], ["Yes."], []]


def test_an_error_of_the_provider_is_a_failure_with_its_status() -> None:
    module, client = transports(400, [b'{"error": "too long"}']), Client()
    watch_all_dspy(module, client)  # type: ignore[arg-type]
    list(module.StdlibTransport().stream(request())._chunks)

    assert str(client.calls[0].reply) == '400 {"error": "too long"}'


def test_an_error_without_a_body_is_a_failure() -> None:
    module, client = transports(429, []), Client()
    watch_all_dspy(module, client)  # type: ignore[arg-type]
    list(module.StdlibTransport().stream(request())._chunks)

    assert isinstance(client.calls[0].reply, FailedReplyError)


@pytest.mark.parametrize(
    ("path", "method", "calls"),
    [
        ("/v1/messages", "POST", [("anthropic", "")]),
        (
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            "POST",
            [("gemini", "gemini-2.5-flash")],
        ),
        ("/p/anthropic/models/claude-sonnet-4-5:rawPredict", "POST", [("anthropic", "claude-sonnet-4-5")]),
        ("/v1/models", "GET", []),
        ("/v1/messages/count_tokens", "POST", []),
    ],
)
def test_calls_are_recognized_by_their_address(path: str, method: str, calls: list[tuple[str, str]]) -> None:
    module, client = transports(200, []), Client()
    watch_all_dspy(module, client)  # type: ignore[arg-type]
    module.StdlibTransport().stream(request(path, method))

    assert [(call.shape, call.model) for call in client.calls] == calls
