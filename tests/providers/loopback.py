"""A provider on the loopback interface that speaks the wire formats of OpenAI, Anthropic, Gemini and Bedrock.

Real sockets, because raw and streamed responses differ from parsed ones only in when their bytes are read.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote

from tests.providers.event_stream import exception_frame, frame
from tests.providers.formats import DOCUMENTS, EVENTS, Refusal, Reply, refusal

_SHAPES = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages",
           "enerateContent": "gemini", "/converse": "converse", "/invoke": "invoke",
           "awPredict": "messages"}  # fmt: skip
"""Parts of a path to the format of its requests."""
CHARACTERS_PER_TOKEN = 4
_COUNTED = ("messages", "input", "contents", "system", "instructions", "systemInstruction", "tools", "toolConfig")
"""Fields of a request that hold what the model sees."""


class Request(NamedTuple):
    """A request as it was received."""

    shape: str
    path: str
    body: dict[str, Any]
    streams: bool
    headers: Mapping[str, str]
    """By name in lower case."""


class LoopbackProvider:
    """Replies to every call with the next reply of the script, else with the same; a test sets the faults."""

    def __init__(self) -> None:
        self.url = ""
        self.gzip = False
        self.script: list[Reply | Refusal] = []
        """Replies to the next calls; the input that they report is counted from the request."""
        self.responder: Callable[[Request], Reply] | None = None
        """Replies instead of the script, with exactly what its replies report."""
        self.requests: list[Request] = []
        """Requests received."""
        self.document: dict[str, Any] | None = None
        """Sent instead of the usual reply, stream or not."""
        self.error: dict[str, Any] | None = None
        """Sent as an event after the first event of a stream."""
        self.breaks = False
        """The connection breaks after the first event."""
        self.sent = 0
        """Events sent."""
        self.released = threading.Event()
        """Cleared by a test that wants a stream to wait after its first event."""
        self.released.set()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        path = unquote(handler.path.partition("?")[0])
        shape = next((shape for part, shape in _SHAPES.items() if part in path), None)
        if shape is None:
            self._send_document(handler, {"input_tokens": 1, "totalTokens": 1})
            return
        streams = bool(body.get("stream")) or any(word in path for word in ("stream", "Stream"))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(shape, path, body, streams, headers)
        self.requests.append(request)
        reply = self.responder(request) if self.responder is not None else self._next_reply(shape, body)
        if isinstance(reply, Refusal):
            status, document, headers = refusal(shape, reply.kind)
            self._send_document(handler, document, status=status, headers=headers)
        elif self.document is not None or not streams:
            self._send_document(handler, self.document or DOCUMENTS[shape](reply))
        else:
            self._send_stream(handler, shape, EVENTS[shape](reply))

    def _next_reply(self, shape: str, body: dict[str, Any]) -> Reply | Refusal:
        if not self.script:
            return Reply(cached_tokens=700) if shape == "messages" else Reply()
        reply = self.script.pop(0)
        if isinstance(reply, Refusal):
            return reply
        return replace(reply, input_tokens=input_tokens(body), number=len(self.requests))

    def _send_document(
        self,
        handler: BaseHTTPRequestHandler,
        document: dict[str, Any],
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        content = json.dumps(document).encode()
        handler.send_response(status)
        if self.gzip:
            content = gzip.compress(content)
            handler.send_header("content-encoding", "gzip")
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(content)))
        handler.send_header("x-request-id", "req-1")
        handler.end_headers()
        handler.wfile.write(content)

    def _send_stream(self, handler: BaseHTTPRequestHandler, shape: str, events: Sequence[dict[str, Any]]) -> None:
        framed = shape in ("converse", "invoke")
        handler.send_response(200)
        kind = "application/vnd.amazon.eventstream" if framed else "text/event-stream"
        handler.send_header("content-type", kind)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        pieces = [frame(event) if framed else _server_sent(event) for event in events]
        if self.error is not None:
            text = json.dumps(self.error)
            pieces[1:] = [
                exception_frame("modelStreamErrorException", text) if framed else _server_sent(self.error)
            ]
        for number, piece in enumerate(pieces):
            self.sent += 1
            self._send(handler, piece)
            if number == 0 and self.breaks:
                handler.close_connection = True
                handler.connection.close()
                return
            if number == 0:
                self.released.wait(10)
        if shape == "chat":
            self._send(handler, b"data: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, data: bytes) -> None:
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        handler.wfile.flush()


def input_tokens(body: dict[str, Any]) -> int:
    """Return the input that the provider reports for a request."""
    return len(json.dumps({name: body[name] for name in _COUNTED if name in body})) // CHARACTERS_PER_TOKEN


def _server_sent(event: dict[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


@contextmanager
def loopback_provider() -> Iterator[LoopbackProvider]:
    """Run a provider on a free port until the block ends."""
    provider = LoopbackProvider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body waits for the acknowledgement of the headers

        def do_POST(self) -> None:
            try:
                provider.answer(self)
            except ConnectionError:  # the client went away
                self.close_connection = True

        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a connection that broke on purpose
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.released.set()
        server.shutdown()
        server.server_close()
