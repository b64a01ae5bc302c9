"""What left the window and is watched for its return."""

from __future__ import annotations

from typing import Literal, NamedTuple

from windowpane.core.events import ContentRegretted
from windowpane.core.window.blocks import Block

Cause = Literal["eviction", "compression"]
"""What took a block out."""


class Departure(NamedTuple):
    """A block that left, and the event that took it out."""

    block_id: str
    tokens: int
    turn_left: int
    cause: Cause
    cause_event_id: str
    digests: tuple[str, ...]
    """Its own digest and, for a tool result, that of the call which fetched it."""

    def regretted(self, match: Literal["same_call", "same_digest"], *, by: str) -> ContentRegretted:
        """The event that says block *by* fetched it again."""
        return ContentRegretted(
            self.cause, match, self.block_id, by, self.tokens, self.turn_left, self.cause_event_id
        )


def departure_of(block: Block, call: Block | None, *, turn: int, cause: Cause, cause_event_id: str) -> Departure:
    """The departure of a block; *call* is the tool call that fetched it, where it is a tool's result."""
    digests = [block.digest] if block.digest else []
    if block.content_type == "tool_result" and call is not None and call.digest:
        digests.append(call.digest)
    return Departure(block.id, block.tokens, turn, cause, cause_event_id, tuple(digests))


class Departures:
    """A bounded memory of departures by digest; the oldest are forgotten first."""

    def __init__(self, *, capacity: int, turns: int) -> None:
        self._capacity = capacity
        self._turns = turns
        self.by_digest: dict[str, Departure] = {}
        """What is watched for; only `remember` and `returned` change it."""

    def remember(self, departure: Departure) -> None:
        """Watch for the return of a block; a later departure of the same digest takes its place."""
        for digest in departure.digests:
            self.by_digest.pop(digest, None)
            self.by_digest[digest] = departure
        while len(self.by_digest) > self._capacity:
            self.by_digest.pop(next(iter(self.by_digest)))

    def returned(self, digest: str, turn: int) -> Departure | None:
        """The departure that *digest* makes good, once; None when there is none or it left too long ago."""
        departure = self.by_digest.get(digest)
        if departure is None:
            return None
        for known in departure.digests:
            if self.by_digest.get(known) is departure:
                del self.by_digest[known]
        return departure if turn - departure.turn_left <= self._turns else None
