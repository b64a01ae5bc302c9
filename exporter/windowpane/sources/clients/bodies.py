"""The body of a provider's HTTP response, recorded as the agent reads it.

A stream and a raw response hand their body to the agent piece by piece, when the agent asks, or never. Nothing is
read here that the agent does not read: the methods that every reader of a body uses pass each piece on and retain
it, and the retained pieces become the reply when the body ends. They are decoded by the provider's own client.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from functools import partial
from typing import Any, Final

from windowpane.models.wire.calls import Shape, read_events, read_whole
from windowpane.models.wire.replies import Reply
from windowpane.sources.clients.calls import WatchedCall

MAXIMUM_BODY_BYTES: Final = 64 << 20
"""A larger body is passed on like any other, and not read here."""
_REPLACED: Final = ("iter_bytes", "aiter_bytes", "close", "aclose")
"""Methods of an HTTP response that are replaced until its body has ended."""

Decoder = Callable[[], Any]
"""Makes the client's decoder of server-sent events."""


class UnreadableReplyError(Exception):
    """A reply passed without a chance to read it; the message states the reason and what to do."""


def stopped() -> tuple[type[BaseException], ...]:
    """Return the exceptions by which an agent stops reading a reply."""
    from asyncio import CancelledError

    return GeneratorExit, CancelledError


def watch_body(response: Any, client: object, call: WatchedCall) -> None:
    """Record the body of *response* as the reply to *call*: at once if it was read before, else as it is read."""
    decoder = getattr(client, "_make_sse_decoder", None)
    if response.is_closed:
        call.record_reply(response.content, partial(read_body, decoder=decoder))
        return
    call.before_return()
    body = _Body(response, call, decoder)
    for name in _REPLACED:
        setattr(response, name, getattr(body, name))


def read_body(body: bytes, shape: Shape, *, decoder: Decoder | None) -> Reply:
    """Return the reply that a body holds: one document, or the events of a stream, which may be cut short."""
    if body.lstrip()[:1] == b"{":
        return read_whole(json.loads(body), shape)
    if decoder is None:
        raise UnreadableReplyError("this release of the client has no known decoder of streams; update it")
    return read_events(shape, _events(decoder().iter_bytes(iter([body]))))


def _events(events: Iterator[Any]) -> Iterator[object]:
    for event in events:
        if event.data and not event.data.startswith("[DONE]"):
            try:
                yield json.loads(event.data)
            except ValueError:  # the last event of a stream that was closed midway
                return


class _Body:
    """Passes the pieces of one body on, and records them as the reply when it ends.

    It does not refer to the response: a cycle would leave it to the garbage collector to close a dropped stream.
    """

    def __init__(self, response: Any, call: WatchedCall, decoder: Decoder | None) -> None:
        self._response = weakref.ref(response)
        self._call = call
        self._decoder = decoder
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._started = False
        self._waiting = False
        """The agent waits for the next piece: a close is then the response's own, at its end or failure."""

    def iter_bytes(self, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        """Iterate over the decoded content of the response."""
        response: Any = self._response()
        with self._recorded(), closing(type(response).iter_bytes(response, *args, **kwargs)) as pieces:
            for piece in pieces:
                self._retain(piece)
                yield piece
                self._waiting = True

    async def aiter_bytes(self, *args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
        """Iterate over the decoded content of the response."""
        response: Any = self._response()
        with self._recorded():
            async with aclosing(type(response).aiter_bytes(response, *args, **kwargs)) as pieces:
                async for piece in pieces:
                    self._retain(piece)
                    yield piece
                    self._waiting = True

    def close(self) -> None:
        """Close the response."""
        response: Any = self._response()
        try:
            type(response).close(response)
        finally:
            self._end_if_closed_by_agent()

    async def aclose(self) -> None:
        """Close the response."""
        response: Any = self._response()
        try:
            await type(response).aclose(response)
        finally:
            self._end_if_closed_by_agent()

    def __del__(self) -> None:
        self._end()

    # -- inside -----------------------------------------------------------------------------------------------

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the end of an iteration, whichever it is."""
        self._started = self._waiting = True
        try:
            yield
        except stopped():  # the agent stopped reading
            self._end()
            raise
        except BaseException as error:
            self._call.record_failure(error)
            raise
        else:
            self._end()
        finally:
            self._restore()

    def _retain(self, piece: bytes) -> None:
        self._waiting = False
        self._bytes += len(piece)
        if self._bytes <= MAXIMUM_BODY_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _end_if_closed_by_agent(self) -> None:
        if not self._waiting:
            self._end()
            self._restore()

    def _end(self) -> None:
        pieces, self._pieces = self._pieces, []
        size, decoder = self._bytes, self._decoder
        response = self._response()
        bypassed = not self._started and response is not None and response.is_stream_consumed

        def read(pieces: list[bytes], shape: Shape) -> Reply:
            if bypassed:
                raise UnreadableReplyError(
                    "its raw bytes were read; read it with parse(), iter_lines() or iter_bytes()"
                )
            if size > MAXIMUM_BODY_BYTES:
                raise UnreadableReplyError(f"its {size:,} bytes are more than {MAXIMUM_BODY_BYTES:,}")
            return read_body(b"".join(pieces), shape, decoder=decoder) if pieces else Reply()

        self._call.record_reply(pieces, read)

    def _restore(self) -> None:
        """Give the response its own methods back."""
        response = self._response()
        if response is not None:
            for name in _REPLACED:
                vars(response).pop(name, None)
