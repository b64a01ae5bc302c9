"""Positions at which a message history may be cut, for messages in the shape of OpenAI's chat API.

An exchange starts with a user message; a cut between exchanges never separates a tool call from its results.
Without any user message, a cut is still never made inside a tool cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def exchange_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the user messages, each of which starts an exchange."""
    return [index for index, message in enumerate(messages) if message.get("role") == "user"]


def is_pair_safe(messages: Sequence[Message], index: int) -> bool:
    """Return True if a cut before *index* keeps every tool call together with its results."""
    return index <= 0 or index >= len(messages) or messages[index].get("role") != "tool"


def safe_boundary(messages: Sequence[Message], target: int) -> int:
    """Return the cut nearest to *target* that keeps exchanges whole; 0 if there is none.

    The last exchange start at or before *target*, else the first after it. Without any user message: the
    start of the tool cycle that *target* falls into.
    """
    if target <= 0 or not messages:
        return 0
    if target >= len(messages):
        return len(messages)
    starts = exchange_starts(messages)
    if not starts:
        return _pair_boundary(messages, target)
    before = [start for start in starts if 0 < start <= target]
    if before:
        return before[-1]
    return next((start for start in starts if start > target), 0)


def _pair_boundary(messages: Sequence[Message], target: int) -> int:
    while not is_pair_safe(messages, target):
        target -= 1
    return max(target, 0)
