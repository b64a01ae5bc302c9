"""Numbers of model calls, by the ids that providers give replies and tool calls.

Every source that records a call records these ids, so two records of one call have a number in common.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from windowpane.core.events import BlockAdded, TurnEnded

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
