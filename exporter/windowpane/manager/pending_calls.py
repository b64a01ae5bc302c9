"""Tool calls that wait long: for a person's approval, or for work that goes on beside the conversation.

Their group never leaves while they wait. Until the result comes, something stands for it, so that what is sent is
valid; the result takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.core.events import BlocksEvicted, EvictedBlock
from windowpane.exceptions import WindowError

if TYPE_CHECKING:
    from windowpane.manager.engine import Engine

SUPERSEDED = "superseded"
"""The policy by which an interim result leaves."""


def hold(engine: Engine, call_id: str, reason: str) -> None:
    """The call waits; raises `WindowError` for one that is not open."""
    call = engine.open_calls.get(call_id) or engine.held.get(call_id)
    if call is None:
        raise WindowError(f"the call {call_id} is not open")
    engine.held[call_id] = call
    engine.open_calls.pop(call_id, None)
    stand_for(engine, call_id, f"[pending: {reason}]")


def release(engine: Engine, call_id: str) -> None:
    """The call waits no longer, with or without a result."""
    engine.held.pop(call_id, None)
    engine.interim.pop(call_id, None)


def stand_for(engine: Engine, call_id: str, text: str) -> None:
    """Put *text* in the place of the result that has not come."""
    supersede(engine, call_id)
    tokens, source = engine.counter.count(text), engine.counter.source
    name = engine.held[call_id].name
    block = engine.tracker.add(
        "tool_result", text, tokens, count_source=source, tool_call_id=call_id, tool_name=name
    )
    engine.interim[call_id] = block.id


def supersede(engine: Engine, call_id: str) -> None:
    """Take out what stands for the call's result."""
    block_id = engine.interim.pop(call_id, None)
    window = engine.tracker.window
    if block_id is None or block_id not in window:
        return
    block = window.slot(block_id).block
    engine.tracker.evict(
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
    engine.forget([block])
