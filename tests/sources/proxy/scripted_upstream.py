"""An upstream on the loopback interface that answers as scripted."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """One request as the upstream received it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Answer:
    """One response; without a length it is sent in chunks."""

    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    has_length: bool = True
    breaks_off: bool = False
    """The connection is closed before the last chunk."""
    wait_after_first: threading.Event | None = None


class UpstreamServer:
    """Answers every request with `answer`, and keeps the requests."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.received: list[Received] = []
        self.broken = threading.Event()
        """Set when a client closed its connection before the end of a response."""
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the body waits for the acknowledgement of the headers

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    upstream.broken.set()
                    self.close_connection = True

            def do_POST(self) -> None:
                upstream.respond(self)

            do_GET = do_POST  # noqa: N815  # the standard library's name

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 512

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # broken on purpose
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        body = b""
        if handler.headers.get("Transfer-Encoding") == "chunked":
            while size := int(handler.rfile.readline(), 16):
                body += handler.rfile.read(size)
                handler.rfile.readline()
            handler.rfile.readline()
        else:
            body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.received.append(Received(handler.command, handler.path, handler.headers.items(), body))
        answer = self.answer
        handler.send_response_only(answer.status)
        for name, value in answer.headers:
            handler.send_header(name, value)
        if answer.has_length:
            handler.send_header("Content-Length", str(sum(map(len, answer.pieces))))
        else:
            handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for number, piece in enumerate(answer.pieces):
            handler.wfile.write(piece if answer.has_length else b"%x\r\n%b\r\n" % (len(piece), piece))
            handler.wfile.flush()
            if number == 0 and answer.wait_after_first is not None:
                answer.wait_after_first.wait(10)
        if answer.breaks_off:
            handler.close_connection = True
        elif not answer.has_length:
            handler.wfile.write(b"0\r\n\r\n")
