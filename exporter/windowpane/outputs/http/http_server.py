"""The small server of an agent's process: GET requests for its pages, from the standard library alone.

Listens on loopback by default, serves a bounded number of connections on separate threads, each for one request
within a deadline, and never responds with anything from a session's content.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
import sys
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from windowpane.outputs.http.authentication import is_loopback, require_protection, server_context
from windowpane.outputs.http.connections import AGENT_LIMITS, Connections, Limits
from windowpane.outputs.http.pages import Pages
from windowpane.outputs.http.routes import Response, Routes

if TYPE_CHECKING:
    from windowpane.config.outputs import Tls

_log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 9464
"""Default port of OpenTelemetry's Prometheus exporters."""
LOOPBACK: Final = "127.0.0.1"
BACKLOG: Final = 128
"""Connections that wait to be accepted."""
OVERDUE_CHECK_SECONDS: Final = 0.1
"""Interval between two checks for connections past their deadline."""


def host_and_port(host: str, port: int) -> str:
    """Return `host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listening_socket(
    host: str, port: int, *, free_port_if_busy: bool = False, backlog: int = BACKLOG
) -> socket.socket:
    """Return a socket that listens, on a free port where *port* is busy and that is allowed. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by which asyncio sees TCP
    try:
        if os.name == "posix":  # elsewhere the option would share the port with another program
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(backlog)
    except OSError as error:
        listening.close()
        if error.errno != errno.EADDRINUSE or not free_port_if_busy:
            raise
        listening = listening_socket(host, 0, backlog=backlog)
        _log.warning("port %d is busy: metrics are on port %d instead", port, listening.getsockname()[1])
    return listening


class RunningServer(ABC):
    """A server that listens; as a context manager it stops at the end of the block."""

    def __init__(self, listening: socket.socket, *, is_encrypted: bool) -> None:
        self.host, self.port = listening.getsockname()[:2]
        """The address that it listens on; the port may differ from the requested one."""
        self.scheme = "https" if is_encrypted else "http"

    @property
    def address(self) -> str:
        """`host:port`, the form of Prometheus targets."""
        return host_and_port(self.host, self.port)

    @abstractmethod
    def close(self) -> None:
        """Stop listening; requests in progress may finish. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MetricsServer(RunningServer):
    """The running server of an agent's process. Made by `start_http_server`."""

    def __init__(self, server: _Server, *, is_encrypted: bool) -> None:
        super().__init__(server.socket, is_encrypted=is_encrypted)
        self._server = server
        self._thread = threading.Thread(
            target=partial(server.serve_forever, poll_interval=OVERDUE_CHECK_SECONDS),
            name="windowpane-http",
            daemon=True,
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """URL of the metrics."""
        return f"{self.scheme}://{self.address}/metrics"

    def close(self) -> None:
        """Stop listening; requests in progress may finish. A second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=5)
        self._server.server_close()


def start_http_server(
    routes: Routes,
    *,
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    free_port_if_busy: bool = True,
    tls: Tls | None = None,
    insecure: bool = False,
    limits: Limits = AGENT_LIMITS,
) -> MetricsServer:
    """Serve the pages of *routes* on a thread.

    For a busy *port* the server listens on a free one, which the result names. Raises `OSError` for an address
    that it cannot listen on and for a certificate that cannot be used, and `ConfigurationError` for an address
    beyond loopback with neither a token nor client certificates, unless *insecure*.
    """
    require_protection(host, has_token=routes.bearer_token is not None, tls=tls, insecure=insecure)
    context = None if tls is None else server_context(tls)
    listening = listening_socket(host, port, free_port_if_busy=free_port_if_busy)
    return MetricsServer(_Server(listening, routes, tls=context, limits=limits), is_encrypted=tls is not None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, listening: socket.socket, routes: Routes, *, tls: ssl.SSLContext | None, limits: Limits
    ) -> None:
        address = listening.getsockname()
        super().__init__(address, _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.pages = Pages(routes, on_loopback=is_loopback(address[0]))
        self.connections = Connections(limits.connections)
        self.limits = limits
        self._tls = tls

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, client = super().get_request()
        connection.settimeout(self.limits.head_seconds)
        if self._tls is not None:
            # The handshake waits for the client, so it is done on the thread of the request.
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def service_actions(self) -> None:
        self.connections.close_overdue()

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        if self.connections.admit(
            request, partial(_shut_down, request), seconds=self.limits.head_seconds,
            admission_seconds=self.limits.admission_seconds,
        ):  # fmt: skip
            return True
        if self._tls is None:
            with suppress(OSError):  # the client may have disconnected
                request.send(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n")
        return False

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        _log.debug("request from %s failed: %r", client_address, sys.exception())


def _shut_down(connection: socket.socket) -> None:
    """Wake the thread of a connection, which finds it closed."""
    with suppress(OSError):  # the client has disconnected
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would change it under its thread


class _Head:
    """The request line and the headers of a request, up to a bounded size."""

    def __init__(self, stream: BufferedIOBase, maximum: int) -> None:
        self._stream = stream
        self._remaining = maximum

    def readline(self, limit: int) -> bytes:
        """Return the next line. Raises `http.client.LineTooLong` beyond the maximum."""
        line = self._stream.readline(min(limit, self._remaining + 1))
        self._remaining -= len(line)
        if self._remaining < 0:
            raise LineTooLong("request")
        return line

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "windowpane"
    sys_version = ""

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()
        self.rfile = _Head(self.rfile, self.server.limits.head_bytes)  # type: ignore[assignment]  # only for lines

    def do_GET(self) -> None:
        self.server.connections.respond(self.request)
        path, pages = urlsplit(self.path).path, self.server.pages
        authorization = self._header("Authorization")
        refusal = pages.refusal(
            path, host=self.headers.get("Host"), origin=self.headers.get("Origin"), authorization=authorization
        )
        self._send(refusal or pages.respond(
            path, accept=self._header("Accept"), accept_encoding=self._header("Accept-Encoding"),
            authorization=authorization,
        ))  # fmt: skip

    do_HEAD = do_GET  # noqa: N815  # named by the base class

    def _send(self, response: Response) -> None:
        self.server.connections.wait(self.request, self.server.limits.response_seconds)
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _header(self, name: str) -> str:
        """Return all headers of a name as one comma-separated list."""
        return ", ".join(self.headers.get_all(name, ()))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # named by the base class
        _log.debug("%s %s", self.address_string(), format % args)
