"""An upstream that answers as scripted, the outputs, and a proxy between a client and the upstream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import windowpane
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy.call_messages import EndedCall, FailedCall, SentCall
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
def readers() -> list[ReadHere]:
    """The readers of the proxies that the test has started."""
    return []


@pytest.fixture
def store_calls(outputs: Runtime, readers: list[ReadHere], wait_until: Callable[..., None]) -> Callable[[], None]:
    """A function that returns when all calls are stored; a client has its answer before its call has ended."""

    def store() -> None:
        wait_until(lambda: not any(one.open_calls for one in readers), what="the end of the calls")
        assert outputs.flush()

    return store


@pytest.fixture
def proxy_to(outputs: Runtime, readers: list[ReadHere]) -> Iterator[Callable[..., ProxyServer]]:  # they must run
    """Start a proxy whose upstreams all have one URL, and whose calls are read in this process."""
    with ExitStack() as running:

        def start(url: str, **options: Any) -> ProxyServer:
            chosen = upstreams_of([f"{name}={url}" for name in ("openai", "anthropic", "gemini")], {})
            calls = ReadHere(outputs, Scope("agent", **options))
            readers.append(calls)
            return running.enter_context(ProxyServer("127.0.0.1", 0, chosen, calls))

        yield start


class ReadHere:
    """Reads passing calls in this process, on the worker of its outputs."""

    def __init__(self, outputs: Runtime, scope: Scope) -> None:
        self._outputs = outputs
        self._reader = CallReader(outputs, scope)
        self.open_calls: set[int] = set()

    def put(self, message: SentCall | EndedCall | FailedCall) -> bool:
        if isinstance(message, SentCall):
            self.open_calls.add(message.number)
        else:
            self.open_calls.discard(message.number)
        return self._outputs.observations.put("reading a call", partial(self._reader.read, message))
