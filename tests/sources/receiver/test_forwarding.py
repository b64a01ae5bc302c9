"""Requests passed on to another collector: unchanged, off the request's path, and counted where they are lost."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest

from windowpane.effects import worker
from windowpane.outputs.http.routes import PostRequest
from windowpane.sources.receiver.forwarding import SINK, Forwarder


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.01)


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Collector:
    """Another collector on loopback, which responds with the given statuses, then with 200."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.received: list[Received] = []
        self.released = threading.Event()
        self.released.set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.released.wait(10)
                status = collector.statuses.pop(0) if collector.statuses else 200
                if status == 200:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    collector.received.append(Received(self.path, headers, body))
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()


@contextmanager
def collector(*statuses: int) -> Iterator[Collector]:
    running = Collector(*statuses)
    try:
        yield running
    finally:
        running.released.set()
        running.server.shutdown()
        running.server.server_close()


def request(body: bytes = b"\x00\x01", **headers: str) -> PostRequest:
    message = Message()
    for name, value in {"Host": "127.0.0.1:4318", "Content-Type": "application/x-protobuf", **headers}.items():
        message[name.replace("_", "-")] = value
    return PostRequest("/v1/traces", message, body)


@contextmanager
def forwarding(
    url: str,
    drops: list[str],
    *,
    capacity: int = 1_000,
    own_token: bool = False,
    headers: dict[str, str] | None = None,
) -> Iterator[Forwarder]:
    def count(sink: str, reason: str, events: int) -> None:
        assert (sink, events) == (SINK, 1)
        drops.append(reason)

    forwarder = Forwarder(
        url, headers=headers or {}, own_token=own_token, count_drops=count, capacity_bytes=capacity
    )
    forwarder.start()
    try:
        yield forwarder
    finally:
        forwarder.close(5.0)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_bytes_and_headers_pass_unchanged() -> None:
    body, drops = gzip.compress(b"spans"), list[str]()
    with collector() as other, forwarding(f"{other.url}/", drops, headers={"x-api-key": "ours"}) as forwarder:
        forwarder.put(request(body, Content_Encoding="gzip", x_team="blue", Connection="keep-alive"))
        wait_for(lambda: len(other.received) == 1)

    (received,) = other.received
    assert (received.path, received.body, drops) == ("/v1/traces", body, [])
    expected = {"content-encoding": "gzip", "x-team": "blue", "x-api-key": "ours"}
    assert expected.items() <= received.headers.items()
    assert received.headers["content-type"] == "application/x-protobuf"
    assert received.headers["host"] == other.url.removeprefix("http://")


@pytest.mark.parametrize("own_token", [False, True])
def test_the_token_of_this_endpoint_is_not_passed_on(*, own_token: bool) -> None:
    with collector() as other, forwarding(other.url, [], own_token=own_token) as forwarder:
        forwarder.put(request(Authorization="Bearer x"))
        wait_for(lambda: len(other.received) == 1)

    assert ("authorization" in other.received[0].headers) is not own_token


def test_it_tries_again_in_order() -> None:
    drops: list[str] = []
    with collector(503, 429, 502) as other, forwarding(other.url, drops) as forwarder:
        for number in range(3):
            forwarder.put(request(bytes([number])))
        wait_for(lambda: len(other.received) == 3)

    assert [received.body for received in other.received] == [b"\x00", b"\x01", b"\x02"]
    assert drops == []


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refused_request_is_dropped_and_counted(status: int) -> None:
    """It would be refused again; the next one is sent."""
    drops: list[str] = []
    with collector(status) as other, forwarding(other.url, drops) as forwarder:
        forwarder.put(request(b"first"))
        forwarder.put(request(b"second"))
        wait_for(lambda: len(other.received) == 1)

    assert (other.received[0].body, drops) == (b"second", ["error"])


def test_a_full_queue_drops_and_counts() -> None:
    drops: list[str] = []
    with collector() as other, forwarding(other.url, drops, capacity=250) as forwarder:
        other.released.clear()
        started = time.monotonic()
        for _ in range(5):
            forwarder.put(request(bytes(100)))
        assert time.monotonic() - started < 1
        other.released.set()
        wait_for(lambda: len(other.received) == 2)

    assert drops == ["full"] * 3


def test_what_waits_at_the_end_is_counted() -> None:
    drops: list[str] = []

    def count(_sink: str, reason: str, _events: int) -> None:
        drops.append(reason)

    forwarder = Forwarder("http://127.0.0.1:9", headers={}, own_token=False, count_drops=count)
    forwarder.start()
    forwarder.put(request())
    started = time.monotonic()
    forwarder.close(0.3)

    assert time.monotonic() - started < 2
    assert drops == ["closed"]


def test_a_request_that_cannot_be_sent_stops_no_later_one() -> None:
    drops: list[tuple[str, str, int]] = []
    with collector() as other:
        forwarder = Forwarder(
            other.url, headers={}, own_token=False, count_drops=lambda *drop: drops.append(drop)
        )
        forwarder.start()
        forwarder.put(request(X_Note="one\r\n two\x00\r\nthree"))
        forwarder.put(request(b"later"))
        forwarder.close(10)

    assert [received.body for received in other.received] == [b"later"]
    assert drops == [(SINK, "error", 1)]
