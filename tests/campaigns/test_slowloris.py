"""Clients that hold connections of a server without using them, while others make good requests."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

import pytest
from attacked_servers import NAMES, Attacked, AttackOn
from tests.sampling import sampled

from windowpane.config.outputs import Tls
from windowpane.outputs.http.connections import Limits

HALF_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Half: "
HALF_BODY = b"POST /openai/v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx"

Attack = Callable[[socket.socket], socket.socket]


def silent(raw: socket.socket) -> socket.socket:
    """Send nothing."""
    return raw


def half_headers(raw: socket.socket) -> socket.socket:
    """Send a request whose headers do not end."""
    raw.sendall(HALF_REQUEST)
    return raw


def half_body(raw: socket.socket) -> socket.socket:
    """Send a request whose body does not end."""
    raw.sendall(HALF_BODY)
    return raw


def never_reading(raw: socket.socket) -> socket.socket:
    """Request the metrics, and never read them."""
    for path in (b"/metrics", b"/openai/metrics"):
        raw.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
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


SERVED = [name for name in NAMES if name != "proxy"]
PLAIN = (silent, half_headers, half_body, never_reading)
WITHIN_TLS = (silent, half_hello, silent_within_tls, half_headers_within_tls)


@cache
def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Attackers:
    """A thread that keeps connections open, and opens each again when the endpoint closes it."""

    def __init__(self, attacked: Attacked, attack: Attack, *, count: int, drip: bool) -> None:
        self._count = count
        self._address = (attacked.server.host, attacked.server.port)
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


LIMITS = Limits(connections=40)


def check(campaign: Any, fault: str, attacked: Attacked, attack: Attack, *, drip: bool = False) -> None:
    alone = attacked.seconds()
    count = campaign.attempts(sample=60, whole=200)  # both are more than the server's connections
    with Attackers(attacked, attack, count=count, drip=drip):
        seconds = []
        for _ in range(campaign.attempts(sample=3, whole=50)):
            seconds.append(attacked.seconds())
            time.sleep(0.05)
    good = [value for value in seconds if value is not None]
    campaign.record(
        f"slow clients of {attacked.name}: {fault}", tried=len(seconds), held=len(good),
        note=f"{count} clients; slowest request {max(good, default=0):.2f} s, without them {alone:.2f} s",
    )  # fmt: skip
    assert len(good) == len(seconds), f"{fault}: {len(seconds) - len(good)} of {len(seconds)} requests failed"


@pytest.mark.parametrize(("name", "attack"), sampled(list(product(NAMES, PLAIN)), 9))
def test_a_good_request_succeeds_beside_idle_clients(
    attack_on: AttackOn, campaign: Any, name: str, attack: Attack
) -> None:
    lines = 5_000 if attack is never_reading else 1
    check(campaign, attack.__name__.replace("_", " "), attack_on(name, limits=LIMITS, lines=lines), attack)


@pytest.mark.parametrize("name", NAMES)
def test_a_good_request_succeeds_beside_clients_of_one_byte_a_moment(
    attack_on: AttackOn, campaign: Any, name: str
) -> None:
    check(campaign, "a byte now and then", attack_on(name, limits=LIMITS), half_headers, drip=True)


@pytest.mark.parametrize(("name", "attack"), sampled(list(product(SERVED, WITHIN_TLS)), 7))
def test_a_good_request_over_tls_succeeds_beside_idle_clients(
    attack_on: AttackOn, campaign: Any, tls: Tls, name: str, attack: Attack
) -> None:
    attacked = attack_on(name, limits=LIMITS, tls=tls)
    check(campaign, f"TLS, {attack.__name__.replace('_', ' ')}", attacked, attack)


@pytest.mark.parametrize(
    ("name", "sent", "drip"), sampled(list(product(NAMES, (b"", HALF_REQUEST, HALF_BODY), (False, True))), 11)
)
def test_a_request_has_one_deadline(
    attack_on: AttackOn, wait_until: Callable[..., None], name: str, sent: bytes, *, drip: bool
) -> None:
    limits = Limits(head_seconds=0.3, body_seconds=0.3, refused_seconds=0.3, idle_seconds=0.3)
    attacked = attack_on(name, limits=limits)
    with socket.create_connection((attacked.server.host, attacked.server.port), timeout=5) as client:
        client.sendall(sent)
        wait_until(lambda: is_closed(client, drip=drip), what="the connection being closed")


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["nothing", "half a greeting"])
def test_a_handshake_has_a_deadline(
    attack_on: AttackOn, tls: Tls, wait_until: Callable[..., None], name: str, sent: bytes
) -> None:
    attacked = attack_on(name, limits=Limits(head_seconds=0.3), tls=tls)
    with socket.create_connection((attacked.server.host, attacked.server.port), timeout=5) as client:
        client.sendall(sent)
        wait_until(lambda: is_closed(client, drip=False), what="the connection being closed")


@pytest.mark.parametrize("name", ["agent", "serve", "proxy"])
def test_a_response_that_is_not_read_has_a_deadline(
    attack_on: AttackOn, wait_until: Callable[..., None], name: str
) -> None:
    attacked = attack_on(name, limits=Limits(response_seconds=0.3), lines=20_000)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect((attacked.server.host, attacked.server.port))
        client.sendall(b"GET " + attacked.path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(1)

        wait_until(lambda: not attacked.open_connections, what="the end of the connection")


@pytest.mark.parametrize("name", sampled(NAMES, 2))
def test_thousands_of_connections_leave_room(attack_on: AttackOn, campaign: Any, name: str) -> None:
    attacked = attack_on(name)
    count = campaign.attempts(sample=1_000, whole=5_000)
    held = []
    for number in range(count):
        with suppress(OSError):
            held.append(socket.create_connection((attacked.server.host, attacked.server.port), timeout=5))
        if number % 500 == 499:
            assert attacked.seconds() is not None
    for connection in held:
        connection.close()


def is_closed(client: socket.socket, *, drip: bool) -> bool:
    try:
        client.settimeout(0.01)
        if drip:
            client.send(b"x")
        while client.recv(1_000):  # the reason comes first
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True
