"""Raw, streamed and streamed-raw replies of the real clients, over sockets: all are read, and none is changed."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.providers.formats import CHAT as CHAT_REPLY
from tests.providers.formats import MESSAGE, STREAMS, TEXT
from tests.providers.formats import RESPONSE as RESPONSE_REPLY
from tests.providers.loopback import LoopbackProvider, loopback_provider
from tests.sources.conftest import started

import windowpane
from windowpane.core.events import OverflowDetected, TurnEnded
from windowpane.models.wire.calls import read_events, read_whole
from windowpane.models.wire.replies import ContextEdit
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.clients import recording
from windowpane.store.filters import EventFilter

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

MESSAGES = [{"role": "user", "content": "Migrate user-service"}]
CHAT = {"model": "gpt-4o", "messages": MESSAGES}
RESPONSE = {"model": "gpt-4o", "input": "Migrate user-service"}
CLAUDE = {"model": "claude-of-tests", "messages": MESSAGES, "max_tokens": 100}
Call = Callable[[Any], Any]


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackProvider]:
    with loopback_provider() as provider:
        yield provider


@pytest.fixture
def provider(server: LoopbackProvider) -> Iterator[LoopbackProvider]:
    yield server
    url = server.url
    server.__init__()  # type: ignore[misc]
    server.url = url


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with started(tmp_path_factory.mktemp("store")) as runtime:
        yield runtime


class Observed:
    """The events of one test's session."""

    def __init__(self, runtime: Runtime, session_id: str) -> None:
        self._runtime = runtime
        self._session_id = session_id

    def payloads(self, kind: str) -> list[Any]:
        self._runtime.flush()
        assert self._runtime.store is not None
        stored = self._runtime.store.events(EventFilter(self._session_id, types=(kind,)))
        return [one.event.data for one in stored]

    def usages(self) -> list[tuple[int, int] | None]:
        """Return the usage of each turn that ended: input and output tokens."""
        ended: list[TurnEnded] = self.payloads("turn.ended")
        return [
            None if turn.usage is None else (turn.usage.input_total, turn.usage.output_tokens) for turn in ended
        ]

    def replies(self) -> int:
        """Return the number of texts that the model wrote."""
        blocks = [added.block for added in self.payloads("block.added")]
        return len([block for block in blocks if block.content_type == "assistant_response"])


@pytest.fixture
def observed(runtime: Runtime, request: pytest.FixtureRequest) -> Iterator[Observed]:
    recording._boundary._logged_at.clear()
    with windowpane.session(session_id=request.node.name) as session_id:
        yield Observed(runtime, session_id)


_clients: list[Any] = []
"""The clients of the running test."""


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    """Close the clients of a test, whose sockets would otherwise wait for the garbage collector."""
    yield
    while _clients:
        closing = _clients.pop().close()
        if asyncio.iscoroutine(closing):
            with suppress(RuntimeError):  # the loop of its connections has ended
                asyncio.run(closing)


def client_of(package: Any, provider: LoopbackProvider, *, is_async: bool = False) -> Any:
    name = {"openai": "OpenAI", "anthropic": "Anthropic"}[package.__name__]
    url = provider.url + ("/v1" if name == "OpenAI" else "")
    make = getattr(package, f"Async{name}" if is_async else name)
    _clients.append(make(api_key="k", base_url=url, max_retries=0))
    return _clients[-1]


def stream_text(stream: Any) -> str:
    """Return the text of a stream of any of the three."""
    return "".join(_text_of(event) for event in stream)


def _text_of(event: Any) -> str:
    if getattr(event, "object", None) == "chat.completion.chunk":
        return event.choices[0].delta.content or "" if event.choices else ""
    if event.type == "response.output_text.delta":
        return str(event.delta)
    return str(event.delta.text) if event.type == "content_block_delta" else ""


def raw_stream(resource: Any, **body: Any) -> str:
    """LangChain: a raw response, parsed to a stream."""
    return stream_text(resource.with_raw_response.create(**body, stream=True).parse())


