"""Bytes that pass through the proxy, and the connections on both sides."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import pytest
from http2_upstream import Http2Upstream  # type: ignore[import-not-found]
from scripted_upstream import Answer, UpstreamServer  # type: ignore[import-not-found]

from windowpane.exceptions import ConfigurationError
from windowpane.sources.proxy.forwarding import UNSENT_BYTES, Forwarder
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.proxy.upstreams import Upstream, client_environment, upstreams_of

REQUEST = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "héllo"}]}).encode()
Whole = tuple[int, list[tuple[str, str]], bytes]


def send(url: str, path: str, *, method: str = "POST", body: Any = REQUEST, headers: Any = ()) -> Whole:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)) as connection:
        connection.request(method, path, body=body, headers=dict(headers), encode_chunked=body is not REQUEST)
        with connection.getresponse() as response:  # closing the connection does not close an unread response
            return response.status, response.getheaders(), response.read()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, [("content-type", "application/json"), ("x-request-id", "r1")], [b'{"a": 1}']),
        Answer(200, [("content-encoding", "gzip"), ("x-a", "1"), ("x-a", "2")], [gzip.compress(b"{}" * 900)]),
        Answer(
            200, [("content-type", "text/event-stream")], [b"data: 1\n\n", b"data: \xff\n\n"], has_length=False
        ),
        Answer(429, [("retry-after", "3")], [b'{"error": {"message": "slow down"}}']),
        Answer(302, [("location", "https://elsewhere.example/")], [b""]),
        Answer(200, [], [bytes(range(256)) * 4_000]),
    ],
    ids=["json", "gzip", "stream", "refused", "redirect", "binary"],
)
def test_a_response_passes_unchanged(
    answer: Answer, upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]
) -> None:
    upstream.answer = answer
    direct = send(upstream.url, "/v1/chat/completions")
    through = send(proxy_to(upstream.url).url, "/openai/v1/chat/completions")

    assert through[0] == direct[0]
    assert [pair for pair in through[1] if pair[0].lower() not in ("transfer-encoding", "connection")] == [
        pair for pair in direct[1] if pair[0].lower() not in ("transfer-encoding", "connection")
    ]
    assert through[2] == direct[2]


def test_a_request_passes_unchanged(upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]) -> None:
    headers = {"Authorization": "Bearer k", "X-Api-Key": "k2", "User-Agent": "mine/1", "Accept-Encoding": "br"}
    url = proxy_to(upstream.url).url
    send(upstream.url, "/v1/a%2Fb%20c:generate?key=k3&x=%41", headers=headers)
    send(url, "/gemini/v1/a%2Fb%20c:generate?key=k3&x=%41", headers=headers)
    direct, through = upstream.received

    assert (through.method, through.path, through.body) == (direct.method, direct.path, direct.body)
    ignored = ("host", "connection")
    assert sorted(
        (name.lower(), value) for name, value in through.headers if name.lower() not in ignored
    ) == sorted((name.lower(), value) for name, value in direct.headers if name.lower() not in ignored)


def test_an_upload_in_chunks_passes(upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]) -> None:
    url = proxy_to(upstream.url).url
    send(url, "/openai/v1/files", body=iter([b"one ", b"two"]), headers={"Transfer-Encoding": "chunked"})
    send(url, "/openai/v1/models", method="GET", body=None)

    assert [(one.method, one.body) for one in upstream.received] == [("POST", b"one two"), ("GET", b"")]


def test_a_stream_is_not_held_back(upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]) -> None:
    released = threading.Event()
    upstream.answer = Answer(
        200, [], [b"data: 1\n\n", b"data: 2\n\n"], has_length=False, wait_after_first=released
    )
    parts = urlsplit(proxy_to(upstream.url).url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request("POST", "/openai/v1/chat/completions", REQUEST)
    response = connection.getresponse()

    assert response.read1() == b"data: 1\n\n"
    released.set()
    assert response.read() == b"data: 2\n\n"
    connection.close()


def test_a_stream_that_breaks_off_breaks_off(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]
) -> None:
    upstream.answer = Answer(200, [], [b"data: 1\n\n"], has_length=False, breaks_off=True)

    with pytest.raises(http.client.IncompleteRead):
        send(proxy_to(upstream.url).url, "/openai/v1/chat/completions")


class PiecesTransport(httpx2.AsyncBaseTransport, httpx2.AsyncByteStream):
    """Answers with pieces that have all come at once, then may fail; counts the bytes that were read."""

    def __init__(self, pieces: list[bytes], error: httpx2.ReadError | None = None) -> None:
        self.pieces = pieces
        self.error = error
        self.read = 0

    async def handle_async_request(self, _: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.read += len(piece)
            yield piece
        if self.error is not None:
            raise self.error


class NoCalls:
    """Takes no call."""

    def put(self, _: object) -> bool:
        return False


class Sent(NamedTuple):
    """The bodies of a response to a client that takes each slowly."""

    bodies: list[bytes]
    waiting: int
    """The most bytes that waited for it."""
    read_before_first: int
    """Bytes that were read before the first body was sent."""


def sent_bodies(transport: PiecesTransport) -> Sent:
    """Return the bodies that such a client is sent."""
    bodies: list[bytes] = []
    waiting = read_before_first = 0

    async def receive() -> dict[str, Any]:
        return await asyncio.get_running_loop().create_future()  # never

    async def send_on(message: MutableMapping[str, Any]) -> None:
        nonlocal waiting, read_before_first
        if message["type"] == "http.response.body":
            read_before_first = read_before_first or transport.read
            await asyncio.sleep(0.001)
            waiting = max(waiting, transport.read - sum(map(len, bodies)))
            bodies.append(message["body"])

    async def run() -> None:
        upstreams = {"openai": Upstream("openai", "http://upstream")}
        scope = {"method": "GET", "raw_path": b"/openai/v1/models", "query_string": b"", "headers": []}
        async with httpx2.AsyncClient(transport=transport) as client:
            await Forwarder(upstreams, client, NoCalls())(scope, receive, send_on)

    asyncio.run(asyncio.wait_for(run(), 10))
    return Sent(bodies, waiting, read_before_first)


def test_the_first_piece_is_sent_before_the_next_is_read_and_the_rest_that_came_with_it_as_one() -> None:
    first, *rest = [b"data: %d\n\n" % number for number in range(400)]

    sent = sent_bodies(PiecesTransport([first, *rest]))

    assert sent.bodies == [first, b"".join(rest), b""]
    assert sent.read_before_first == len(first)


def test_what_came_is_sent_before_a_stream_breaks_off() -> None:
    transport = PiecesTransport([b"data: 1\n\n", b"data: 2\n\n"], httpx2.ReadError("reset"))

    assert b"".join(sent_bodies(transport).bodies) == b"data: 1\n\ndata: 2\n\n"


def test_a_slow_client_slows_the_reading() -> None:
    sent = sent_bodies(PiecesTransport([b"x" * 1_000] * 1_000))

    assert sum(map(len, sent.bodies)) == 1_000_000
    assert sent.waiting <= UNSENT_BYTES + 1_000


def test_a_closed_client_ends_the_call_upstream(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], wait_until: Callable[..., None]
) -> None:
    url = urlsplit(proxy_to(upstream.url).url)
    released = threading.Event()
    upstream.answer = Answer(
        200, [], [b"data: 1\n\n", *[b":" * 65_536] * 200], has_length=False, wait_after_first=released
    )
    with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
        connection.sendall(
            b"POST /openai/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
        )
        received = b""
        while b"data: 1" not in received:
            received += connection.recv(65_536) or pytest.fail("the connection was closed")
    released.set()
    wait_until(upstream.broken.is_set, what="the upstream's connection to be closed")

    upstream.answer = Answer(200, [], [b"{}"])
    assert send(f"http://{url.netloc}", "/openai/v1/chat/completions")[0] == 200


def test_an_upstream_that_is_not_there_is_a_502(
    free_port: Callable[[], int], proxy_to: Callable[..., ProxyServer]
) -> None:
    status, _, body = send(proxy_to(f"http://127.0.0.1:{free_port()}").url, "/openai/v1/chat/completions")

    assert status == 502
    assert "127.0.0.1 did not answer: ConnectError" in json.loads(body)["error"]["message"]


def test_an_unknown_path_names_the_upstreams(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]
) -> None:
    status, _, body = send(proxy_to(upstream.url).url, "/v1/chat/completions")

    assert status == 404
    assert "paths start with /openai, /anthropic, /gemini" in json.loads(body)["error"]["message"]
    assert not upstream.received


def test_a_websocket_is_refused_so_that_the_client_uses_http(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]
) -> None:
    """Clients that try a WebSocket first, as Codex does, fall back at this status; nothing is sent upstream."""
    headers = {
        "Connection": "Upgrade", "Upgrade": "WebSocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "k",
    }  # fmt: skip
    status, _, body = send(
        proxy_to(upstream.url).url, "/openai/v1/responses", method="GET", headers=headers.items()
    )

    assert status == 426
    assert "use HTTP" in json.loads(body)["error"]["message"]
    assert not upstream.received


def test_many_streams_at_once(upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]) -> None:
    """200 clients wait for their second event at the same time; each gets its whole stream."""
    released = threading.Event()
    upstream.answer = Answer(
        200, [], [b"data: 1\n\n", b"data: 2\n\n"], has_length=False, wait_after_first=released
    )
    url = proxy_to(upstream.url).url
    with ThreadPoolExecutor(200) as clients:
        threading.Timer(1, released.set).start()
        replies = list(clients.map(lambda _: send(url, "/openai/v1/chat/completions")[2], range(200)))

    assert replies == [b"data: 1\n\ndata: 2\n\n"] * 200


def test_an_upstream_that_speaks_http2(
    proxy_to: Callable[..., ProxyServer],
    require_server: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subprocess.run(
        [
            require_server("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "x" * 200_000}]}).encode()
    with closing(Http2Upstream(tmp_path, [b"data: 1\n\n", b"data: 2\n\n"])) as upstream:
        url = proxy_to(upstream.url).url
        with ThreadPoolExecutor(8) as clients:
            replies = list(
                clients.map(lambda _: send(url, "/openai/v1/chat/completions", body=iter([body])), range(8))
            )

    assert [(status, content) for status, _, content in replies] == [(200, b"data: 1\n\ndata: 2\n\n")] * 8
    assert ("x-request-id", "r") in replies[0][1]
    assert upstream.bodies == [body] * 8


def test_a_base_url_of_the_environment_stays_the_destination() -> None:
    chosen = upstreams_of(["vllm=http://gpu:8000/v1/"], {"OPENAI_BASE_URL": "http://lan:1/v1"})

    assert chosen["openai"].url == "http://lan:1/v1"
    assert chosen["vllm"].url == "http://gpu:8000/v1"
    assert client_environment(chosen, "http://127.0.0.1:9") == {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/openai",
        "OPENAI_API_BASE": "http://127.0.0.1:9/openai",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/anthropic",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9/gemini",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:4180"},
        {"Host": "10.0.0.7"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
    ],
    ids=str,
)
def test_web_pages_of_other_sites_are_refused(
    headers: dict[str, str], upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]
) -> None:
    server = proxy_to(upstream.url)
    status, _, body = send(server.url, "/openai/v1/chat/completions", headers=headers)

    assert (status, upstream.received, server.forwarded) == (421, [], 0)
    assert b"127.0.0.1 or localhost" in body


def test_programs_of_this_machine_are_forwarded(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer]
) -> None:
    upstream.answer = Answer(200, [], [b"{}"])
    server = proxy_to(upstream.url)

    for headers in ({}, {"Host": f"localhost:{server.port}"}, {"Origin": server.url}):
        assert send(server.url, "/openai/v1/chat/completions", headers=headers)[0] == 200


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@host/v1", "http://hunter2@host", "ftp://user:hunter2@host", "http://[hunter2"]
)
@pytest.mark.parametrize("way", ["option", "unnamed", "variable"])
def test_a_password_in_the_url_of_an_upstream_is_refused_and_not_shown(url: str, way: str) -> None:
    """It would be added to the requests of every caller."""
    given = {"option": [f"vllm={url}"], "unnamed": [url], "variable": []}[way]
    environment = {"OPENAI_BASE_URL": url} if way == "variable" else {}
    with pytest.raises(ConfigurationError, match="expected") as error:
        upstreams_of(given, environment)

    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("given", ["gpu:8000", "vllm=gpu:8000", "V/LLM=http://x", "vllm=ftp://x", "vllm="])
def test_an_upstream_that_cannot_be_used_is_an_error(given: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        upstreams_of([given], {})
