"""A server that answers as a test prescribes, and events to send to it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from windowpane.core.events import Event, EventContext, SessionStarted, TurnStarted


class Reply(NamedTuple):
    status: int
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


Respond = Callable[[list[bytes]], Reply]
"""The lines of a request to the reply."""


def stored(lines: list[bytes]) -> Reply:
    """The reply of a server that stores everything."""
    return Reply(200, json.dumps({"stored": len(lines), "repeated": 0, "refused": []}).encode())


class ScriptedServer:
    """Answers each request by `respond`, and records it with its time."""

    def __init__(self, respond: Respond = stored) -> None:
        self.respond = respond
        self.requests: list[list[bytes]] = []
        self.arrived_at: list[float] = []
        self.tokens: list[str | None] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                lines = body.splitlines()
                owner.arrived_at.append(time.monotonic())
                owner.tokens.append(self.headers["Authorization"])
                owner.requests.append(lines)
                reply = owner.respond(lines)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass  # a client that was closed has not waited for its reply

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def numbers(self) -> list[int]:
        """The numbers of the events of all requests that were not refused, in the order of arrival."""
        return [json.loads(line)["n"] for lines in self.requests for line in lines if b'"n":' in line]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def session(session_id: str, numbers: range) -> list[Event]:
    """Events of one session and stream."""
    context = EventContext(session_id, "agent", "gpt-4o", 1, 1, "live", f"{session_id}/stream")
    return [Event(context, n, 1.0 + n, TurnStarted() if n else SessionStarted()) for n in numbers]
