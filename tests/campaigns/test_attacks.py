"""Requests that are malformed, too large, foreign or without a token, on each of the servers."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Container, Sequence
from contextlib import suppress
from typing import Any

import pytest
from attacked_servers import NAMES, Attacked, AttackOn

from windowpane.outputs.http import request_bodies
from windowpane.outputs.http.connections import Limits

POST = b"POST /%b HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n"
SERVERS = [name for name in NAMES if name != "agent"]
RECEIVERS = ("ingest", "otlp")
MALFORMED = (
    (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    (b"Content-Length: -1\r\n\r\n", 400),
    (b"Content-Length: many\r\n\r\n", 400),
    (b"Content-Length: 50\r\n\r\nshort", 400),
    (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    (b"Transfer-Encoding: gzip\r\n\r\n", 501),
    (b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    (b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", 400),
    (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloworld\r\n", 400),
    (b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 100_000, 431),
    (b"no colon\r\n\r\n", 400),
    (b"X-Null: \0\r\n\r\n", 400),
    (b"X-Large: " + b"x" * 100_000 + b"\r\n\r\n", 431),
    (b"".join(b"X-%d: x\r\n" % number for number in range(20_000)) + b"\r\n", 431),
)
NOT_HTTP = (b"\x16\x03\x01\x02\x00\x01\xfc", b"\0" * 1_000, b"\r\n\r\n\r\n", b"GET\r\n\r\n")
FOREIGN = (b"Host: evil.example", b"Origin: https://evil.example", b"Origin: null")
WITHOUT_TOKEN = (b"X: y", b"Authorization: Bearer wrong", b"Authorization: Basic secret")
BOMBS = (
    (b"gzip", gzip.compress(bytes(1_000_000)), 413),
    (b"gzip", gzip.compress(bytes(60_000)) * 2, 413),
    (b"gzip", gzip.compress(b"") * 1_000, 400),
    (b"gzip", gzip.compress(b"{}")[:-4], 400),
    (b"deflate", zlib.compress(bytes(1_000_000)), 415),
    (b"gzip, gzip", gzip.compress(gzip.compress(bytes(1_000_000))), 415),
)

Attacks = Sequence[tuple[bytes, Container[int]]]
"""The bytes of an attack, and the statuses that may answer it."""


def answers(attacked: Attacked, sent: bytes, *, closes: bool = True) -> bytes:
    """Return all that comes back for *sent*, from a client that then closes its side."""
    received = b""
    with socket.create_connection((attacked.server.host, attacked.server.port), timeout=20) as client:
        with suppress(OSError):  # a server may refuse before the end
            client.sendall(sent)
            if closes:
                client.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while piece := client.recv(65_536):
                received += piece
    return received


def status(answer: bytes) -> int:
    """Return the status of the first response, 0 without one that has a head."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0


def check(campaign: Any, attacked: Attacked, fault: str, attacks: Attacks, *, closes: bool = True) -> None:
    """Try *attacks*: each gets one of its statuses, and a good request succeeds after it."""
    wrong = []
    for sent, expected in attacks:
        answer = answers(attacked, sent, closes=closes)
        if status(answer) not in expected or attacked.seconds() is None:
            wrong.append((sent[:200], answer[:200]))
    held = len(attacks) - len(wrong)
    campaign.record(f"attacks on {attacked.name}: {fault}", tried=len(attacks), held=held)
    assert not wrong


def good(attacked: Attacked, *headers: bytes) -> bytes:
    """Return the bytes of the good request."""
    body = attacked.body or b""
    lines = [f"{attacked.method} {attacked.path} HTTP/1.1".encode(), b"Host: localhost"]
    lines += [f"{name}: {value}".encode() for name, value in attacked.headers.items()]
    if attacked.method == "POST":
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, *headers, b"", body])


@pytest.mark.parametrize("name", SERVERS)
def test_malformed_requests_are_refused(attack_on: AttackOn, campaign: Any, name: str) -> None:
    attacked = attack_on(name)
    # GET only: refused before its body; and a client of the proxy that has closed its side is disconnected
    also = {"serve": {405}, "proxy": {502, 0}}.get(name, set())
    start = POST % attacked.path[1:].encode()

    check(
        campaign, attacked, "malformed requests",
        [(start + head, {expected} | also) for head, expected in MALFORMED],
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_http_does_no_harm(attack_on: AttackOn, campaign: Any, name: str) -> None:
    check(campaign, attack_on(name), "not HTTP", [(sent, range(600)) for sent in NOT_HTTP])


@pytest.mark.parametrize("name", NAMES)
def test_a_head_has_a_largest_size(attack_on: AttackOn, campaign: Any, name: str) -> None:
    attacked = attack_on(name)
    head = GET % attacked.path[1:].encode() + b"X-Large: " + b"x" * 70_000 + b"\r\n\r\n"

    check(campaign, attacked, "a large head", [(head, {431})])


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_other_sites_are_refused(attack_on: AttackOn, campaign: Any, name: str) -> None:
    attacked = attack_on(name)
    attacks = []
    for header in FOREIGN:
        request = good(attacked, header, b"Connection: close")
        if header.startswith(b"Host"):
            request = request.replace(b"Host: localhost\r\n", b"", 1)
        attacks.append((request, {421}))

    check(campaign, attacked, "pages of other sites", attacks, closes=False)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "proxy"])
def test_a_missing_or_wrong_token_is_refused(attack_on: AttackOn, campaign: Any, name: str) -> None:
    attacked = attack_on(name, token="secret")
    attacks = [(good(attacked, header), {401}) for header in WITHOUT_TOKEN]
    with_token = attacked._replace(headers={**attacked.headers, "Authorization": "Bearer secret"})

    check(campaign, with_token, "no token or a wrong one", attacks)


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_bomb_is_refused_before_it_is_unpacked(
    attack_on: AttackOn, campaign: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(request_bodies, "MAXIMUM_DECODED_BYTES", 100_000)
    attacked = attack_on(name)
    attacks = [
        (good(attacked._replace(body=bomb), b"Content-Encoding: " + encoding), {expected})
        for encoding, bomb, expected in BOMBS
    ]

    check(campaign, attacked, "compressed bombs", attacks)


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(
    attack_on: AttackOn, campaign: Any, name: str
) -> None:
    attacked = attack_on(name)
    request = good(attacked).replace(b"Content-Length: ", b"Content-Length: 9999999", 1)

    check(campaign, attacked, "a large body", [(request, {400, 413})])


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_slow_body_is_refused_with_the_reason(
    attack_on: AttackOn, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(request_bodies, "BODY_SECONDS", 0.2)
    attacked = attack_on(name, limits=Limits(refused_seconds=0.2))
    answer = answers(attacked, good(attacked)[:-1], closes=False)

    assert status(answer) == 408
    assert b"did not arrive within" in answer


@pytest.mark.parametrize("name", SERVERS)
def test_pipelined_requests_are_answered_in_order(attack_on: AttackOn, name: str) -> None:
    attacked = attack_on(name)
    answer = answers(attacked, good(attacked) * 2 + good(attacked, b"Connection: close"), closes=False)

    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 3


@pytest.mark.parametrize("name", ["agent", "serve", "ingest", "otlp"])
def test_a_client_that_has_closed_its_side_gets_its_answer(attack_on: AttackOn, name: str) -> None:
    attacked = attack_on(name)

    assert status(answers(attacked, good(attacked))) == 200
