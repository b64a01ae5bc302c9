"""The proxy's server, on a separate thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import uvicorn

from windowpane.outputs.http.authentication import is_loopback
from windowpane.sources.proxy.call_messages import CallMessages
from windowpane.sources.proxy.forwarding import Forwarder, new_client
from windowpane.sources.proxy.upstreams import Upstream

BACKLOG: Final = 1_024
IDLE_SECONDS: Final = 300
"""Time a connection of a client is held open between two requests."""
GRACE_SECONDS: Final = 5
"""Time that open streams have to end when the proxy stops."""
START_SECONDS: Final = 10.0


class ProxyServer:
    """A running proxy; as a context manager it stops at the end of the block.

    Raises `OSError` if the address cannot be used.
    """

    def __init__(self, address: str, port: int, upstreams: Mapping[str, Upstream], calls: CallMessages) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, port), family=family, backlog=BACKLOG)
        host, self.port = self._socket.getsockname()[:2]
        """Port that the proxy listens on."""
        self.url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        """URL of the proxy, without the name of an upstream."""
        self._upstreams = upstreams
        self._calls = calls
        self._server: uvicorn.Server | None = None
        self._forwarder: Forwarder | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windowpane-proxy", daemon=True)
        self._thread.start()
        self._ready.wait(START_SECONDS)

    @property
    def forwarded(self) -> int:
        """Number of requests that came and had an upstream."""
        return 0 if self._forwarder is None else self._forwarder.forwarded

    def stop(self) -> None:
        """Refuse further requests, let open ones end, then close."""
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join(GRACE_SECONDS + 2)

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with new_client() as client:
            self._forwarder = Forwarder(
                self._upstreams, client, self._calls, on_loopback=is_loopback(self._socket.getsockname()[0])
            )
            self._server = uvicorn.Server(
                uvicorn.Config(
                    self._forwarder,
                    interface="asgi3",
                    lifespan="off",
                    ws="none",
                    log_config=None,
                    log_level="critical",
                    access_log=False,
                    proxy_headers=False,
                    server_header=False,
                    date_header=False,
                    timeout_keep_alive=IDLE_SECONDS,
                    timeout_graceful_shutdown=GRACE_SECONDS,
                )
            )
            self._ready.set()
            await self._server.serve(sockets=[self._socket])
