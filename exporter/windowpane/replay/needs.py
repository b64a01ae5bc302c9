"""What the recorded agent needed again: which earlier content each call fetched again or used by name.

Computed once a session from the recording alone, so that every setup is held against the same needs. A name is
used when the reply holds a rare identifier of the content: one that at most three pieces of content hold at that
time (`window.references`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from windowpane.core.limits import TrackerSettings
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import (
    IDENTIFIERS_PER_BLOCK,
    INDEXED_TYPES,
    MAXIMUM_HOLDERS,
    argument_values,
    identifiers,
)
from windowpane.replay.history import RecordedCall, RecordedHistory, identity

MINIMUM_TOKENS: Final = TrackerSettings().regret_minimum_tokens
"""Smaller content is too common to call its return a need."""

Match = Literal["digest", "call", "identifier"]


class Need(NamedTuple):
    """Earlier content that a call needed."""

    content: str
    """Its identity."""
    match: Match
    names: tuple[str, ...] = ()
    """The identifiers that the reply used, for `identifier`."""


class CallNeeds(NamedTuple):
    """Of one call."""

    returned: tuple[Need, ...]
    """Content that came in again before the call."""
    used: tuple[Need, ...]
    """Content that its reply fetched again or used by name."""


def needs_of(history: RecordedHistory) -> list[CallNeeds]:
    """The needs of every call, in order; what was cleared is needed no more."""
    found: list[CallNeeds] = []
    memory, span = _Memory(), None
    for call in history.calls:
        if call.span is not span:
            memory, span = _Memory(), call.span
        found.append(memory.take(call))
    return found


class _Memory:
    """The content of one stretch, by what may be asked of it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._result_of: dict[str, str] = {}
        self._fetched_by: dict[str, str] = {}
        self._holders: dict[str, dict[str, None]] = {}

    def take(self, call: RecordedCall) -> CallNeeds:
        returned = []
        for block in call.arrived:
            key = identity(block)
            if key in self._seen and block.tokens >= MINIMUM_TOKENS:
                returned.append(Need(key, "digest"))
            self._seen.add(key)
            self._remember(block, key)
        reply = list(call.reply)
        return CallNeeds(tuple(returned), (*self._fetched(reply), *self._named(reply)))

    def _remember(self, block: Block, key: str) -> None:
        if block.content_type == "tool_call" and block.tool_call_id:
            self._fetched_by[block.tool_call_id] = block.digest
        elif block.content_type == "tool_result" and block.tool_call_id in self._fetched_by:
            self._result_of[self._fetched_by[block.tool_call_id]] = key
        if block.text and block.content_type in INDEXED_TYPES:
            names = identifiers(block.text)
            if len(names) > IDENTIFIERS_PER_BLOCK:
                names.sort(key=lambda name: (len(self._holders.get(name, ())), -len(name)))
            for name in names[:IDENTIFIERS_PER_BLOCK]:
                self._holders.setdefault(name, {})[key] = None

    def _fetched(self, reply: Iterable[Block]) -> list[Need]:
        """Results of earlier calls with the same tool and arguments."""
        calls = [block.digest for block in reply if block.content_type == "tool_call"]
        return [Need(self._result_of[digest], "call") for digest in calls if digest in self._result_of]

    def _named(self, reply: Iterable[Block]) -> list[Need]:
        used: dict[str, list[str]] = {}
        for block in reply:
            text = block.text or ""
            for name in identifiers(argument_values(text) if block.content_type == "tool_call" else text):
                holders = self._holders.get(name, {})
                if len(holders) <= MAXIMUM_HOLDERS:
                    for key in holders:
                        used.setdefault(key, []).append(name)
        return [Need(key, "identifier", tuple(dict.fromkeys(names))) for key, names in used.items()]
