"""Where a message history may be cut: pure functions over messages in the shape of OpenAI's chat API.

An exchange begins with a user message; between exchanges a cut never parts a tool call from its results.
Where there is no user message at all, a cut is still never made inside a tool cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def exchange_starts(messages: Sequence[Message]) -> list[int]:
    """Indices of the user messages, each of which begins an exchange."""
    return [index for index, message in enumerate(messages) if message.get("role") == "user"]


def is_exchange_boundary(messages: Sequence[Message], index: int) -> bool:
    """Whether a cut before *index* falls between two exchanges; the ends of the history always do."""
    return index <= 0 or index >= len(messages) or messages[index].get("role") == "user"


def is_pair_safe(messages: Sequence[Message], index: int) -> bool:
    """Whether a cut before *index* leaves every tool call with its results."""
    return index <= 0 or index >= len(messages) or messages[index].get("role") != "tool"


def safe_boundary(messages: Sequence[Message], target: int) -> int:
    """The cut nearest to *target* that keeps exchanges whole; 0 when there is none.

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


def groups(messages: Sequence[Message]) -> list[range]:
    """The groups of a valid history, as ranges of indices that cover it."""
    found: list[range] = []
    start = 0
    for index in range(1, len(messages) + 1):
        if index == len(messages) or messages[index].get("role") != "tool":
            found.append(range(start, index))
            start = index
    return found if messages else []


def _pair_boundary(messages: Sequence[Message], target: int) -> int:
    while not is_pair_safe(messages, target):
        target -= 1
    return max(target, 0)
