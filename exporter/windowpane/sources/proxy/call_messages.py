"""The messages by which the forwarding process passes the bytes of calls to the one that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from windowpane.sources.transcripts.exchanges.bodies import Api

MESSAGE_BYTES: Final = 200
"""Size of a message without its pieces and texts, at most."""
PIECE_BYTES: Final = 5
"""Size of a piece beside its content, when it is encoded."""
CHARACTER_BYTES: Final = 4


class SentCall(msgspec.Struct, tag="sent", array_like=True, frozen=True):
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


class EndedCall(msgspec.Struct, tag="ended", array_like=True, frozen=True):
    """The response to a call, as far as it came."""

    number: int
    status: int
    encodings: Sequence[bytes]
    body: Sequence[bytes]
    at: float
    seconds: float
    """Time since the call was sent."""


class FailedCall(msgspec.Struct, tag="failed", array_like=True, frozen=True):
    """A call without a whole response."""

    number: int
    error: str
    at: float
    seconds: float


class LostCalls(msgspec.Struct, tag="lost", array_like=True, frozen=True):
    """Calls and replies whose bytes did not fit into the queue."""

    count: int


CallMessage = SentCall | EndedCall | FailedCall | LostCalls


class CallMessages(Protocol):
    """Takes the messages of passing calls. Does not block and does not raise."""

    def put(self, message: SentCall | EndedCall | FailedCall) -> bool:
        """Queue a message; returns False if its bytes were not taken."""
        ...


def size_of(message: SentCall | EndedCall | FailedCall) -> int:
    """Return the bytes that *message* takes in memory and when it is encoded, rounded up."""
    match message:
        case FailedCall():
            return MESSAGE_BYTES + CHARACTER_BYTES * len(message.error)
        case SentCall():
            size = MESSAGE_BYTES + CHARACTER_BYTES * (len(message.uri) + len(message.session))
        case _:
            size = MESSAGE_BYTES
    return size + sum(
        PIECE_BYTES + len(piece) for pieces in (message.encodings, message.body) for piece in pieces
    )
