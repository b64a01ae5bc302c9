"""A provider on the loopback interface that speaks the wire formats of OpenAI and Anthropic.

Real sockets, because raw and streamed responses differ from parsed ones only in when their bytes are read.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = "On it."
USAGE = {"input": 800, "output": 3}
"""Tokens that every reply reports."""

CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}],
    "usage": {"prompt_tokens": 800, "completion_tokens": 3, "total_tokens": 803},
}  # fmt: skip
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed",
    "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}],
    "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    "usage": {"input_tokens": 800, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 3,
              "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 803},
}  # fmt: skip
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-of-tests", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": TEXT}],
    "usage": {"input_tokens": 100, "output_tokens": 3, "cache_read_input_tokens": 700,
              "cache_creation_input_tokens": 0},
}  # fmt: skip


def _chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
            "choices": [choice]} | more  # fmt: skip


def _item(**more: Any) -> dict[str, Any]:
    return {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []} | more


STREAMS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        _chunk({"role": "assistant", "content": "On "}), _chunk({"content": "it."}),
        _chunk({}, choices=[], usage=CHAT["usage"]),
    ],
    "responses": [
        {"type": "response.created", "sequence_number": 0,
         "response": RESPONSE | {"status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
         "item": {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}},
        _item(type="response.content_part.added", sequence_number=2,
              part={"type": "output_text", "text": "", "annotations": []}),
        _item(type="response.output_text.delta", sequence_number=3, delta=TEXT),
        _item(type="response.output_text.done", sequence_number=4, text=TEXT),
        {"type": "response.output_item.done", "sequence_number": 5, "output_index": 0,
         "item": RESPONSE["output"][0]},  # type: ignore[index]
        {"type": "response.completed", "sequence_number": 6, "response": RESPONSE},
    ],
    "messages": [
        {"type": "message_start", "message": MESSAGE | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ],
}  # fmt: skip
DOCUMENTS = {"chat": CHAT, "responses": RESPONSE, "messages": MESSAGE}


class LoopbackProvider:
    """Answers every call with the same reply, as a document or as a stream; a test sets the faults."""

    def __init__(self) -> None:
        self.url = ""
        self.gzip = False
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
        path = handler.path.partition("?")[0]
        shape = next(name for name in ("messages", "responses", "chat") if f"/{name}" in path)
        if self.document is not None or not body.get("stream"):
            content = json.dumps(self.document or DOCUMENTS[shape]).encode()
            handler.send_response(200)
            if self.gzip:
                content = gzip.compress(content)
                handler.send_header("content-encoding", "gzip")
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", str(len(content)))
            handler.send_header("x-request-id", "req-1")
            handler.end_headers()
            handler.wfile.write(content)
            return
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        events = STREAMS[shape]
        if self.error is not None:
            events = [events[0], self.error]
        for number, event in enumerate(events):
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.sent += 1
            self._send(handler, f"{name}data: {json.dumps(event)}\n\n")
            if number == 0 and self.breaks:
                handler.close_connection = True
                handler.connection.close()
                return
            if number == 0:
                self.released.wait(10)
        if shape == "chat":
            self._send(handler, "data: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, text: str) -> None:
        data = text.encode()
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        handler.wfile.flush()


@contextmanager
def loopback_provider() -> Iterator[LoopbackProvider]:
    """Run a provider on a free port until the block ends."""
    provider = LoopbackProvider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            try:
                provider.answer(self)
            except ConnectionError:  # the client went away
                self.close_connection = True

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
