"""Bodies of requests, read and decompressed within bounds of size, time and memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from windowpane.outputs.http.project_shares import SharedCapacity
from windowpane.outputs.http.routes import PostRequest

MAXIMUM_BODY_BYTES: Final = 20 * 2**20
"""Longest body as it is sent, the limit of OpenTelemetry's collector."""
MAXIMUM_WAITING_BYTES: Final = 128 * 2**20
"""Bytes of the bodies of all requests that are being read or answered, shared by projects."""
BODY_SECONDS: Final = 8.0
"""Time for the whole body, less than the connection's, so that its client gets a response."""
IDLE_SECONDS: Final = 1.0
"""Time without a piece after which a body that is being read makes room for others."""
RETRY_AFTER: Final = ("Retry-After", "1")
MAXIMUM_DECODED_BYTES: Final = 64 * 2**20
"""Longest body after decompression."""
MAXIMUM_MEMBERS: Final = 64
"""Gzip streams that one body may consist of: each copies the rest of the body."""


Receive = Callable[[], Awaitable[Any]]


class BodyError(Exception):
    """A body that is refused, with the status of the response."""

    def __init__(self, status: int, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class BodyBudget:
    """The memory that the bodies of all requests share, by projects; used on one event loop only.

    A body takes it as it arrives, so that a client which sends nothing keeps no one out.
    """

    def __init__(self) -> None:
        self._capacity = SharedCapacity(MAXIMUM_WAITING_BYTES)
        self._waiting: dict[BodyReader, float] = {}
        """The readers that wait for a piece, with its start; the one that has waited longest is the first."""

    def take(self, project: str, size: int) -> None:
        """Reserve *size* bytes, if necessary those of idle bodies. Raises `BodyError` where none are free."""
        while not self._capacity.take(project, size):
            longest, since = next(iter(self._waiting.items()), (None, 0.0))
            if longest is None or asyncio.get_running_loop().time() - since < IDLE_SECONDS:
                raise _busy()
            del self._waiting[longest]
            longest.abandon()

    def give_back(self, project: str, size: int) -> None:
        """Free *size* bytes."""
        self._capacity.give_back(project, size)

    @contextmanager
    def waits(self, reader: BodyReader) -> Iterator[None]:
        """Record in the block that *reader* waits for its client."""
        self._waiting[reader] = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._waiting.pop(reader, None)


class BodyReader:
    """Reads the body of one request, on an event loop. `close` frees the memory that it has reserved."""

    def __init__(self, budget: BodyBudget, project: str = "") -> None:
        self._budget = budget
        self._project = project
        self._pieces: list[bytes] = []
        self._reserved = 0
        self._deadline: asyncio.Timeout | None = None
        self._is_abandoned = False

    async def read(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """Return the body, sent with its length or in chunks. Raises `BodyError`."""
        length = headers.get("content-length", "")
        if not length and not headers.get("transfer-encoding"):
            raise BodyError(411, "a body needs one Content-Length, or Transfer-Encoding: chunked")
        _check_size(int(length or 0))  # the server has checked that it is a number
        try:
            async with asyncio.timeout(BODY_SECONDS) as self._deadline:
                while True:
                    with self._budget.waits(self):
                        message = await receive()
                    if message["type"] == "http.disconnect":
                        raise BodyError(400, "the body ended early")
                    piece = message.get("body", b"")
                    _check_size(self._reserved + len(piece))
                    self._budget.take(self._project, len(piece))
                    self._reserved += len(piece)
                    self._pieces.append(piece)
                    if not message.get("more_body", False):
                        return b"".join(self._pieces)
        except TimeoutError as error:
            if self._is_abandoned:
                raise _busy() from error
            raise BodyError(408, f"the body did not arrive within {BODY_SECONDS:.0f} seconds") from error

    def abandon(self) -> None:
        """Free the memory, and refuse the request."""
        assert self._deadline is not None, "it waits for a piece"
        self._deadline.reschedule(0)
        self._is_abandoned = True
        self.close()

    def close(self) -> None:
        """Free the reserved memory."""
        self._pieces.clear()
        self._budget.give_back(self._project, self._reserved)
        self._reserved = 0


def _busy() -> BodyError:
    return BodyError(429, "too many requests are being read; try again", RETRY_AFTER)


def _check_size(size: int) -> None:
    if size > MAXIMUM_BODY_BYTES:
        raise BodyError(413, f"the body is larger than {MAXIMUM_BODY_BYTES:,} bytes")


def decompressed(request: PostRequest) -> bytes:
    """Return the body of a request. Raises `BodyError` for another encoding than gzip and for a longer body."""
    encoding = (request.headers.get("Content-Encoding") or "").strip().lower()
    if encoding in ("", "identity"):
        return request.body
    if encoding != "gzip":
        raise BodyError(
            415, f"the Content-Encoding is {encoding!r}; expected gzip or none", ("Accept-Encoding", "gzip")
        )
    body = request.body
    pieces: list[bytes] = []
    remaining = MAXIMUM_DECODED_BYTES
    try:
        while body:  # gzip allows several members
            if len(pieces) == MAXIMUM_MEMBERS:
                raise BodyError(400, f"the gzip body has more than {MAXIMUM_MEMBERS} members")
            member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            piece = member.decompress(body, remaining + 1)
            remaining -= len(piece)
            if remaining < 0:
                raise BodyError(413, f"the decompressed body is larger than {MAXIMUM_DECODED_BYTES:,} bytes")
            if not member.eof:
                raise BodyError(400, "the gzip body is cut short")
            pieces.append(piece)
            body = member.unused_data
    except zlib.error as error:
        raise BodyError(400, f"the body is not gzip: {error}") from error
    return b"".join(pieces)
