"""The forwarding of requests and responses, piece by piece and unchanged, as an ASGI application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

import httpx2

from windowpane.outputs.http.authentication import is_from_other_site
from windowpane.outputs.http.pages import FROM_OTHER_SITE
from windowpane.outputs.http.routes import Response
from windowpane.sources.proxy.call_messages import CallMessages
from windowpane.sources.proxy.exchanges import Exchange, Headers
from windowpane.sources.proxy.upstreams import Upstream

if TYPE_CHECKING:
    from starlette import datastructures

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CONNECT_SECONDS: Final = 30.0
UNSENT_BYTES: Final = 64 * 1024
"""Bytes of a response that have come and are not sent, from which on no more are read."""
_HOP_BY_HOP: Final = frozenset(
    name.encode()
    for name in (
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    )
)  # fmt: skip
"""Headers that speak of one connection, not of the message (RFC 9110, section 7.6.1)."""


class _DisconnectedError(Exception):
    """The client closed its connection before the request or response was complete."""


def new_client() -> httpx2.AsyncClient:
    """Return a client for upstreams: HTTP/1.1 and 2, no redirects, streams may be silent for any time."""
    return httpx2.AsyncClient(
        http2=True,
        follow_redirects=False,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
    )


class Forwarder:
    """An ASGI application that forwards every request to the upstream that its path names."""

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        client: httpx2.AsyncClient,
        calls: CallMessages,
        *,
        on_loopback: bool = True,
    ) -> None:
        """*on_loopback* states that only programs of this machine can reach the proxy."""
        self._bases = {name: httpx2.URL(upstream.url) for name, upstream in upstreams.items()}
        self._client = client
        self._calls = calls
        self._on_loopback = on_loopback
        self.forwarded = 0
        """Requests that had an upstream."""

    def refusal(self, _: str, headers: datastructures.Headers) -> Response | None:
        """Return the response to a page of another site; None for the programs that the proxy is for."""
        host, origin = headers.get("host"), headers.get("origin")
        return FROM_OTHER_SITE if is_from_other_site(host, origin, on_loopback=self._on_loopback) else None

    def not_found(self) -> Response:
        """Return the response that names the upstreams."""
        names = ", ".join(f"/{existing}" for existing in self._bases)
        return Response(404, f"no upstream of this name; paths start with {names}\n".encode())

    @staticmethod
    def render(response: Response) -> Response:
        """Return a response as clients of providers read errors."""
        document = {"error": {"type": "windowpane_proxy", "message": response.body.decode().rstrip()}}
        return response._replace(body=json.dumps(document).encode(), content_type="application/json")

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request."""
        _, name, *rest = scope["raw_path"].split(b"/", 2)
        base = self._bases.get(name.decode("ascii", "replace"))
        if base is None:
            await _refuse(send, self.not_found())
            return
        self.forwarded += 1
        if any(header == b"upgrade" and value.lower() == b"websocket" for header, value in scope["headers"]):
            refused = Response(426, b"WebSockets are not forwarded; use HTTP")  # as clients then do
            await _refuse(send, refused)
            return
        path = b"/" + rest[0] if rest else b""
        exchange = Exchange(scope["method"], path.decode("ascii", "replace"), scope["headers"], self._calls)
        await _Passage(self._client, exchange, receive, send).run(_request(base, path, scope))


class _Request:
    """A request to the upstream, without its body."""

    def __init__(self, method: str, url: httpx2.URL, headers: Headers, *, has_body: bool) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.has_body = has_body


def _request(base: httpx2.URL, path: bytes, scope: Mapping[str, Any]) -> _Request:
    query = scope["query_string"]
    target = base.raw_path.rstrip(b"/") + path + (b"?" + query if query else b"")
    headers = scope["headers"]
    has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in headers)
    passed = [pair for pair in _end_to_end(headers) if pair[0] != b"host"]
    return _Request(scope["method"], base.copy_with(raw_path=target or b"/"), passed, has_body=has_body)


def _end_to_end(headers: Headers) -> Headers:
    """Return the headers that belong to the message and not to one connection."""
    listed = {
        name.strip().lower()
        for header, value in headers
        if header.lower() == b"connection"
        for name in value.split(b",")
    }
    return [pair for pair in headers if (name := pair[0].lower()) not in _HOP_BY_HOP and name not in listed]


class _Passage:
    """One request on its way to the upstream, and the response on its way back."""

    def __init__(self, client: httpx2.AsyncClient, exchange: Exchange, receive: Receive, send: Send) -> None:
        self._client = client
        self._exchange = exchange
        self._receive = receive
        self._send = send
        self._leaving: asyncio.Task[None] | None = None

    async def run(self, request: _Request) -> None:
        started = False
        sent = httpx2.Request(
            request.method, request.url, headers=list(request.headers),
            content=self._body() if request.has_body else None,
        )  # fmt: skip
        if not request.has_body:
            self._request_sent()
        try:
            response = await self._client.send(sent, stream=True)
            try:
                headers = _end_to_end(response.headers.raw)
                self._exchange.answered(response.status_code, headers)
                await self._send(
                    {"type": "http.response.start", "status": response.status_code, "headers": headers}
                )
                started = True
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                await self._pass_on(response.stream)  # as `aiter_raw`, without its two more iterators
                self._exchange.ended()
                await self._send({"type": "http.response.body", "body": b""})
            finally:
                self._exchange.ended()
                await response.aclose()
        except (httpx2.HTTPError, OSError) as error:
            self._exchange.failed(error)
            if not started:
                status = 504 if isinstance(error, httpx2.TimeoutException) else 502
                text = f"the upstream {request.url.host} did not answer: {type(error).__name__}"
                await _refuse(self._send, Response(status, text.encode()))
            # else the connection is closed with the response incomplete, as the upstream closed its own
        except (_DisconnectedError, asyncio.CancelledError) as error:
            self._exchange.failed(error)
            task = asyncio.current_task()
            if task is not None and self._leaving is not None and self._leaving.done():
                task.uncancel()
            elif isinstance(error, asyncio.CancelledError):
                raise
        finally:
            if self._leaving is not None:
                self._leaving.cancel()

    async def _pass_on(self, pieces: AsyncIterable[bytes]) -> None:
        """Send the pieces of the response, those that have come at once as one: each costs a packet.

        The first is sent alone: the client need not wait until what came with it is split into pieces too.
        """
        came: list[bytes] = []
        size = 0
        is_first = True
        sending: asyncio.Task[None] | None = None
        try:
            async for piece in pieces:
                self._exchange.add_received(piece)
                came.append(piece)
                if is_first:
                    is_first = False
                    await self._send_all(came)
                    continue
                size += len(piece)
                if sending is None or sending.done():
                    sending, size = asyncio.create_task(self._send_all(came)), len(piece)
                if size >= UNSENT_BYTES:
                    await sending
        finally:  # the client gets what came before the upstream failed
            if sending is not None:
                await sending

    async def _send_all(self, came: list[bytes]) -> None:
        while came:
            body = b"".join(came)
            came.clear()
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _body(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _DisconnectedError
            piece, more = message.get("body", b""), message.get("more_body", False)
            if piece:
                self._exchange.add_sent(piece)
                yield piece
        self._request_sent()

    def _request_sent(self) -> None:
        self._exchange.sent()
        task = asyncio.current_task()
        assert task is not None
        self._leaving = asyncio.create_task(self._cancel_at_disconnect(task))

    async def _cancel_at_disconnect(self, task: asyncio.Task[Any]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        task.cancel()


async def _refuse(send: Send, refused: Response) -> None:
    response = Forwarder.render(refused)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(response.body)).encode())]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
