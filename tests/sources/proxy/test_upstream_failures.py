"""Upstreams that hang, are killed or cannot be reached: the client gets a clear error."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest

from windowpane.sources.proxy import forwarding
from windowpane.sources.proxy.server import ProxyServer

CALL = b'{"model": "gpt-4o", "messages": []}'


class ListeningSocket:
    """An upstream that accepts connections and does with them what a test wants."""

    def __init__(self, handle: Callable[[socket.socket], object]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._handle = handle
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)) as connection:
        yield connection


def error_of(url: str) -> tuple[int, str]:
    with connected(url) as connection:
        connection.request("POST", "/openai/v1/chat/completions", CALL)
        response = connection.getresponse()
        return response.status, json.loads(response.read())["error"]["message"]


def test_a_killed_upstream_is_a_502(proxy_to: Callable[..., ProxyServer]) -> None:
    def close(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.close()

    def reset(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    for handle in (close, reset):
        with closing(ListeningSocket(handle)) as upstream:
            status, message = error_of(proxy_to(upstream.url).url)

        assert (status, message.partition(":")[0]) == (502, "the upstream 127.0.0.1 did not answer")


def test_a_client_that_disconnects_from_a_hung_upstream_ends_the_call(
    proxy_to: Callable[..., ProxyServer], wait_until: Callable[..., None]
) -> None:
    received, closed = threading.Event(), threading.Event()

    def hang(connection: socket.socket) -> None:
        while connection.recv(65_536):
            received.set()
        closed.set()

    with closing(ListeningSocket(hang)) as upstream:
        url = proxy_to(upstream.url).url
        with connected(url) as connection:
            connection.request("POST", "/openai/v1/chat/completions", CALL)
            wait_until(received.is_set, what="the request at the upstream")
        wait_until(closed.is_set, what="the upstream's connection to be closed")


def test_an_upstream_without_a_connection_is_a_504(
    proxy_to: Callable[..., ProxyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its queue of connections is full, so that the next one is neither accepted nor refused."""
    monkeypatch.setattr(forwarding, "CONNECT_SECONDS", 0.2)
    with (
        closing(socket.socket()) as listening,
        closing(socket.socket()) as first,
        closing(socket.socket()) as second,
    ):
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        status, message = error_of(proxy_to(f"http://127.0.0.1:{listening.getsockname()[1]}").url)

    assert (status, message) == (504, "the upstream 127.0.0.1 did not answer: ConnectTimeout")
