"""The proxy's server: the shared one, with limits for calls that take minutes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from starlette.routing import Route

from windowpane.outputs.http.asgi_app import guarded_app
from windowpane.outputs.http.asgi_server import AsgiServer
from windowpane.outputs.http.authentication import is_loopback
from windowpane.outputs.http.connections import Limits
from windowpane.outputs.http.http_server import listening_socket
from windowpane.sources.proxy.call_messages import CallMessages
from windowpane.sources.proxy.forwarding import Forwarder, new_client
from windowpane.sources.proxy.upstreams import Upstream

BACKLOG: Final = 1_024
LIMITS: Final = Limits(
    connections=4_096, head_bytes=65_536, body_seconds=600.0, response_seconds=600.0, serves_half_closed=False
)
"""A provider may take the request as slowly, and a client its stream; both of an abandoned call end at once."""


class ProxyServer(AsgiServer):
    """A running proxy; as a context manager it stops at the end of the block.

    Raises `OSError` if the address cannot be used.
    """

    def __init__(
        self,
        address: str,
        port: int,
        upstreams: Mapping[str, Upstream],
        calls: CallMessages,
        *,
        limits: Limits = LIMITS,
    ) -> None:
        listening = listening_socket(address, port, backlog=BACKLOG)
        on_loopback = is_loopback(listening.getsockname()[0])
        client = new_client()
        self._forwarder = Forwarder(upstreams, client, calls, on_loopback=on_loopback)

        @asynccontextmanager
        async def lifespan(_: object) -> AsyncIterator[None]:
            async with client:
                yield

        app = guarded_app(
            [Route("/{path:path}", self._forwarder)],
            refusal=self._forwarder.refusal,
            not_found=self._forwarder.not_found,
            render=self._forwarder.render,
            lifespan=lifespan,
        )
        super().__init__(app, listening, limits=limits)

    @property
    def forwarded(self) -> int:
        """Number of requests that came and had an upstream."""
        return self._forwarder.forwarded
