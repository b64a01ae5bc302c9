"""Requests of other sites' pages to a running dashboard, and addresses that need a decision."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.server.background import serving
from windowpane_dashboard.server.launch import DashboardError, check_address
from windowpane_dashboard.server.own_origin import OwnOriginOnly

STREAM = "/_stcore/stream"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a running dashboard."""
    path = tmp_path_factory.mktemp("store") / "windowpane.db"
    with closing(SqliteStore(path)):
        pass
    with serving(path) as url:
        yield urlsplit(url).netloc


def status(address: str, path: str, *, host: str = "", origin: str = "", socket_handshake: bool = False) -> int:
    """Send a request as a browser would, and return the status of the response; 101 is an open WebSocket."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host or address}"]
    if origin:
        lines.append(f"Origin: {origin}")
    if socket_handshake:
        key = base64.b64encode(bytes(16)).decode()
        lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                  f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: streamlit"]  # fmt: skip
    else:
        lines.append("Connection: close")
    name, _, port = address.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(64).split()[1])


@pytest.mark.parametrize(
    "path", ["/", "/session?session=s1", "/_stcore/health", "/static/none.js", "/export-events", "/auth/logout"]
)
@pytest.mark.parametrize("origin", ["", "http://evil.example"])
def test_no_response_may_be_shown_in_a_frame_of_another_site(address: str, path: str, origin: str) -> None:
    headers = {"Origin": origin} if origin else {}
    response = httpx.get(f"http://{address}{path}", headers=headers)

    assert response.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert response.headers["x-frame-options"] == "SAMEORIGIN"


def test_the_dashboards_own_pages_are_served(address: str) -> None:
    local = address.replace("127.0.0.1", "localhost")

    assert status(address, "/") == status(address, "/", host=local) == 200
    for host in (address, local):
        assert status(address, STREAM, host=host, origin=f"http://{host}", socket_handshake=True) == 101


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "http://localhost:3000", "https://127.0.0.1", "null"]
)
def test_a_page_of_another_origin_cannot_connect(address: str, origin: str) -> None:
    assert status(address, STREAM, origin=origin, socket_handshake=True) == 403
    assert status(address, "/", origin=origin) == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8501", "["])
def test_a_foreign_name_of_this_machine_is_refused(address: str, host: str) -> None:
    """A site whose name resolves to 127.0.0.1 would otherwise have the dashboard's own origin."""
    assert status(address, STREAM, host=host, origin=f"http://{host}", socket_handshake=True) == 403
    assert status(address, "/", host=host) == 403


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("panes.example.net", "https://panes.example.net", 200),
        ("127.0.0.1:8501", "https://panes.example.net", 200),  # a proxy that changes the host
        ("panes.example.net", "https://other.example.net", 403),
        ("192.0.2.7:8501", "http://192.0.2.7:8501", 200),
        ("[2001:db8::7]:8501", "http://[2001:db8::7]:8501", 200),
        ("other.example.net", "", 403),
    ],
)
def test_the_address_of_a_proxy_is_accepted(host: str, origin: str, expected: int) -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    client = TestClient(OwnOriginOnly(page, address="127.0.0.1", public_url="https://panes.example.net/fleet"))
    headers = {"Host": host} | ({"Origin": origin} if origin else {})

    assert client.get("/", headers=headers).status_code == expected


@pytest.mark.parametrize("listened", ["0.0.0.0", "::", "", "192.0.2.7", "panes.example.net"])
def test_an_address_beyond_this_machine_needs_a_decision(listened: str) -> None:
    with pytest.raises(DashboardError, match=r"no login.* 127\.0\.0\.1 behind a proxy .*--insecure"):
        check_address(listened, insecure=False)
    check_address(listened, insecure=True)


@pytest.mark.parametrize("listened", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_none(listened: str) -> None:
    check_address(listened, insecure=False)
