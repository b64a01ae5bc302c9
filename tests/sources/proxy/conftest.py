"""An upstream that answers as scripted, the outputs, and a proxy between a client and the upstream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import windowpane
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy import call_queue
from windowpane.sources.proxy.call_messages import CallMessage, SentCall
from windowpane.sources.proxy.call_queue import CallQueue
from windowpane.sources.proxy.call_reader import CallReader
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.proxy.upstreams import upstreams_of

sys.path.insert(0, str(Path(__file__).parent))

from scripted_upstream import UpstreamServer  # type: ignore[import-not-found]


@pytest.fixture
def upstream() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def outputs(tmp_path: Path) -> Iterator[Runtime]:
    """The running outputs, with captured content."""
    yield windowpane.start(port=0, store=tmp_path / "windowpane.db", capture=True, notify=[])
    windowpane.stop()


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> list[CountingQueue]:
    """The queues of the proxies that the test has started, which are read at once."""
    monkeypatch.setattr(call_queue, "LINGER_SECONDS", 0.0)
    return []


@pytest.fixture
def store_calls(
    outputs: Runtime, queues: list[CountingQueue], wait_until: Callable[..., None]
) -> Callable[[], None]:
    """A function that returns when all calls are stored; a client has its answer before its call has ended."""

    def store() -> None:
        wait_until(lambda: not any(queue.open_calls for queue in queues), what="the end of the calls")
        assert all(queue.flush(10) for queue in queues)
        assert outputs.flush()

    return store


@pytest.fixture
def proxy_to(
    outputs: Runtime, queues: list[CountingQueue]
) -> Iterator[Callable[..., ProxyServer]]:  # they must run
    """Start a proxy whose upstreams all have one URL."""
    with ExitStack() as running:

        def start(url: str, **options: Any) -> ProxyServer:
            chosen = upstreams_of([f"{name}={url}" for name in ("openai", "anthropic", "gemini")], {})
            reader = CallReader(outputs, Scope("agent", **options))
            calls = running.enter_context(CountingQueue(reader, outputs.record_drop))
            queues.append(calls)
            return running.enter_context(ProxyServer("127.0.0.1", 0, chosen, calls))

        yield start


class CountingQueue(CallQueue):
    """A queue that knows the calls without an end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.open_calls: set[int] = set()

    def put(self, message: CallMessage) -> bool:
        if isinstance(message, SentCall):
            self.open_calls.add(message.number)
        is_queued = super().put(message)
        if not isinstance(message, SentCall):
            self.open_calls.discard(message.number)
        return is_queued
