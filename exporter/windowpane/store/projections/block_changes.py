"""The changes of `blocks` by events: which event added a block, its position, when and why it was removed.

Moments are event numbers: a block is in the window at moment m when `entered_seq <= m < left_seq`. Positions
follow `core.window.Window`: an appended block gets the next one, a replacement the first of those it replaces.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.events import BlocksEvicted, BlocksReferenced, ContentCompressed, ReplyDiscarded
from windowpane.core.vocabulary import REPLY_TYPES, ContentType
from windowpane.core.window.blocks import Block
from windowpane.store.projections.block_drafts import BlockDraft, Removal, SessionBlocks
from windowpane.store.projections.session_drafts import SessionDraft

AT_THE_END: Final = -1
TOOL_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_call", "tool_result", "placeholder"})
"""Types of content that belong to a tool."""


def starts_reply(session: SessionDraft, block: Block, turn: int) -> bool:
    """Return whether a block is the first of the turn's reply, so that everything before it was sent."""
    return block.content_type in REPLY_TYPES and session.memory.called_turn != turn


def is_appended(session: SessionDraft, block: Block) -> bool:
    """Return whether a block is added at the end of the window, not in the position of others."""
    return (
        block.replaces is None and block.content_type != "unattributed" and block.id not in session.memory.pending
    )


def append(blocks: SessionBlocks, session: SessionDraft, block: Block, seq: int) -> None:
    """Add a block at the end of the window."""
    memory = session.memory
    position = memory.next_position
    memory.next_position = position + 1
    blocks.add(_draft(session, block, seq, seq, position))


def _draft(session: SessionDraft, block: Block, seq: int, entered: int, position: int) -> BlockDraft:
    """Return the row of a block, with its tool and target, and the calls so far with their price per token."""
    tool = block.tool_name if block.content_type in TOOL_TYPES else None
    return BlockDraft(
        session.key, block.id, seq, entered, position, tool, block.target if tool else None, block.tokens,
        session.turns, session.carried_price,
    )  # fmt: skip


def _removal(
    session: SessionDraft,
    moment: int,
    turn: int,
    by: str,
    reason: str,
    *,
    score: float | None = None,
    replacement: str | None = None,
) -> Removal:
    return Removal(moment, turn, by, reason, score, replacement, session.turns, session.carried_price)


def replace_others(
    blocks: SessionBlocks, session: SessionDraft, block: Block, turn: int, seq: int, *, call_seq: int | None
) -> None:
    """Add a block in the position of others. *call_seq* is the moment of the turn's call, once it was made.

    The unattributed block is known when the call returns but was part of it, so it counts from the call on.
    """
    memory = session.memory
    unattributed = block.content_type == "unattributed"
    entered = call_seq if unattributed and call_seq is not None else seq
    position = memory.pending.pop(block.id, None)
    if position is None and block.replaces is not None:
        position = blocks.position(block.replaces)
        if position is not None:
            removal = _removal(session, entered, turn, "replaced", "", replacement=block.id)
            blocks.remove(block.replaces, removal)
    if unattributed and not block.tokens:
        return  # the provider's total no longer exceeds the visible content
    if position is None or position == AT_THE_END:
        position, memory.next_position = memory.next_position, memory.next_position + 1
    blocks.add(_draft(session, block, seq, entered, position))


def evict(blocks: SessionBlocks, session: SessionDraft, data: BlocksEvicted, turn: int, seq: int) -> None:
    """Remove the blocks that a policy evicted; those that were never added have no row to change."""
    memory = session.memory
    memory.pending = {}
    for block in data.blocks:
        if block.replacement is not None:
            position = blocks.position(block.block_id)
            memory.pending[block.replacement] = AT_THE_END if position is None else position
    for block in data.blocks:
        removal = _removal(
            session, seq, turn, "eviction", block.reason, score=block.score, replacement=block.replacement
        )
        blocks.remove(block.block_id, removal)


def discard_reply(
    blocks: SessionBlocks, session: SessionDraft, data: ReplyDiscarded, turn: int, seq: int
) -> None:
    """Remove the content of a reply that the agent did not send back."""
    removal = _removal(session, seq, turn, "discarded", "not sent back by the agent")
    for block_id in data.block_ids:
        blocks.remove(block_id, removal)


def compress(blocks: SessionBlocks, session: SessionDraft, data: ContentCompressed, turn: int, seq: int) -> None:
    """Remove the blocks of an accepted compression and reserve the positions of its results."""
    session.memory.pending = {}
    if data.results:
        session.memory.pending = _make_room(blocks, session, data.results, blocks.first_position(data.removed))
    replacement = data.results[0] if data.results else None
    removal = _removal(session, seq, turn, "compression", data.strategy, replacement=replacement)
    for block_id in data.removed:
        blocks.remove(block_id, removal)


def _make_room(
    blocks: SessionBlocks, session: SessionDraft, results: tuple[str, ...], position: int | None
) -> dict[str, int]:
    """Return the position of each result, consecutive from *position* on; the blocks behind are moved."""
    if position is None:
        return dict.fromkeys(results, AT_THE_END)
    more = len(results) - 1
    if more:
        blocks.move_back(position, more)
        session.memory.next_position += more
    return {block_id: position + offset for offset, block_id in enumerate(results)}


def roll(blocks: SessionBlocks, session: SessionDraft, turn: int, seq: int, reason: str) -> None:
    """Remove every block: the session continued in a new window."""
    session.memory.pending = {}
    blocks.remove_all(_removal(session, seq, turn, "roll", reason))


def refer(blocks: SessionBlocks, data: BlocksReferenced, turn: int, seq: int) -> None:
    """Count a reference to each of the blocks."""
    for block_id in data.block_ids:
        blocks.refer(block_id, turn, seq)
