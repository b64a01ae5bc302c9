"""uvicorn's HTTP/1.1 with what it lacks: a deadline for all that a client has to do, from the handshake on.

Also the status of a head that is too large, a response for clients that have closed their side, and one that
arrives although the rest of a refused request is still being sent.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from windowpane.outputs.http.connections import Connections, Limits

ADMISSION_CHECK_SECONDS: Final = 0.05
"""Interval between two looks for room for a new connection."""
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


def guarded_protocol(
    connections: Connections, limits: Limits, context: ssl.SSLContext | None
) -> Callable[..., asyncio.BaseProtocol]:
    """Return what uvicorn calls for each connection; with *context* they are encrypted."""

    def protocol(**given: Any) -> asyncio.BaseProtocol:
        guarded = _GuardedProtocol(**given, connections=connections, limits=limits)
        if context is None:
            return guarded
        return _EncryptedProtocol(asyncio.get_running_loop(), guarded, context, limits)

    return protocol


class _GuardedProtocol(H11Protocol):
    """One connection, which is entered into *connections* with a deadline for its present phase."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
        limits: Limits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = connections
        self._limits = limits
        self._phase: tuple[str, object] = ("head", None)
        self._is_admitted = False
        self._is_refused = False
        self._is_half_closed = False

    def admit(self, transport: asyncio.Transport) -> bool:
        """Enter the connection, at its very start; returns False if there is no room."""
        self._is_admitted = self._all.admit(self, transport.abort, seconds=self._limits.head_seconds)
        return self._is_admitted

    def admit_soon(
        self, transport: asyncio.Transport, *, admitted: Callable[[], None], refused: Callable[[], None]
    ) -> None:
        """Enter the connection once there is room, then call *admitted*; *refused* if that takes too long."""
        if not self._all.takes_newcomers:
            refused()
            return
        self._all.newcomers += 1
        until = self.loop.time() + self._limits.admission_seconds

        def retry() -> None:
            if not transport.is_closing() and self.loop.time() < until and not self.admit(transport):
                self.loop.call_later(ADMISSION_CHECK_SECONDS, retry)
                return
            self._all.newcomers -= 1
            if self._is_admitted:
                admitted()
            elif not transport.is_closing():
                refused()

        self.loop.call_later(ADMISSION_CHECK_SECONDS, retry)

    def leave(self) -> None:
        """Remove the connection, at its end."""
        self._all.discard(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base class
        super().connection_made(transport)
        if not self._is_admitted and not self.admit(transport):
            transport.pause_reading()
            self.admit_soon(transport, admitted=transport.resume_reading, refused=self._refuse_busy)

    def _refuse_busy(self) -> None:
        self.transport.write(_BUSY)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on what came; a head that came at once is parsed whole, so first only as much as one may have."""
        if not self._is_refused and self.conn.their_state is h11.IDLE and len(data) > self._limits.head_bytes:
            start, data = data[: self._limits.head_bytes + 1], data[self._limits.head_bytes + 1 :]
            super().data_received(start)
        if not self._is_refused:  # else it is discarded
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._follow()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_half_closed and self.cycle.response_complete:
            self.transport.close()
        self._follow()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._follow()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._follow()

    def eof_received(self) -> bool | None:  # type: ignore[override]  # the base class always closes
        """Go on for a client that waits for its response; with TLS there is no half of a connection to close."""
        if self.cycle is None or self.cycle.response_complete or self.scheme == "https" or self._is_refused:
            return None
        if self.cycle.more_body:
            self.conn.receive_data(b"")
            self.handle_events()  # which refuses the part of a body
            return None
        self._is_half_closed = True
        return self._limits.serves_half_closed

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, with the reason, and discard the rest of it."""
        error = sys.exception()
        status = HTTPStatus(error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400)
        self._is_refused = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = f"{error or msg}\n".encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            self.transport.write(
                f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
            )
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def shutdown(self) -> None:
        if self._is_refused:
            self.transport.close()
        else:
            super().shutdown()

    def _follow(self) -> None:
        """Restart the deadline where a phase has started."""
        phase = (self._next_phase(), self.cycle)
        if phase == self._phase:
            return
        self._phase = phase
        limits = self._limits
        match phase[0]:
            case "respond":
                self._all.respond(self)
            case "head":
                self._all.wait(self, limits.head_seconds)
            case "body":
                self._all.wait(self, limits.body_seconds)
            case "response":
                self._all.wait(self, limits.response_seconds)
            case "refused":
                self._all.wait(self, limits.refused_seconds)
            case _:
                self._all.wait(self, limits.idle_seconds)

    def _next_phase(self) -> str:
        cycle = self.cycle
        if self._is_refused:
            return "refused"
        if self.transport.is_closing() or self.flow.write_paused:
            return "response"
        if cycle is not None and not cycle.response_complete:
            return "body" if cycle.more_body else "respond"
        if self.conn.our_state is h11.DONE:  # the rest of a body that was not wanted
            return "refused"
        return "head" if cycle is None or self.conn.trailing_data[0] else "idle"


class _EncryptedProtocol(SSLProtocol):
    """TLS before a connection, whose handshake counts among its connections and has the deadline of a head."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: _GuardedProtocol, context: ssl.SSLContext, limits: Limits
    ) -> None:
        waiter: Any = None  # waits for the handshake
        seconds = max(1, int(limits.head_seconds))
        super().__init__(loop, protocol, context, waiter, server_side=True, ssl_handshake_timeout=seconds)
        self._guarded = protocol

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base class
        connect = partial(super().connection_made, transport)
        if self._guarded.admit(transport):
            connect()
        else:
            transport.pause_reading()

            def admitted() -> None:
                connect()
                transport.resume_reading()

            self._guarded.admit_soon(transport, admitted=admitted, refused=transport.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._guarded.leave()
        super().connection_lost(exc)
