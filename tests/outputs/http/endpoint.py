"""An endpoint over a scripted session, its certificates, and a client for it."""

from __future__ import annotations

import http.client
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.registry import CollectorRegistry

from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.asgi_server import start_asgi_server
from windowpane.outputs.http.http_server import RunningServer, start_http_server
from windowpane.outputs.http.routes import Health, Routes, Target


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def fetch(server: RunningServer, path: str, *, method: str = "GET", **headers: str) -> Reply:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read())
    finally:
        connection.close()


@pytest.fixture
def registry(scripted_state: MetricState) -> CollectorRegistry:
    return registry_of(StateSource(scripted_state, clock=lambda: 1_000.0))


Start = Callable[..., RunningServer]


@pytest.fixture(params=[start_http_server, start_asgi_server], ids=["agent", "serve"])
def start(request: pytest.FixtureRequest) -> Start:
    """The function that starts the server of an agent's process, then that of `windowpane serve`."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def server(start: Start, registry: CollectorRegistry) -> Iterator[RunningServer]:
    routes = Routes(
        registry,
        health=lambda: Health(ok=True, details={"events": 5}),
        targets=lambda: [Target("127.0.0.1:9464", {"process": "12"})],
    )
    with start(routes, port=0) as running:
        yield running


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory, require_server) -> Path:
    """A certificate for loopback that is its own authority."""
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(
        [
            require_server("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", folder / "key.pem", "-out", folder / "cert.pem",
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )  # fmt: skip
    return folder
