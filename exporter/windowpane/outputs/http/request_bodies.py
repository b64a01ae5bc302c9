"""Bodies of requests, read and decompressed within bounds of size, time and memory."""

from __future__ import annotations

import threading
import time
import zlib
from email.message import Message
from typing import Final, Protocol

from windowpane.outputs.http.routes import PostRequest

MAXIMUM_BODY_BYTES: Final = 20 * 2**20
"""Longest body as it is sent, the limit of OpenTelemetry's collector."""
MAXIMUM_WAITING_BYTES: Final = 128 * 2**20
"""Bytes of the bodies of all requests that are being read or answered."""
BODY_SECONDS: Final = 8.0
"""Time for the whole body, less than the connection's."""
RETRY_AFTER: Final = ("Retry-After", "1")
_MAXIMUM_CHUNK_HEAD: Final = 1_024
_PIECE: Final = 64 * 1024

MAXIMUM_DECODED_BYTES: Final = 64 * 2**20
"""Longest body after decompression."""
MAXIMUM_MEMBERS: Final = 64
"""Gzip streams that one body may consist of: each copies the rest of the body."""


class BodyError(Exception):
    """A body that is refused, with the status of the response."""

    def __init__(self, status: int, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class ByteStream(Protocol):
    """The part of a connection's stream that a body is read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most *size* bytes; fewer only at the end of the stream."""
        ...

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, cut at *limit* bytes."""
        ...


class BodyBudget:
    """The memory that the bodies of all requests share. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used = 0

    def take(self, size: int) -> None:
        """Reserve *size* bytes. Raises `BodyError` with 429 where they are not free."""
        with self._lock:
            if self._used + size > MAXIMUM_WAITING_BYTES:
                raise BodyError(429, "too many requests are being read; try again", RETRY_AFTER)
            self._used += size

    def give_back(self, size: int) -> None:
        """Free *size* bytes."""
        with self._lock:
            self._used -= size


class BodyReader:
    """Reads the body of one request. `close` frees the memory that it has reserved."""

    def __init__(self, stream: ByteStream, budget: BodyBudget) -> None:
        self._stream = stream
        self._budget = budget
        self._reserved = 0
        self._until = time.monotonic() + BODY_SECONDS

    def read(self, headers: Message) -> bytes:
        """Return the body, sent with its length or in chunks. Raises `BodyError`."""
        encoding = (headers.get("Transfer-Encoding") or "").strip().lower()
        lengths = headers.get_all("Content-Length") or []
        try:
            if encoding:
                if encoding != "chunked" or lengths:
                    raise BodyError(400, "Transfer-Encoding must be chunked, without a Content-Length")
                return self._chunked()
            if len(lengths) != 1 or not lengths[0].strip().isdecimal() or len(lengths[0].strip()) > 15:
                raise BodyError(411, "a body needs one Content-Length, or Transfer-Encoding: chunked")
            return self._exactly(int(lengths[0]))
        except TimeoutError as error:
            raise BodyError(408, f"the body did not arrive within {BODY_SECONDS:.0f} seconds") from error

    def close(self) -> None:
        """Free the reserved memory."""
        self._budget.give_back(self._reserved)
        self._reserved = 0

    def _exactly(self, length: int) -> bytes:
        self._reserve(length)
        pieces: list[bytes] = []
        remaining = length
        while remaining:
            if time.monotonic() > self._until:
                raise TimeoutError
            piece = self._stream.read(min(remaining, _PIECE))
            if not piece:
                raise BodyError(400, f"the body ended {remaining} bytes before its Content-Length")
            pieces.append(piece)
            remaining -= len(piece)
        return b"".join(pieces)

    def _chunked(self) -> bytes:
        pieces: list[bytes] = []
        while True:
            head = self._stream.readline(_MAXIMUM_CHUNK_HEAD)
            size = head.split(b";")[0].strip()
            if not head.endswith(b"\n") or not size or len(size) > 8:
                raise BodyError(400, "a chunk must start with its size in hexadecimal")
            try:
                length = int(size, 16)
            except ValueError:
                raise BodyError(400, "a chunk must start with its size in hexadecimal") from None
            if length < 0:
                raise BodyError(400, "a chunk must start with its size in hexadecimal")
            if not length:
                self._skip_trailers()
                return b"".join(pieces)
            pieces.append(self._exactly(length))
            if self._stream.readline(3) not in (b"\r\n", b"\n"):
                raise BodyError(400, "a chunk must end with a line break")

    def _skip_trailers(self) -> None:
        for _ in range(64):
            if self._stream.readline(_MAXIMUM_CHUNK_HEAD) in (b"\r\n", b"\n", b""):
                return
        raise BodyError(400, "too many trailers")

    def _reserve(self, size: int) -> None:
        if self._reserved + size > MAXIMUM_BODY_BYTES:
            raise BodyError(413, f"the body is larger than {MAXIMUM_BODY_BYTES:,} bytes")
        self._budget.take(size)
        self._reserved += size


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
