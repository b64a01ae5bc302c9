"""The queue of passing calls: bounded, counted, and read to its end when the proxy stops."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

import pytest
from observed_calls import post  # type: ignore[import-not-found]
from scripted_upstream import Answer, UpstreamServer  # type: ignore[import-not-found]

from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy.call_messages import CallMessage, EndedCall, SentCall
from windowpane.sources.proxy.call_queue import CallQueue
from windowpane.sources.proxy.call_reader import CallReader
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.proxy.upstreams import upstreams_of

REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42},
}


def request(text: str) -> dict[str, object]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}


def sent(number: int, size: int) -> SentCall:
    body = json.dumps(request(f"{number} " + "x" * size)).encode()
    return SentCall(number, "chat", "/v1/chat/completions", None, "", (), (body,), time.time())


def ended(number: int, body: bytes) -> EndedCall:
    return EndedCall(number, 200, (), (body,), time.time(), 0.1)


def turns(outputs: Runtime) -> list[int]:
    """Return the turns of each session in the store."""
    assert outputs.flush()
    assert outputs.store is not None
    return [row.turns for row in outputs.store.sessions()]


@pytest.fixture
def answering(upstream: UpstreamServer) -> UpstreamServer:
    upstream.answer = Answer(200, [("content-type", "application/json")], [json.dumps(REPLY).encode()])
    return upstream


def test_calls_that_passed_are_read_at_the_end(answering: UpstreamServer, outputs: Runtime) -> None:
    upstreams = upstreams_of([f"openai={answering.url}"], {})
    reader = CallReader(outputs, Scope("agent"))
    with CallQueue(reader, outputs.record_drop) as calls, ProxyServer("127.0.0.1", 0, upstreams, calls) as server:
        url = f"{server.url}/openai/v1/chat/completions"
        for number in range(5):
            assert json.loads(post(url, request(f"call {number}"))) == REPLY

    assert sum(turns(outputs)) == 5


def test_what_finds_no_room_is_counted(outputs: Runtime) -> None:
    drops: list[tuple[str, str, int]] = []
    with CallQueue(
        CallReader(outputs, Scope("agent")), lambda *drop: drops.append(drop), maximum_bytes=10_000
    ) as calls:
        assert not calls.put(sent(1, 20_000))
        assert calls.put(sent(2, 100))
        assert not calls.put(ended(2, b" " * 20_000))

    assert drops == [("observer", "full", 1)] * 2
    assert turns(outputs) == [1], "a reply that was not read ends its turn"


def test_a_reader_that_hangs_delays_no_call(
    answering: UpstreamServer, wait_until: Callable[..., None], outputs: Runtime
) -> None:
    hanging, released, read = threading.Event(), threading.Event(), list[CallMessage]()

    class Hanging(CallReader):
        def read(self, message: CallMessage) -> None:
            hanging.set()
            released.wait(30)
            read.append(message)

    calls = CallQueue(Hanging(outputs, Scope("agent")), outputs.record_drop)
    with ProxyServer("127.0.0.1", 0, upstreams_of([f"openai={answering.url}"], {}), calls) as server:
        url = f"{server.url}/openai/v1/chat/completions"
        assert json.loads(post(url, request("one"))) == REPLY
        wait_until(hanging.is_set, what="the reader")
        assert [json.loads(post(url, request(f"two {number}"))) for number in range(3)] == [REPLY] * 3
        released.set()
    calls.close()

    assert [type(message) for message in read] == [SentCall, EndedCall] * 4


def test_a_reader_that_fails_stops_no_later_call(outputs: Runtime) -> None:
    with CallQueue(CallReader(outputs, Scope("agent")), outputs.record_drop) as calls:
        calls.put(SentCall(1, "chat", "/v1/chat/completions", None, "", (), (b"[" * 100_000,), time.time()))
        calls.put(ended(1, b"{"))
        calls.put(sent(2, 10))
        calls.put(ended(2, json.dumps(REPLY).encode()))

    assert sum(turns(outputs)) >= 1
