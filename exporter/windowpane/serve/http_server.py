"""The HTTP endpoint: `/metrics` for Prometheus, `/healthz` for probes, `/sd` for service discovery.

Listens on loopback unless told otherwise, serves a bounded number of requests at once on threads of its own, and
never answers with anything about a session's content.
"""

from __future__ import annotations

import errno
import gzip
import hmac
import ipaddress
import json
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from prometheus_client.registry import CollectorRegistry

from windowpane.serve.content_negotiation import exposition_for, gzip_wanted

logger = logging.getLogger(__name__)

DEFAULT_PORT: Final = 9464
"""What OpenTelemetry's Prometheus exporters listen on."""
LOOPBACK: Final = "127.0.0.1"
MAXIMUM_REQUESTS: Final = 16
"""Requests served at once; more are turned away."""
REQUEST_SECONDS: Final = 10.0
"""How long a client may take between two bytes."""
GZIP_LEVEL: Final = 3
"""Metrics text shrinks more than tenfold already at a low level, which costs least at each scrape."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the exporter works, with details for whoever may see them."""

    ok: bool = True
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A metrics endpoint that Prometheus should scrape."""

    address: str
    """`host:port`."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Certificate of the endpoint; with *client_ca* clients must show one of theirs."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Routes:
    """What the endpoint answers with; each callable is asked at each request."""

    registry: CollectorRegistry
    health: Callable[[], Health] = Health
    targets: Callable[[], Sequence[Target]] = tuple
    bearer_token: str | None = None


def host_and_port(host: str, port: int) -> str:
    """An address as URLs and Prometheus write it; that of IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Answer(NamedTuple):
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class MetricsServer:
    """A running endpoint. Made by `start_http_server`."""

    def __init__(self, server: _Server, *, scheme: str) -> None:
        self._server = server
        self._scheme = scheme
        self._thread = threading.Thread(
            target=partial(server.serve_forever, poll_interval=0.1), name="windowpane-http", daemon=True
        )
        self._thread.start()

    @property
    def host(self) -> str:
        """The address it listens on."""
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The port it listens on, which may not be the one that was asked for."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """`host:port`, as Prometheus writes targets."""
        return host_and_port(self.host, self.port)

    @property
    def scheme(self) -> str:
        """`http`, or `https` with a certificate."""
        return self._scheme

    @property
    def url(self) -> str:
        """Where the metrics are."""
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
    maximum_requests: int = MAXIMUM_REQUESTS,
) -> MetricsServer:
    """Serve *routes* on a thread. Raises `OSError` where the address cannot be listened on.

    A busy *port* gives way to a free one, which the result names. Raises `OSError` too where a certificate
    cannot be read.
    """
    context = None if tls is None else _tls_context(tls)
    make = partial(_Server, routes=routes, tls=context, maximum_requests=maximum_requests)
    try:
        server = make((host, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not free_port_if_busy:
            raise
        server = make((host, 0))
        logger.warning("port %d is busy: metrics are on port %d instead", port, server.server_address[1])
    return MetricsServer(server, scheme="http" if tls is None else "https")


def _tls_context(options: TlsOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key)
    except OSError as error:
        named = f"certificate {options.certificate} with key {options.key}"
        raise OSError(error.errno, f"{named} cannot be used: {error.strerror or error}") from error
    if options.client_ca is not None:
        try:
            context.load_verify_locations(options.client_ca)
        except OSError as error:
            named = f"authority {options.client_ca}"
            raise OSError(error.errno, f"{named} cannot be used: {error.strerror or error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        *,
        routes: Routes,
        tls: ssl.SSLContext | None,
        maximum_requests: int,
    ) -> None:
        self.routes = routes
        self._tls = tls
        self._room = threading.BoundedSemaphore(maximum_requests)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, client = super().get_request()
        connection.settimeout(REQUEST_SECONDS)
        if self._tls is not None:
            # The handshake waits for the client, so it is done on the request's own thread.
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            if self._tls is None:
                with suppress(OSError):  # the client may be gone; it is turned away either way
                    request.send(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        logger.debug("request from %s failed: %r", client_address, sys.exception())

    def server_bind(self) -> None:
        # The base class looks the host's name up, which can take seconds and is never used here.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "windowpane"
    sys_version = ""

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def do_GET(self) -> None:
        try:
            answer = self._answer(urlsplit(self.path).path)
        except Exception:  # a failing collector is an error of one request, seen by Prometheus as down
            logger.exception("cannot answer %s", self.path)
            answer = _Answer(500, b"internal error, see the log\n")
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815  # named by the base class

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # named by the base class
        logger.debug("%s %s", self.address_string(), format % args)

    def _answer(self, path: str) -> _Answer:
        if not self._is_asked_for_by_name_of_its_own():
            return _Answer(421, b"this endpoint is for this machine; ask for it as 127.0.0.1 or localhost\n")
        allowed = self._allowed()
        if path == "/healthz":
            return self._health(allowed=allowed)
        if path not in ("/metrics", "/sd"):
            return _Answer(404, b"not found; try /metrics, /healthz or /sd\n")
        if not allowed:
            return _Answer(401, b"a bearer token is required\n", headers=(("WWW-Authenticate", "Bearer"),))
        return self._metrics() if path == "/metrics" else self._targets()

    def _is_asked_for_by_name_of_its_own(self) -> bool:
        """Whether the request names this machine, where only this machine may ask and no token is needed.

        A page in a browser can have its own host name resolve to 127.0.0.1 and would then read the answer; the
        browser sends that host name along.
        """
        asked = self.headers.get("Host")
        if (
            asked is None
            or self.server.routes.bearer_token is not None
            or not _is_loopback(self.server.server_name)
        ):
            return True
        try:
            name = urlsplit(f"//{asked}").hostname or ""
        except ValueError:
            return False
        return name == "localhost" or name.endswith(".localhost") or _is_loopback(name)

    def _allowed(self) -> bool:
        token = self.server.routes.bearer_token
        if token is None:
            return True
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode())

    def _metrics(self) -> _Answer:
        chosen = exposition_for(self._header("Accept"))
        body = chosen.encode(self.server.routes.registry)
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
        if gzip_wanted(self._header("Accept-Encoding")):
            body = gzip.compress(body, compresslevel=GZIP_LEVEL, mtime=0)
            headers += (("Content-Encoding", "gzip"),)
        return _Answer(200, body, chosen.content_type, headers)

    def _header(self, name: str) -> str:
        """All headers of a name as one list."""
        return ", ".join(self.headers.get_all(name, ()))

    def _health(self, *, allowed: bool) -> _Answer:
        health = self.server.routes.health()
        document: dict[str, object] = {"status": "ok" if health.ok else "failing"}
        if allowed:
            document |= health.details
        return _json(200 if health.ok else 503, document)

    def _targets(self) -> _Answer:
        return _json(
            200,
            [
                {"targets": [target.address], "labels": dict(target.labels)}
                for target in self.server.routes.targets()
            ],
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _json(status: int, document: object) -> _Answer:
    body = json.dumps(document, separators=(",", ":"), default=str).encode()
    return _Answer(status, body, "application/json")
