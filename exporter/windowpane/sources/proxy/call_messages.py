"""The messages by which the event loop passes the bytes of calls to the thread that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from windowpane.sources.transcripts.formats.exchanges.bodies import Api

MESSAGE_BYTES: Final = 500
"""Size of a message without its pieces, about."""
PIECE_BYTES: Final = 41
"""Size of a piece without its content, and of the reference to it."""


class SentCall(msgspec.Struct, frozen=True):
    """A request that was sent to its provider."""

    number: int
    """Unique within the forwarding process."""
    api: Api
    uri: str
    """Path and query; a Gemini model is part of it."""
    program: str | None
    """Agent that its `User-Agent` names."""
    session: str
    """Session of that agent, as the headers state it; empty where they do not."""
    encodings: Sequence[bytes]
    """Values of `Content-Encoding`."""
    body: Sequence[bytes]
    at: float
    parent: str = ""
    """Session that started that one, likewise."""


class EndedCall(msgspec.Struct, frozen=True):
    """The response to a call, as far as it came."""

    number: int
    status: int
    encodings: Sequence[bytes]
    body: Sequence[bytes]
    at: float
    seconds: float
    """Time since the call was sent."""


class FailedCall(msgspec.Struct, frozen=True):
    """A call without a whole response."""

    number: int
    error: str
    at: float
    seconds: float


CallMessage = SentCall | EndedCall | FailedCall


class CallMessages(Protocol):
    """Takes the messages of passing calls. Does not block and does not raise."""

    def put(self, message: CallMessage) -> bool:
        """Queue a message; returns False if its bytes were not taken."""
        ...


def size_of(message: CallMessage) -> int:
    """Return about how many bytes *message* takes in memory."""
    pieces = () if isinstance(message, FailedCall) else message.body
    return MESSAGE_BYTES + sum(PIECE_BYTES + len(piece) for piece in pieces)
