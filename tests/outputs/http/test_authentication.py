"""Access to the endpoint: bearer token, host names and TLS."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from pathlib import Path

import pytest
from endpoint import Start, fetch
from prometheus_client.registry import CollectorRegistry

from windowpane.config.outputs import Tls
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.authentication import read_token
from windowpane.outputs.http.http_server import RunningServer
from windowpane.outputs.http.routes import Health, Routes


def test_a_bearer_token_guards_everything_but_the_bare_status(start: Start, registry: CollectorRegistry) -> None:
    routes = Routes(registry, health=lambda: Health(details={"path": "private"}), bearer_token="s3cret")
    with start(routes, port=0) as server:
        for path in ("/metrics", "/sd"):
            assert fetch(server, path).status == 401
            assert fetch(server, path, Authorization="Bearer wrong").status == 401
            assert fetch(server, path, Authorization="Bearer s3cret").status == 200
        assert json.loads(fetch(server, "/healthz").body) == {"status": "ok"}
        assert b"private" in fetch(server, "/healthz", Authorization="Bearer s3cret").body


def test_a_token_file_holds_one_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("  s3cret\n")
    assert read_token(file) == "s3cret"
    file.write_text(" \n")
    with pytest.raises(ConfigurationError, match="token: the bearer token is empty"):
        read_token(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="token: the bearer token cannot be read"):
        read_token(file)
    with pytest.raises(ConfigurationError, match="missing: the bearer token cannot be read"):
        read_token(tmp_path / "missing")


def test_a_request_without_a_host_header_is_served(server: RunningServer) -> None:
    with socket.create_connection((server.host, server.port), timeout=10) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        status = connection.makefile("rb").readline()

    assert b" 200 " in status


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_compared_without_case(start: Start, registry: CollectorRegistry, scheme: str) -> None:
    with start(Routes(registry, bearer_token="s3cret"), port=0) as server:
        assert fetch(server, "/metrics", Authorization=f"{scheme} s3cret").status == 200
        assert fetch(server, "/metrics", Authorization=f"{scheme} S3CRET").status == 401
        assert fetch(server, "/metrics", Authorization="Basic s3cret").status == 401
        assert fetch(server, "/metrics", Authorization="s3cret").status == 401


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "", "192.0.2.7", "metrics.example"])
def test_an_address_beyond_loopback_needs_protection(
    start: Start, registry: CollectorRegistry, address: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"bearer_token .*tls .*loopback.*server\.insecure.*--insecure"):
        start(Routes(registry), host=address, port=0)


def test_a_certificate_of_the_server_alone_is_not_a_permission(
    start: Start, registry: CollectorRegistry, certificates: Path
) -> None:
    tls = Tls(certificate=certificates / "cert.pem", key=certificates / "key.pem")
    with pytest.raises(ConfigurationError, match="from other machines"):
        start(Routes(registry), host="0.0.0.0", port=0, tls=tls)
    with start(
        Routes(registry),
        host="0.0.0.0",
        port=0,
        tls=Tls(certificate=tls.certificate, key=tls.key, client_ca=tls.certificate),
    ):
        pass


def test_an_address_beyond_loopback_is_served_with_a_token_or_on_request(
    start: Start, registry: CollectorRegistry
) -> None:
    """Either is enough; `insecure` states that the endpoint is protected otherwise."""
    with start(Routes(registry, bearer_token="s3cret"), host="0.0.0.0", port=0):
        pass
    with start(Routes(registry), host="0.0.0.0", port=0, insecure=True):
        pass
    with start(Routes(registry), host="localhost", port=0):
        pass


def test_with_a_bearer_token_any_host_name_is_accepted(start: Start, registry: CollectorRegistry) -> None:
    with start(Routes(registry, bearer_token="secret"), port=0) as server:
        accepted = fetch(server, "/metrics", Host="metrics.example", Authorization="Bearer secret")

        assert accepted.status == 200
        assert fetch(server, "/metrics", Host="metrics.example").status == 401


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9464", "localhost:9464", "[::1]:9464", "agent.localhost", "127.0.0.2"]
)
def test_the_host_header_may_be_any_name_of_this_machine(server: RunningServer, host: str) -> None:
    assert fetch(server, "/metrics", Host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example:9464", "10.0.0.7", "localhost.evil.example", "", "["])
def test_a_foreign_host_name_is_rejected_on_loopback(server: RunningServer, host: str) -> None:
    """A web page whose host name resolves to 127.0.0.1 cannot read the metrics."""
    for path in ("/metrics", "/sd", "/healthz"):
        reply = fetch(server, path, Host=host)

        assert reply.status == 421
        assert b"context_window" not in reply.body


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 421),
        ("null", 421),
        ("http://127.0.0.1:1", 421),
        ("http://127.0.0.1:{port}", 200),
    ],
)
def test_a_web_page_of_another_site_makes_no_request(server: RunningServer, origin: str, status: int) -> None:
    assert fetch(server, "/metrics", Origin=origin.format(port=server.port)).status == status


def https_status(server: RunningServer, certificates: Path, *, with_certificate: bool) -> int:
    context = ssl.create_default_context(cafile=str(certificates / "cert.pem"))
    if with_certificate:
        context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    connection = http.client.HTTPSConnection(server.host, server.port, context=context, timeout=10)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def test_tls_with_and_without_client_certificates(
    start: Start, registry: CollectorRegistry, certificates: Path
) -> None:
    tls = Tls(certificate=certificates / "cert.pem", key=certificates / "key.pem")
    with start(Routes(registry), port=0, tls=tls) as server:
        assert server.url.startswith("https://")
        assert https_status(server, certificates, with_certificate=False) == 200
    mutual = Tls(certificate=tls.certificate, key=tls.key, client_ca=certificates / "cert.pem")
    with start(Routes(registry), port=0, tls=mutual) as server:
        assert https_status(server, certificates, with_certificate=True) == 200
        with pytest.raises((ssl.SSLError, OSError)):
            https_status(server, certificates, with_certificate=False)


def test_a_client_without_handshake_blocks_no_other(
    start: Start, registry: CollectorRegistry, certificates: Path
) -> None:
    tls = Tls(certificate=certificates / "cert.pem", key=certificates / "key.pem")
    with (
        start(Routes(registry), port=0, tls=tls) as server,
        socket.create_connection((server.host, server.port), timeout=5),
    ):
        assert https_status(server, certificates, with_certificate=False) == 200
