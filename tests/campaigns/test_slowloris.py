"""Clients that hold connections of the endpoint without using them, during scrapes."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from windowpane.outputs.http import connections, http_server
from windowpane.outputs.http.authentication import TlsOptions
from windowpane.outputs.http.http_server import MetricsServer, start_http_server
from windowpane.outputs.http.routes import Routes

SCRAPE_SECONDS = 2.0
"""A scrape during the attack takes at most this long; Prometheus waits for ten."""
HALF_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Half: "
WHOLE_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

Attack = Callable[[socket.socket], socket.socket]


def silent(raw: socket.socket) -> socket.socket:
    """Send nothing."""
    return raw


def half_headers(raw: socket.socket) -> socket.socket:
    """Send a request whose headers do not end."""
    raw.sendall(HALF_REQUEST)
    return raw


def never_reading(raw: socket.socket) -> socket.socket:
    """Request the metrics, and never read them."""
    raw.sendall(WHOLE_REQUEST)
    return raw


def half_hello(raw: socket.socket) -> socket.socket:
    """Send the start of a TLS greeting."""
    raw.sendall(b"\x16\x03\x01\x02\x00\x01")
    return raw


def silent_within_tls(raw: socket.socket) -> socket.socket:
    """Complete the handshake and send nothing."""
    return unverified().wrap_socket(raw)


def half_headers_within_tls(raw: socket.socket) -> socket.socket:
    """Complete the handshake and send half a request."""
    return half_headers(unverified().wrap_socket(raw))


PLAIN = (silent, half_headers, never_reading)
WITHIN_TLS = (silent, half_hello, silent_within_tls, half_headers_within_tls)


@cache
def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Attackers:
    """A thread that keeps connections open, and opens each again when the endpoint closes it."""

    def __init__(self, server: MetricsServer, attack: Attack, *, count: int, drip: bool) -> None:
        self._count = count
        self._address = (server.host, server.port)
        self._attack = attack
        self._drip = drip
        self._stop = threading.Event()
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.ready = threading.Event()

    def __enter__(self) -> Attackers:
        self._thread.start()
        assert self.ready.wait(30), "the attackers could not connect"
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        for held in self._held:
            held.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            closed = [held for held in self._held if not self._is_open(held)]
            for held in closed:
                held.close()
            self._held = [held for held in self._held if held not in closed]
            for _ in range(self._count - len(self._held)):
                with suppress(OSError):
                    self._held.append(self._connected())
                if self._stop.is_set():
                    return
            self.ready.set()
            self._stop.wait(0.2)

    def _connected(self) -> socket.socket:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.settimeout(5)
        try:
            raw.connect(self._address)
            return self._attack(raw)
        except OSError:
            raw.close()
            raise

    def _is_open(self, held: socket.socket) -> bool:
        try:
            if self._drip:
                held.send(b"x")
            held.settimeout(0)
            if self._attack is never_reading:
                return True
            return held.recv(1) != b""
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False


def scrape(server: MetricsServer) -> float | None:
    """Return the seconds of a complete scrape, or None where it failed."""
    started = time.monotonic()
    if server.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            server.host, server.port, timeout=SCRAPE_SECONDS, context=unverified()
        )
    else:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=SCRAPE_SECONDS)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return time.monotonic() - started if response.status == 200 and b"last_gauge" in body else None


@pytest.fixture(scope="module")
def registry() -> CollectorRegistry:
    """Metrics that are larger than the buffers of a connection."""
    registry = CollectorRegistry()
    gauge = Gauge("large", "One of many.", ["number"], registry=registry)
    for number in range(5_000):
        gauge.labels(f"{number:0200}").set(number)
    Gauge("last_gauge", "The end.", registry=registry).set(1)
    return registry


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory, require_server: Callable[[str], str]) -> TlsOptions:
    folder = tmp_path_factory.mktemp("certificate")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            require_server("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate,
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return TlsOptions(certificate, key)


@pytest.fixture
def servers(registry: CollectorRegistry) -> Iterator[Callable[..., MetricsServer]]:
    with ExitStack() as stack:
        yield lambda tls=None: stack.enter_context(start_http_server(Routes(registry), port=0, tls=tls))


def held_scrapes(server: MetricsServer, attempts: int) -> list[float | None]:
    results = []
    for _ in range(attempts):
        results.append(scrape(server))
        time.sleep(0.05)
    return results


def check(campaign: Any, fault: str, server: MetricsServer, attack: Attack, *, drip: bool = False) -> None:
    alone = scrape(server)
    count = campaign.attempts(sample=80, whole=200)  # both are more than the endpoint's connections
    with Attackers(server, attack, count=count, drip=drip):
        seconds = held_scrapes(server, campaign.attempts(sample=5, whole=50))
    good = [value for value in seconds if value is not None]
    campaign.record(
        f"slow clients: {fault}", tried=len(seconds), held=len(good),
        note=f"{count} clients; slowest scrape {max(good, default=0):.2f} s, without them {alone:.2f} s",
    )  # fmt: skip
    assert len(good) == len(seconds), f"{fault}: {len(seconds) - len(good)} of {len(seconds)} scrapes failed"


@pytest.mark.parametrize("attack", PLAIN)
def test_a_scrape_succeeds_beside_idle_clients(servers: Any, campaign: Any, attack: Attack) -> None:
    check(campaign, attack.__name__.replace("_", " "), servers(), attack)


def test_a_scrape_succeeds_beside_clients_of_one_byte_a_moment(servers: Any, campaign: Any) -> None:
    check(campaign, "a byte now and then", servers(), half_headers, drip=True)


@pytest.mark.parametrize("attack", WITHIN_TLS)
def test_a_scrape_over_tls_succeeds_beside_idle_clients(
    servers: Any, campaign: Any, tls: TlsOptions, attack: Attack
) -> None:
    check(campaign, f"TLS, {attack.__name__.replace('_', ' ')}", servers(tls), attack)


@pytest.mark.parametrize("drip", [False, True], ids=["silent", "a byte now and then"])
def test_a_request_has_one_deadline(
    servers: Any, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None], *, drip: bool
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    server = servers()
    with socket.create_connection((server.host, server.port), timeout=5) as client:
        client.sendall(HALF_REQUEST)

        def is_closed() -> bool:
            try:
                client.settimeout(0.01)
                if drip:
                    client.send(b"x")
                return client.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        wait_until(is_closed, what="the connection being closed")


def test_a_response_that_is_not_read_has_a_deadline(
    servers: Any, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]
) -> None:
    monkeypatch.setattr(connections, "RESPONSE_SECONDS", 0.3)
    server = servers()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect((server.host, server.port))
        client.sendall(WHOLE_REQUEST)
        client.recv(1)

        wait_until(lambda: not threads_of_requests(), what="the end of the request's thread")


def test_a_request_has_a_largest_size(servers: Any) -> None:
    server = servers()
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5)
    connection.request("GET", "/metrics", headers={"X-Large": "x" * http_server.MAXIMUM_HEAD_BYTES})

    assert connection.getresponse().status == 431
    connection.close()


def threads_of_requests() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]
