"""The server of `serve`, of what it receives, and of the proxy: uvicorn on a thread, with bounded connections."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import uvicorn

from windowpane.outputs.http.asgi_app import serve_app
from windowpane.outputs.http.authentication import is_loopback, require_protection, server_context
from windowpane.outputs.http.connections import SERVE_LIMITS, Connections, Limits
from windowpane.outputs.http.guarded_protocol import guarded_protocol
from windowpane.outputs.http.http_server import DEFAULT_PORT, LOOPBACK, RunningServer, listening_socket
from windowpane.outputs.http.routes import Routes

if TYPE_CHECKING:
    import ssl

    from starlette.types import ASGIApp

    from windowpane.config.outputs import Tls

REQUEST_THREADS: Final = 64
"""Requests whose blocking part runs at once."""
GRACE_SECONDS: Final = 5
"""Time that requests in progress have to end when the server stops."""


class AsgiServer(RunningServer):
    """A running server of *app* at a socket that listens."""

    def __init__(
        self, app: ASGIApp, listening: socket.socket, *, limits: Limits, context: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(listening, is_encrypted=context is not None)
        self._connections = Connections(min(limits.connections, _file_limit() // 4))
        config = uvicorn.Config(
            app,
            http=guarded_protocol(self._connections, limits, context),  # type: ignore[arg-type]  # called, like a class
            ws="none",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(limits.idle_seconds),
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=limits.head_bytes,
        )
        self._server = _Server(config, self._connections)
        run = partial(asyncio.run, self._serve(listening))
        self._thread = threading.Thread(target=run, name="windowpane-asgi", daemon=True)
        self._thread.start()

    async def _serve(self, listening: socket.socket) -> None:
        threads = ThreadPoolExecutor(REQUEST_THREADS, thread_name_prefix="windowpane-request")
        asyncio.get_running_loop().set_default_executor(threads)
        await self._server.serve(sockets=[listening])

    @property
    def url(self) -> str:
        """URL of the server, without a path."""
        return f"{self.scheme}://{self.address}"

    def close(self) -> None:
        """Stop listening, let requests in progress end, then close. A second call does nothing."""
        self._server.should_exit = True
        self._thread.join(GRACE_SECONDS + 2)


def start_asgi_server(
    routes: Routes,
    *,
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    free_port_if_busy: bool = True,
    tls: Tls | None = None,
    insecure: bool = False,
    limits: Limits = SERVE_LIMITS,
) -> AsgiServer:
    """Serve *routes* on a thread, with the options and errors of `start_http_server`."""
    require_protection(host, has_token=routes.bearer_token is not None, tls=tls, insecure=insecure)
    context = None if tls is None else server_context(tls)
    listening = listening_socket(host, port, free_port_if_busy=free_port_if_busy)
    app = serve_app(routes, on_loopback=is_loopback(listening.getsockname()[0]))
    return AsgiServer(app, listening, limits=limits, context=context)


def _file_limit() -> int:
    """Return how many files and connections the process may open."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


class _Server(uvicorn.Server):
    """Closes the connections whose client missed its deadline, and all remaining ones at the end."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        self._connections.close_overdue()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._connections.close_all()
        await asyncio.sleep(0)  # in which the transports close
