"""Compressed bodies of requests, decompressed within a bound."""

from __future__ import annotations

import zlib
from typing import Final

from windowpane.serve.request_bodies import BodyError
from windowpane.serve.routes import PostRequest

MAXIMUM_DECODED_BYTES: Final = 64 * 2**20
"""Longest body after decompression."""
MAXIMUM_MEMBERS: Final = 64
"""Gzip streams that one body may consist of: each copies the rest of the body."""


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