def streaming_lines(resource: Any, **body: Any) -> str:
    with resource.with_streaming_response.create(**body, stream=True) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: {")]
    return TEXT if len(lines) > 2 else ""


def fail_midway(resource: Any, **body: Any) -> None:
    with resource.with_streaming_response.create(**body, stream=True) as response:
        for _ in response.iter_lines():
            raise ZeroDivisionError


def streaming_document(resource: Any, **body: Any) -> str:
    with resource.with_streaming_response.create(**body) as response:
        return TEXT if TEXT in json.dumps(response.json()) else ""


def streaming_parsed(resource: Any, **body: Any) -> str:
    with resource.with_streaming_response.create(**body, stream=True) as response:
        return stream_text(response.parse())


def raw_text(resource: Any, **body: Any) -> str:
    return TEXT if TEXT in resource.with_raw_response.create(**body).text else ""


def text_of_chat(reply: Any) -> str:
    return str(reply.choices[0].message.content)


def with_helper(manager: Any) -> str:
    with manager as stream:
        for _ in stream:
            pass
    return TEXT


CALLS: dict[str, tuple[Any, Call]] = {
    "chat": (openai, lambda client: text_of_chat(client.chat.completions.create(**CHAT))),
    "chat raw": (openai, lambda c: text_of_chat(c.chat.completions.with_raw_response.create(**CHAT).parse())),
    "chat raw text": (openai, lambda c: raw_text(c.chat.completions, **CHAT)),
    "chat raw parse": (
        openai, lambda c: text_of_chat(c.chat.completions.with_raw_response.parse(**CHAT).parse()),
    ),
    "chat raw stream": (openai, lambda c: raw_stream(c.chat.completions, **CHAT)),
    "chat of a raw client": (
        openai, lambda c: text_of_chat(c.with_raw_response.chat.completions.create(**CHAT).parse()),
    ),
    "chat streaming lines": (openai, lambda c: streaming_lines(c.chat.completions, **CHAT)),
    "chat streaming document": (openai, lambda c: streaming_document(c.chat.completions, **CHAT)),
    "chat streaming parsed": (openai, lambda c: streaming_parsed(c.chat.completions, **CHAT)),
    "chat stream": (openai, lambda c: stream_text(c.chat.completions.create(**CHAT, stream=True))),
    "chat helper": (openai, lambda c: with_helper(c.chat.completions.stream(**CHAT))),
    "chat under beta": (openai, lambda c: text_of_chat(c.beta.chat.completions.create(**CHAT))),
    "responses": (openai, lambda c: c.responses.create(**RESPONSE).output_text),
    "responses raw": (openai, lambda c: c.responses.with_raw_response.create(**RESPONSE).parse().output_text),
    "responses raw stream": (openai, lambda c: raw_stream(c.responses, **RESPONSE)),
    "responses streaming parsed": (openai, lambda c: streaming_parsed(c.responses, **RESPONSE)),
    "responses stream": (openai, lambda c: stream_text(c.responses.create(**RESPONSE, stream=True))),
    "responses helper": (openai, lambda c: with_helper(c.responses.stream(**RESPONSE))),
    "messages": (anthropic, lambda c: c.messages.create(**CLAUDE).content[0].text),
    "messages raw": (anthropic, lambda c: c.messages.with_raw_response.create(**CLAUDE).parse().content[0].text),
    "messages raw stream": (anthropic, lambda c: raw_stream(c.messages, **CLAUDE)),
    "messages beta raw stream": (anthropic, lambda c: raw_stream(c.beta.messages, **CLAUDE)),
    "messages streaming lines": (anthropic, lambda c: streaming_lines(c.messages, **CLAUDE)),
    "messages streaming document": (anthropic, lambda c: streaming_document(c.messages, **CLAUDE)),
    "messages streaming parsed": (anthropic, lambda c: streaming_parsed(c.messages, **CLAUDE)),
    "messages stream": (anthropic, lambda c: stream_text(c.messages.create(**CLAUDE, stream=True))),
    "messages helper": (anthropic, lambda c: with_helper(c.messages.stream(**CLAUDE))),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_every_way_to_receive_a_reply_is_read(name: str, observed: Observed, provider: LoopbackProvider) -> None:
    package, call = CALLS[name]

    assert call(windowpane.observe(client_of(package, provider))) == TEXT
    assert (observed.usages(), observed.replies()) == ([(800, 3)], 1)


async def _streamed(stream: Any) -> str:
    return "".join([_text_of(event) async for event in stream])


async def _maybe(parsed: Any) -> Any:
    """A raw response's parse() is a coroutine in some releases."""
    return await parsed if asyncio.iscoroutine(parsed) else parsed


async def _raw(resource: Any, **body: Any) -> str:
    reply = await resource.with_raw_response.create(**body)
    return TEXT if await _maybe(reply.parse()) else ""


async def _raw_stream(resource: Any, **body: Any) -> str:
    reply = await resource.with_raw_response.create(**body, stream=True)
    return await _streamed(await _maybe(reply.parse()))


async def _streaming(resource: Any, **body: Any) -> str:
    """OpenAI Agents SDK: a streamed response of which the headers are read first."""
    async with resource.with_streaming_response.create(**body, stream=True) as response:
        return await _streamed(await response.parse())


async def _streaming_bytes(resource: Any, **body: Any) -> str:
    async with resource.with_streaming_response.create(**body) as response:
        content = b"".join([piece async for piece in response.iter_bytes()])
    return TEXT if TEXT.encode() in content else ""


async def _helper(manager: Any) -> str:
    async with manager as stream:
        async for _ in stream:
            pass
    return TEXT


ASYNC_CALLS: dict[str, tuple[Any, Call]] = {
    "chat raw": (openai, lambda c: _raw(c.chat.completions, **CHAT)),
    "chat raw stream": (openai, lambda c: _raw_stream(c.chat.completions, **CHAT)),
    "chat streaming": (openai, lambda c: _streaming(c.chat.completions, **CHAT)),
    "chat streaming bytes": (openai, lambda c: _streaming_bytes(c.chat.completions, **CHAT)),
    "responses raw": (openai, lambda c: _raw(c.responses, **RESPONSE)),
    "responses raw stream": (openai, lambda c: _raw_stream(c.responses, **RESPONSE)),
    "responses streaming": (openai, lambda c: _streaming(c.responses, **RESPONSE)),
    "responses helper": (openai, lambda c: _helper(c.responses.stream(**RESPONSE))),
    "messages raw": (anthropic, lambda c: _raw(c.messages, **CLAUDE)),
    "messages raw stream": (anthropic, lambda c: _raw_stream(c.messages, **CLAUDE)),
    "messages streaming": (anthropic, lambda c: _streaming(c.messages, **CLAUDE)),
    "messages streaming bytes": (anthropic, lambda c: _streaming_bytes(c.messages, **CLAUDE)),
    "messages helper": (anthropic, lambda c: _helper(c.messages.stream(**CLAUDE))),
}


@pytest.mark.parametrize("name", ASYNC_CALLS)
def test_every_asynchronous_way_is_read(name: str, observed: Observed, provider: LoopbackProvider) -> None:
    package, call = ASYNC_CALLS[name]

    async def work() -> str:
        async with windowpane.observe(client_of(package, provider, is_async=True)) as client:
            return str(await call(client))

    assert asyncio.run(work()) == TEXT
    assert (observed.usages(), observed.replies()) == ([(800, 3)], 1)


def test_a_raw_reply_is_the_one_that_the_agent_would_get(observed: Observed, provider: LoopbackProvider) -> None:
    plain, watched = client_of(openai, provider), windowpane.observe(client_of(openai, provider))
    expected, got = (client.chat.completions.with_raw_response.create(**CHAT) for client in (plain, watched))

    assert type(got) is type(expected)
    assert got.headers["x-request-id"] == "req-1"
    assert (got.content, got.http_response.is_closed) == (expected.content, expected.http_response.is_closed)
    assert got._parsed_by_type == {}, "nothing was parsed before the agent asked"
    assert got.parse() == expected.parse()


def test_a_body_is_read_when_the_agent_reads_it(observed: Observed, provider: LoopbackProvider) -> None:
    provider.released.clear()
    client = windowpane.observe(client_of(openai, provider))
    raw = client.chat.completions.with_raw_response.create(**CHAT, stream=True)
    stream = raw.parse()

    assert next(stream).choices[0].delta.content == "On "
    assert provider.sent == 1
    assert observed.usages() == []
    provider.released.set()
    assert stream_text(stream) == "it."
    assert observed.usages() == [(800, 3)]
    assert not {"iter_bytes", "aiter_bytes", "close", "aclose"} & vars(raw.http_response).keys()
    pickle.dumps(raw.http_response.headers)


@pytest.mark.parametrize("raw", [False, True])
def test_a_stream_closed_early_ends_its_turn_at_once(
    raw: bool, observed: Observed, provider: LoopbackProvider
) -> None:
    client = windowpane.observe(client_of(anthropic, provider))
    provider.released.clear()
    if raw:
        stream = client.messages.with_raw_response.create(**CLAUDE, stream=True).parse()
    else:
        stream = client.messages.create(**CLAUDE, stream=True)
    assert next(stream).type == "message_start"
    stream.close()

    assert observed.usages() == [(800, 3)]
    assert stream.response.is_closed


def test_break_and_exceptions_end_the_turn(observed: Observed, provider: LoopbackProvider) -> None:
    client = windowpane.observe(client_of(openai, provider))
    with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as response:
        for _ in response.parse():
            break
    assert len(observed.usages()) == 1
    with pytest.raises(ZeroDivisionError):
        fail_midway(client.chat.completions, **CHAT)

    assert len(observed.usages()) == 2


def test_a_dropped_stream_is_closed_without_the_garbage_collector(
    observed: Observed, provider: LoopbackProvider
) -> None:
    client = windowpane.observe(client_of(anthropic, provider))
    gc.collect()
    gc.disable()
    try:
        raw = client.messages.with_raw_response.create(**CLAUDE, stream=True)
        response = weakref.ref(raw.http_response)
        del raw
        assert response() is None
    finally:
        gc.enable()

    assert observed.usages() == [None]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_connection_that_breaks_midway_is_a_failed_call(
    is_async: bool, observed: Observed, provider: LoopbackProvider
) -> None:
    provider.breaks = True
    client = windowpane.observe(client_of(openai, provider, is_async=is_async))

    async def work() -> None:
        async with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as response:
            async for _ in response.iter_lines():
                pass

    with pytest.raises(Exception, match=r"peer closed|incomplete|reset|Connection"):
        asyncio.run(work()) if is_async else streaming_lines(client.chat.completions, **CHAT)
    assert observed.usages() == []
    provider.breaks = False
    client = windowpane.observe(client_of(openai, provider))
    assert raw_stream(client.chat.completions, **CHAT) == TEXT
    assert observed.usages() == [(800, 3)]


def test_an_error_in_a_stream_is_a_failed_call(observed: Observed, provider: LoopbackProvider) -> None:
    provider.error = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long"},
    }
    client = windowpane.observe(client_of(anthropic, provider))
    with pytest.raises(anthropic.APIError, match="prompt is too long"):
        raw_stream(client.messages, **CLAUDE)

    overflows: list[OverflowDetected] = observed.payloads("overflow.detected")
    assert [overflow.where for overflow in overflows] == ["provider"]
    assert observed.usages() == []


@pytest.mark.parametrize("raw", [False, True])
def test_a_document_that_reports_an_error_is_a_failed_call(
    raw: bool, observed: Observed, provider: LoopbackProvider
) -> None:
    """Some gateways report an error with status 200."""
    provider.document = {"error": {"message": "This model's maximum context length is 8192 tokens"}}
    completions = windowpane.observe(client_of(openai, provider)).chat.completions
    (completions.with_raw_response if raw else completions).create(**CHAT)

    overflows: list[OverflowDetected] = observed.payloads("overflow.detected")
    assert [overflow.limit_tokens for overflow in overflows] == [8192]
    assert observed.usages() == []


def test_a_reply_that_cannot_be_read_is_logged_once_with_a_way_out(
    observed: Observed, provider: LoopbackProvider, caplog: pytest.LogCaptureFixture
) -> None:
    client = windowpane.observe(client_of(openai, provider))
    with caplog.at_level(logging.WARNING, logger="windowpane"):
        for _ in range(3):
            with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as response:
                assert b"".join(response.http_response.iter_raw())
        provider.document = {"outcome": "fine"}
        for _ in range(3):
            client.chat.completions.with_raw_response.create(**CHAT)
        assert observed.usages() == [None] * 6

    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2, messages
    assert "iter_lines()" in messages[0]
    assert all("docs/observing.md" in message for message in messages)


@pytest.mark.parametrize("stream", [False, True])
def test_edits_by_the_provider_are_read(stream: bool) -> None:
    edits = {
        "applied_edits": [
            {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000},
            {"type": "clear_thinking_20251015", "cleared_thinking_turns": 3, "cleared_input_tokens": 15_000},
        ]
    }
    if stream:
        events = [{**event, "context_management": edits} if event["type"] == "message_delta" else event
                  for event in STREAMS["messages"]]  # fmt: skip
        reply = read_events("anthropic", events)
    else:
        reply = read_whole({**MESSAGE, "context_management": edits}, "anthropic")

    assert reply.edits == (
        ContextEdit("clear_tool_uses_20250919", 8), ContextEdit("clear_thinking_20251015", 3)
    )  # fmt: skip


def test_used_tokens_are_those_of_the_next_call(runtime: Runtime, provider: LoopbackProvider) -> None:
    reply = {**CHAT_REPLY, "usage": {"prompt_tokens": 1_011, "completion_tokens": 11_007, "total_tokens": 12_018}}
    provider.document = reply
    client = windowpane.observe(client_of(openai, provider))
    with windowpane.session(session_id="used"):
        client.chat.completions.create(**CHAT)

    runtime.flush()
    assert runtime.store is not None
    row = runtime.store.session("used")
    assert row is not None
    assert (row.used_tokens, row.peak_used_tokens, row.input_tokens) == (12_018, 12_018, 1_011)


def test_a_conversation_that_the_provider_stores_grows_by_its_totals(
    observed: Observed, provider: LoopbackProvider
) -> None:
    """9,000 tokens a turn behind `previous_response_id`: velocity and forecast see them, as unattributed."""
    client = windowpane.observe(client_of(openai, provider))
    previous = None
    for turn in range(1, 7):
        usage = RESPONSE_REPLY["usage"] | {"input_tokens": 9_000 * turn}  # type: ignore[operator]
        provider.document = {**RESPONSE_REPLY, "id": f"resp_{turn}", "usage": usage}
        previous = client.responses.create(**RESPONSE, previous_response_id=previous).id

    measured = observed.payloads("pressure.measured")[-1]
    assert measured.velocity == pytest.approx(9_000, abs=5)
    assert measured.turns_until_red < 15  # (0.9 × 128,000 - 54,003) / 9,000 is 6.8
    assert measured.used_by_component["message_history"] < 200


def test_a_compressed_body_is_read(observed: Observed, provider: LoopbackProvider) -> None:
    """The decoded content is retained, as the agent reads it."""
    provider.gzip = True
    client = windowpane.observe(client_of(openai, provider))

    assert streaming_document(client.chat.completions, **CHAT) == TEXT
    assert observed.usages() == [(800, 3)]
