"""Records of one session by several sources: the calls that they have in common, and the more complete one.

Every source that records a call records the ids that providers give replies and tool calls, so two records of one
call have a number in common. Only records of different ranks can be one session: two recordings by agents, or a
recording and a session that replays it, are two.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from windowpane.core.events import BlockAdded, Event, TurnEnded
from windowpane.core.vocabulary import REPLY_TYPES, STATIC_TYPES

UNIQUE_ID_CHARACTERS: Final = 20
"""Ids of replies and tool calls of at least this length are unique; shorter ones are counted up."""
_DISTINCT_CHARACTERS: Final = 8
"""Fewer are a placeholder, such as zeros or what a redactor writes."""


def call_number(call_id: str | None) -> int | None:
    """Return the number by which ids of replies and tool calls are compared; None where one is not unique."""
    if not call_id or len(call_id) < UNIQUE_ID_CHARACTERS or len(set(call_id)) < _DISTINCT_CHARACTERS:
        return None
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def number_in(data: object) -> int | None:
    """Return the number of the call that an event names by its reply or a tool call; None for any other event."""
    if isinstance(data, TurnEnded):
        return call_number(data.response_id)
    if isinstance(data, BlockAdded) and data.block.content_type == "tool_call":
        return call_number(data.block.tool_call_id)
    return None


def numbers_in(events: Iterable[Event]) -> list[int]:
    """Return the numbers of the calls that *events* name."""
    return [number for event in events if (number := number_in(event.data)) is not None]


CLOCK_SECONDS: Final = 600.0
"""Largest difference between the clocks of two machines that record one session."""
_RECORDING: Final = 5
_REPLAYS: Final = "demo"
RANKS: Final[Mapping[str, int]] = {
    "otlp": 1, "litellm_logs": 2, "api_exchanges": 2, "langfuse": 2, "langsmith": 2, "proxy": 3, "live": 4,
    _REPLAYS: _RECORDING,
}  # fmt: skip
"""Ranks of the sources that are not an agent's own recording."""


def rank(source: str) -> int:
    """Return how complete a source's record of a session is: the greater, the more complete."""
    return RANKS.get(source, _RECORDING)


def is_recording(source: str) -> bool:
    """Return whether *source* is an agent's own recording; agents copy recordings into new ones."""
    return source not in RANKS


@dataclass(slots=True)
class RecordedCalls:
    """The calls of one recording, which show whether another one with the same id is of the same session.

    A call is recognized by the unique ids of its reply and tool calls, else by its time and reply.
    """

    ids: set[int] = field(default_factory=set)
    replies: set[Hashable] = field(default_factory=set)
    contents: list[str] = field(default_factory=list)
    """Digests of what is not static, and the usage of the calls, in order."""
    first: str = ""
    """A digest of the first call."""
    turns: int = 0

    @classmethod
    def of(cls, events: Iterable[Event]) -> RecordedCalls:
        """Return the calls in *events*."""
        calls, reply, start = cls(), list[str](), 0
        for _, _, at, data in events:
            number = number_in(data)
            if number is not None:
                calls.ids.add(number)
            if isinstance(data, BlockAdded) and data.block.content_type not in STATIC_TYPES:
                calls.contents.append(data.block.digest)
                if data.block.content_type in REPLY_TYPES:
                    reply.append(data.block.digest)
            elif isinstance(data, TurnEnded):
                calls.turns += 1
                calls.contents.append(repr(data.usage))
                call = at, *(reply or calls.contents[start:])
                calls.first = calls.first or blake2b(repr(number or call).encode(), digest_size=4).hexdigest()
                if at is not None and (reply or data.usage is not None):  # else it failed
                    calls.replies.add(call)
                reply, start = [], len(calls.contents)
        return calls

    def continue_session(self, stored: RecordedCalls) -> bool:
        """Return whether one of the calls is also stored, or all of the shorter recording is, at any times."""
        if not stored.contents:
            return True
        if self.ids and stored.ids:
            return not self.ids.isdisjoint(stored.ids)
        shorter = min(len(self.contents), len(stored.contents))
        is_start = shorter > 0 and self.contents[:shorter] == stored.contents[:shorter]
        return is_start or not self.replies.isdisjoint(stored.replies)
