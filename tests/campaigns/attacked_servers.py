"""The five servers that attacks are tried on, each with a request that has to succeed meanwhile."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Gauge

from windowpane.config.outputs import Tls
from windowpane.outputs.http.asgi_server import AsgiServer, start_asgi_server
from windowpane.outputs.http.connections import Limits
from windowpane.outputs.http.http_server import RunningServer, start_http_server
from windowpane.outputs.http.routes import Routes
from windowpane.outputs.remote.batches import CONTENT_TYPE, PATH
from windowpane.outputs.remote.endpoint import IngestEndpoint
from windowpane.outputs.remote.group_commit import GroupCommit
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.proxy.upstreams import Upstream
from windowpane.sources.receiver.endpoint import OtlpEndpoint
from windowpane.store.writes.received import Receipt, ReceivedBatch

NAMES = ("agent", "serve", "ingest", "otlp", "proxy")
REQUEST_SECONDS = 10.0
"""A good request takes at most this long, as Prometheus waits."""


class Attacked(NamedTuple):
    """A running server and its good request."""

    name: str
    server: RunningServer
    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed

    def seconds(self) -> float | None:
        """Return the seconds of a good request, or None where it failed."""
        started = time.monotonic()
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=REQUEST_SECONDS)
        if self.server.scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection(
                self.server.host, self.server.port, timeout=REQUEST_SECONDS, context=context
            )
        try:
            connection.request(self.method, self.path, self.body, self.headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        is_whole = self.method == "POST" or b"last_gauge" in body
        return time.monotonic() - started if response.status == 200 and is_whole else None

    @property
    def open_connections(self) -> int:
        server = self.server
        return len(server._connections if isinstance(server, AsgiServer) else server._server.connections)  # type: ignore[attr-defined]


AttackOn = Callable[..., Attacked]


class _Stored:
    """Stores nothing, durably."""

    def receive(self, batches: Sequence[ReceivedBatch]) -> list[Receipt]:
        return [Receipt(len(batch.events)) for batch in batches]


class _Taken:
    """Takes everything: requests of OTLP, and calls of the proxy."""

    def put(self, *_: object) -> bool:
        return True


def made_registry(lines: int) -> CollectorRegistry:
    """Return metrics; 5,000 lines are larger than the buffers of a connection."""
    registry = CollectorRegistry()
    gauge = Gauge("large", "One of many.", ["number"], registry=registry)
    for number in range(lines):
        gauge.labels(f"{number:0200}").set(number)
    Gauge("last_gauge", "The end.", registry=registry).set(1)
    return registry


def start(name: str, stack: ExitStack, *, lines: int = 1, **options: Any) -> Attacked:
    """Start the server of a name, with `limits`, `tls`, `token` and so many *lines* of metrics."""
    registry = made_registry(lines)
    limits: dict[str, Limits] = {"limits": options["limits"]} if "limits" in options else {}
    tls: Tls | None = options.get("tls")
    taken: Any = _Taken()
    if name == "agent":
        routes = Routes(registry, bearer_token=options.get("token"))
        return Attacked(
            name, stack.enter_context(start_http_server(routes, port=0, tls=tls, **limits)), "GET", "/metrics"
        )
    if name == "proxy":
        upstream = stack.enter_context(start_asgi_server(Routes(registry), port=0))
        url = upstream.url
        proxy = ProxyServer("127.0.0.1", 0, {"openai": Upstream("openai", url)}, taken, **limits)
        return Attacked(name, stack.enter_context(proxy), "GET", "/openai/metrics")
    posts = {}
    if name == "ingest":
        commits = GroupCommit(_Stored())
        commits.start()
        stack.callback(commits.close)
        posts = IngestEndpoint(commits).posts
    elif name == "otlp":
        posts = OtlpEndpoint(taken).posts
    routes = Routes(registry if name == "serve" else None, bearer_token=options.get("token"), posts=posts)
    server = stack.enter_context(start_asgi_server(routes, port=0, tls=tls, **limits))
    if name == "serve":
        return Attacked(name, server, "GET", "/metrics")
    if name == "ingest":
        return Attacked(name, server, "POST", PATH, b"\n", {"Content-Type": CONTENT_TYPE})
    return Attacked(
        name, server, "POST", "/v1/traces", json.dumps({}).encode(), {"Content-Type": "application/json"}
    )
