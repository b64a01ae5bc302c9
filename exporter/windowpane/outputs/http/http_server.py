"""The HTTP endpoint: `/metrics` for Prometheus, `/healthz` for probes, `/sd` for service discovery.

Listens on loopback by default, serves a bounded number of connections on separate threads, each for one request
within a deadline, and never responds with anything from a session's content.
"""

from __future__ import annotations

import errno
import gzip
import json
import logging
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client.registry import CollectorRegistry

from windowpane.outputs.http.authentication import (
    OTHER_SITE,
    TlsOptions,
    has_bearer_token,
    is_from_other_site,
    is_loopback,
    require_protection,
    server_context,
)
from windowpane.outputs.http.connections import MAXIMUM_CONNECTIONS, REQUEST_SECONDS, Connections
from windowpane.outputs.http.content_negotiation import Exposition, accepts_gzip, exposition_for
from windowpane.outputs.http.request_bodies import BodyBudget, BodyError, BodyReader, ByteStream
from windowpane.outputs.http.routes import PostRequest, Response, Routes
from windowpane.outputs.http.shared_runs import SharedRuns

logger = logging.getLogger(__name__)

DEFAULT_PORT: Final = 9464
"""Default port of OpenTelemetry's Prometheus exporters."""
LOOPBACK: Final = "127.0.0.1"
MAXIMUM_HEAD_BYTES: Final = 32_768
"""Longest request line with all headers; a longer request is refused."""
OVERDUE_CHECK_SECONDS: Final = 0.1
"""Interval between two checks for connections past their deadline."""
REFUSED_SECONDS: Final = 2.0
"""Time for which the rest of a refused body is read and discarded."""
GZIP_LEVEL: Final = 3
"""A low level already compresses metrics text more than tenfold, at the lowest cost per scrape."""


