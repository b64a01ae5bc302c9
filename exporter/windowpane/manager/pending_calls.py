"""Tool calls that wait long: for a person's approval, or for work that goes on beside the conversation.

Their group never leaves while they wait. Until the result comes, something stands for it, so that what is sent is
valid; the result takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.core.events import BlocksEvicted, EvictedBlock
from windowpane.exceptions import WindowError

if TYPE_CHECKING:
    from windowpane.manager.engine import Core

SUPERSEDED = "superseded"
"""The policy by which an interim result leaves."""


def hold(core: Core, call_id: str, reason: str) -> None:
    """The call waits; raises `WindowError` for one that is not open."""
    call = core.open_calls.get(call_id) or core.held.get(call_id)
    if call is None:
        raise WindowError(f"the call {call_id} is not open")
    core.held[call_id] = call
    core.open_calls.pop(call_id, None)
    stand_for(core, call_id, f"[pending: {reason}]")


def release(core: Core, call_id: str) -> None:
    """The call waits no longer, with or without a result."""
    core.held.pop(call_id, None)
    core.interim.pop(call_id, None)


def stand_for(core: Core, call_id: str, text: str) -> None:
    """Put *text* in the place of the result that has not come."""
    supersede(core, call_id)
    tokens, source = core.counter.count(text), core.counter.source
    name = core.held[call_id].name
    block = core.tracker.add(
        "tool_result", text, tokens, count_source=source, tool_call_id=call_id, tool_name=name
    )
    core.interim[call_id] = block.id


def supersede(core: Core, call_id: str) -> None:
    """Take out what stands for the call's result."""
    block_id = core.interim.pop(call_id, None)
    window = core.tracker.window
    if block_id is None or block_id not in window:
        return
    block = window.slot(block_id).block
    core.tracker.evict(
        BlocksEvicted(
            policy=SUPERSEDED,
            blocks=(
                EvictedBlock(
                    block.id, block.content_type, block.tokens, "drop", "the result came", turn_added=block.turn
                ),
            ),
            tokens_removed=block.tokens,
            tokens_freed=block.tokens,
        )
    )
    core.forget([block])
