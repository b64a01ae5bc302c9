"""The HTTP client: responses of any status, no redirects, and the proxies of the environment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from windowpane.effects.http_client import HttpClient, UnreachableError


class Server:
    """A server on loopback that responds with one status; with `released` cleared it hangs."""

    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[bytes] = []
        self.released = threading.Event()
        self.released.set()
        self.arrived = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                server.arrived.set()
                server.released.wait(10)
                self.send_response(server.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Retry-After", "7")
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"body")

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.released.set()
    running.http.shutdown()
    running.http.server_close()


@pytest.mark.parametrize("status", [200, 202, 302, 307, 404, 503])
def test_a_response_of_any_status_is_returned(server: Server, status: int) -> None:
    server.status = status
    response = HttpClient().post(server.url, b"sent", {}, timeout_seconds=10)

    assert (response.status, response.body, response.retry_after_seconds) == (status, b"body", 7.0)
    assert response.is_success == (status < 300)
    assert server.bodies == [b"sent"], "a redirect is not followed"


def test_the_proxies_of_the_environment_are_used_only_where_they_may_be(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert HttpClient(uses_proxies=False).post(server.url, b"", {}, timeout_seconds=10).status == 200
    with pytest.raises(UnreachableError, match="refused"):
        HttpClient().post(server.url, b"", {}, timeout_seconds=10)


def test_a_request_in_progress_is_aborted_by_another_thread(server: Server) -> None:
    server.released.clear()
    client, problems = HttpClient(), list[Exception]()

    def send() -> None:
        try:
            client.post(server.url, b"", {}, timeout_seconds=10)
        except UnreachableError as error:
            problems.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    assert server.arrived.wait(10)
    client.abort()
    sending.join(5)

    assert len(problems) == 1


def test_a_silent_server_is_unreachable(server: Server) -> None:
    server.released.clear()
    with pytest.raises(UnreachableError, match="no response in time"):
        HttpClient().post(server.url, b"", {}, timeout_seconds=0.05)