def host_and_port(host: str, port: int) -> str:
    """Return `host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class MetricsServer:
    """A running endpoint. Made by `start_http_server`."""

    def __init__(self, server: _Server, *, scheme: str) -> None:
        self._server = server
        self._scheme = scheme
        self._thread = threading.Thread(
            target=partial(server.serve_forever, poll_interval=OVERDUE_CHECK_SECONDS),
            name="windowpane-http",
            daemon=True,
        )
        self._thread.start()

    @property
    def host(self) -> str:
        """The address it listens on."""
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The port it listens on, which may differ from the requested one."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """`host:port`, the form of Prometheus targets."""
        return host_and_port(self.host, self.port)

    @property
    def scheme(self) -> str:
        """`http`, or `https` with a certificate."""
        return self._scheme

    @property
    def url(self) -> str:
        """URL of the metrics."""
        return f"{self._scheme}://{self.address}/metrics"

    def close(self) -> None:
        """Stop listening; requests in progress may finish. A second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=5)
        self._server.server_close()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_http_server(
    routes: Routes,
    *,
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    free_port_if_busy: bool = True,
    tls: TlsOptions | None = None,
    insecure: bool = False,
    maximum_connections: int = MAXIMUM_CONNECTIONS,
) -> MetricsServer:
    """Serve *routes* on a thread.

    For a busy *port* the server listens on a free one, which the result names. Raises `OSError` for an address
    that it cannot listen on and for a certificate that cannot be used, and `ConfigurationError` for an address
    beyond loopback with neither a token nor client certificates, unless *insecure*.
    """
    require_protection(
        host,
        has_token=routes.bearer_token is not None,
        has_client_ca=tls is not None and tls.client_ca is not None,
        insecure=insecure,
    )
    context = None if tls is None else server_context(tls)
    make = partial(
        _Server,
        routes=routes,
        tls=context,
        connections=Connections(maximum_connections),
    )
    try:
        server = make((host, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not free_port_if_busy:
            raise
        server = make((host, 0))
        logger.warning("port %d is busy: metrics are on port %d instead", port, server.server_address[1])
    return MetricsServer(server, scheme="http" if tls is None else "https")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # connections that wait to be accepted

    def __init__(
        self,
        address: tuple[str, int],
        *,
        routes: Routes,
        tls: ssl.SSLContext | None,
        connections: Connections,
    ) -> None:
        self.routes = routes
        self.connections = connections
        self.metrics: SharedRuns[bytes] = SharedRuns()
        self.bodies = BodyBudget()
        self._tls = tls
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, client = super().get_request()
        connection.settimeout(REQUEST_SECONDS)
        if self._tls is not None:
            # The handshake waits for the client, so it is done on the thread of the request.
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def service_actions(self) -> None:
        self.connections.close_overdue()

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        if self.connections.admit(request):
            return True
        if self._tls is None:
            with suppress(OSError):  # the client may have disconnected
                request.send(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n")
        return False

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        logger.debug("request from %s failed: %r", client_address, sys.exception())

    def server_bind(self) -> None:
        # The base class looks up the host's name, which can take seconds and is not used here.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class _Head:
    """The request line and the headers of a request, up to a bounded size."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self._remaining = MAXIMUM_HEAD_BYTES

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


_REFUSED: Final = 400
_NOT_HERE: Final = Response(421, f"{OTHER_SITE}\n".encode())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "windowpane"
    sys_version = ""

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()
        self._stream: ByteStream = self.rfile
        self.rfile = _Head(self.rfile)  # type: ignore[assignment]  # the base class only reads lines

    def do_GET(self) -> None:
        self.server.connections.respond(self.request)
        self._send(self._response())

    do_HEAD = do_GET  # noqa: N815  # named by the base class

    def do_POST(self) -> None:
        if not self.server.routes.posts:
            self.send_error(501, "Unsupported method ('POST')")
            return
        path = urlsplit(self.path).path
        post = self.server.routes.posts.get(path)
        refused = self._refused(path)
        if refused is not None or post is None:
            self._send(refused or Response(404, self._paths()))
            self._read_rest()
            return
        reader = BodyReader(self._stream, self.server.bodies)
        try:
            body = reader.read(self.headers)
            self.server.connections.respond(self.request)
            response = post(PostRequest(path, self.headers, body))
        except BodyError as error:
            response = Response(error.status, f"{error}\n".encode(), headers=error.headers)
        except Exception:  # one request must not end the others
            logger.exception("cannot respond to %s", path)
            response = Response(500, b"internal error, see the log\n")
        finally:
            reader.close()
        self._send(response)
        if response.status >= _REFUSED:
            self._read_rest()

    def _read_rest(self) -> None:
        """Read what a refused client still sends: closing before would reset the connection of the response."""
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(REFUSED_SECONDS)
            until = time.monotonic() + REFUSED_SECONDS
            while time.monotonic() < until and self._stream.read(1 << 16):
                pass

    def _send(self, response: Response) -> None:
        self.server.connections.send(self.request)
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # named by the base class
        logger.debug("%s %s", self.address_string(), format % args)

    def _response(self) -> Response:
        try:
            return self._respond(urlsplit(self.path).path)
        except Exception:  # a failing collector is an error of one request, seen by Prometheus as down
            logger.exception("cannot respond to %s", self.path)
            return Response(500, b"internal error, see the log\n")

    def _respond(self, path: str) -> Response:
        routes = self.server.routes
        if not self._may_come_from_here(path):
            return _NOT_HERE
        if path == "/healthz":
            return self._health(with_details=self._is_authenticated())
        if path in routes.posts:
            return Response(405, b"send a POST\n", headers=(("Allow", "POST"),))
        if path not in ("/metrics", "/sd") or routes.registry is None:
            return Response(404, self._paths())
        return self._refused(path) or (self._metrics(routes.registry) if path == "/metrics" else self._targets())

    def _refused(self, path: str) -> Response | None:
        """Return the response to a client that may not make the request; None if it may."""
        if not self._may_come_from_here(path):
            return _NOT_HERE
        authorized = self.server.routes.authorized.get(path)
        if not (self._is_authenticated() if authorized is None else authorized(self._header("Authorization"))):
            return Response(401, b"a bearer token is required\n", headers=(("WWW-Authenticate", "Bearer"),))
        return None

    def _may_come_from_here(self, path: str) -> bool:
        """Return whether no other site's page made the request; a token, which no page has, decides by itself."""
        routes = self.server.routes
        if routes.bearer_token is not None or path in routes.authorized:
            return True
        on_loopback = is_loopback(self.server.server_name)
        given = self.headers
        return not is_from_other_site(given.get("Host"), given.get("Origin"), on_loopback=on_loopback)

    def _is_authenticated(self) -> bool:
        return has_bearer_token(self.headers.get("Authorization", ""), self.server.routes.bearer_token)

    def _paths(self) -> bytes:
        routes = self.server.routes
        served = [] if routes.registry is None else ["/metrics", "/sd"]
        paths = [*served[:1], *routes.posts, "/healthz", *served[1:]]
        return f"not found; try {', '.join(paths[:-1])} or {paths[-1]}\n".encode()

    def _metrics(self, registry: CollectorRegistry) -> Response:
        exposition = exposition_for(self._header("Accept"))
        compressed = accepts_gzip(self._header("Accept-Encoding"))
        encode = partial(_encoded, registry, exposition, compressed=compressed)
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
        if compressed:
            headers += (("Content-Encoding", "gzip"),)
        body = self.server.metrics.run((exposition, compressed), encode)
        return Response(200, body, exposition.content_type, headers)

    def _header(self, name: str) -> str:
        """Return all headers of a name as one comma-separated list."""
        return ", ".join(self.headers.get_all(name, ()))

    def _health(self, *, with_details: bool) -> Response:
        health = self.server.routes.health()
        document: dict[str, object] = {"status": health.status}
        if with_details:
            document |= health.details
        return _json(200 if health.ok else 503, document)

    def _targets(self) -> Response:
        return _json(
            200,
            [
                {"targets": [target.address], "labels": dict(target.labels)}
                for target in self.server.routes.targets()
            ],
        )


def _encoded(registry: CollectorRegistry, exposition: Exposition, *, compressed: bool) -> bytes:
    body = exposition.encode(registry)
    return gzip.compress(body, compresslevel=GZIP_LEVEL, mtime=0) if compressed else body


def _json(status: int, document: object) -> Response:
    body = json.dumps(document, separators=(",", ":"), default=str).encode()
    return Response(status, body, "application/json")
