"""The life of every block: which event brought it, where it stood, when and why it left.

Times are event numbers: a block is in the window at moment m when `entered_seq <= m < left_seq`. Positions follow
`window.Window`: what is appended takes the next one, what stands in for others takes the first of theirs.
"""

from __future__ import annotations

from typing import Final

import msgspec

from windowpane.core.events import BlockAdded, BlocksEvicted, BlocksReferenced, ContentCompressed, Event
from windowpane.core.vocabulary import REPLY_TYPES
from windowpane.core.window.blocks import Block
from windowpane.store.operations import Operations
from windowpane.store.session_state import SessionState

IN_WINDOW: Final = 2**62
"""`left_seq` of a block that has not left."""
AT_THE_END: Final = -1

_INSERT: Final = (
    "INSERT OR IGNORE INTO blocks (session, block_id, event_seq, entered_seq, left_seq, position) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
_PLACE: Final = "SELECT position FROM blocks WHERE session = ? AND block_id = ? AND left_seq = ?"
_FIRST_PLACE: Final = (
    "SELECT min(position) FROM blocks WHERE session = ? AND left_seq = ? "
    "AND block_id IN (SELECT value FROM json_each(?))"
)
_LEAVE: Final = (
    "UPDATE blocks SET left_seq = ?, turn_removed = ?, removed_by = ?, reason = ?, score = ?, replaced_by = ? "
    "WHERE session = ? AND block_id = ? AND left_seq = ?"
)
_LEAVE_ALL: Final = (
    "UPDATE blocks SET left_seq = ?, turn_removed = ?, removed_by = 'roll', reason = ? "
    "WHERE session = ? AND left_seq = ?"
)
_MOVE_BACK: Final = "UPDATE blocks SET position = position + ? WHERE session = ? AND position > ?"
"""Blocks that have left move as well, so that the order at any earlier turn stays what it was."""
_REFER: Final = (
    'UPDATE blocks SET last_referenced = ?, "references" = "references" + 1 WHERE session = ? AND block_id = ?'
)
_REGRET: Final = (
    "UPDATE blocks SET regretted_turn = coalesce(regretted_turn, ?) WHERE session = ? AND block_id = ?"
)

_encoder: Final = msgspec.json.Encoder()


def begins_reply(state: SessionState, block: Block, turn: int) -> bool:
    """Whether a block is the first the model wrote in its turn: what stands before it is what the call sent."""
    return block.content_type in REPLY_TYPES and state.memory.called_turn != turn


def appended(operations: Operations, state: SessionState, block: Block, seq: int) -> bool:
    """A block entered at the end of the window; False, and nothing done, when it takes another's place."""
    if block.exchange > state.exchanges:  # noqa: PLR1730  # max() costs a call, on the busiest path of all
        state.exchanges = block.exchange
    memory = state.memory
    if block.replaces is not None or block.content_type == "unattributed" or block.id in memory.pending:
        return False
    position = memory.next_position
    memory.next_position = position + 1
    operations.add(_INSERT, (state.key, block.id, seq, seq, IN_WINDOW, position))
    return True


def stood_in(operations: Operations, state: SessionState, event: Event, seq: int, call_seq: int | None) -> None:
    """A block took the place of others. *call_seq* is the moment of the turn's call, once it was made.

    The unattributed block is found out when the call returns but was part of it, so it counts from the call on.
    """
    assert isinstance(event.data, BlockAdded)
    block, memory = event.data.block, state.memory
    unattributed = block.content_type == "unattributed"
    entered = call_seq if unattributed and call_seq is not None else seq
    place = memory.pending.pop(block.id, None)
    if place is None and block.replaces is not None:
        place = _take_place(operations, state, event, block.replaces, entered)
    if unattributed and not block.tokens:
        return  # the provider's total no longer exceeds the visible content
    if place is None or place == AT_THE_END:
        place, memory.next_position = memory.next_position, memory.next_position + 1
    operations.add(_INSERT, (state.key, block.id, seq, entered, IN_WINDOW, place))


def _take_place(
    operations: Operations, state: SessionState, event: Event, replaced: str, moment: int
) -> int | None:
    assert isinstance(event.data, BlockAdded)
    found = operations.one(_PLACE, (state.key, replaced, IN_WINDOW))
    if found is None:
        return None
    turn = event.context.turn
    operations.add(
        _LEAVE, (moment, turn, "replaced", "", None, event.data.block.id, state.key, replaced, IN_WINDOW)
    )
    return int(found[0] or 0)


def evicted(operations: Operations, state: SessionState, event: Event, seq: int) -> None:
    """A policy took blocks out; those that were never seen are passed over."""
    assert isinstance(event.data, BlocksEvicted)
    turn, key, memory = event.context.turn, state.key, state.memory
    memory.pending = {}
    for block in event.data.blocks:
        if block.replacement is not None:
            found = operations.one(_PLACE, (key, block.block_id, IN_WINDOW))
            memory.pending[block.replacement] = AT_THE_END if found is None else int(found[0] or 0)
    for block in event.data.blocks:
        operations.add(
            _LEAVE,
            (seq, turn, "eviction", block.reason, block.score, block.replacement, key, block.block_id, IN_WINDOW),
        )


def compressed(operations: Operations, state: SessionState, event: Event, seq: int) -> None:
    """Content was replaced by less content, where the attempt was accepted."""
    data = event.data
    assert isinstance(data, ContentCompressed)
    turn, key, memory = event.context.turn, state.key, state.memory
    memory.pending = {}
    if data.results:
        found = operations.one(_FIRST_PLACE, (key, IN_WINDOW, _encoder.encode(data.removed).decode()))
        place = None if found is None or found[0] is None else int(found[0])
        memory.pending = _make_room(operations, state, data.results, place)
    stand_in = data.results[0] if data.results else None
    for block_id in data.removed:
        operations.add(
            _LEAVE, (seq, turn, "compression", data.strategy, None, stand_in, key, block_id, IN_WINDOW)
        )


def _make_room(
    operations: Operations, state: SessionState, results: tuple[str, ...], place: int | None
) -> dict[str, int]:
    """Where each result will stand: in a row from *place* on, and what stands behind moves."""
    if place is None:
        return dict.fromkeys(results, AT_THE_END)
    more = len(results) - 1
    if more:
        operations.add(_MOVE_BACK, (more, state.key, place))
        state.memory.next_position += more
    return {block_id: place + offset for offset, block_id in enumerate(results)}


def rolled(operations: Operations, state: SessionState, event: Event, seq: int, reason: str) -> None:
    """The session went on in a new window: everything left."""
    state.memory.pending = {}
    operations.add(_LEAVE_ALL, (seq, event.context.turn, reason, state.key, IN_WINDOW))


def referenced(operations: Operations, state: SessionState, event: Event) -> None:
    """Later content used these blocks."""
    assert isinstance(event.data, BlocksReferenced)
    for block_id in event.data.block_ids:
        operations.defer(_REFER, (event.context.turn, state.key, block_id))


def regretted(operations: Operations, state: SessionState, block_id: str, turn: int) -> None:
    """A block that had left was needed again; the first time is kept."""
    operations.defer(_REGRET, (turn, state.key, block_id))
