"""The effect of a recorded eviction on the window: evicted blocks, their placeholders, the freed tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from windowpane.core.events import BlocksEvicted, EvictedBlock
from windowpane.core.tracking import SessionTracker
from windowpane.core.window.blocks import Block
from windowpane.sources.transcripts.records import ContentRemoved

PLACEHOLDER_TOKENS: Final = 8
"""Size of an agent's placeholder for a tool result it cleared, whose text is not recorded."""
MAXIMUM_KEY_CHARS: Final = 200


class RecordedEviction(NamedTuple):
    """An eviction as the tracker recorded it."""

    evicted: tuple[EvictedBlock, ...]
    renamed: Mapping[str, str]
    """Ids of the placeholders by those of the blocks that they replace."""


def evict(
    record: ContentRemoved, tracker: SessionTracker, blocks: Mapping[str, Sequence[str]], at: float | None
) -> RecordedEviction:
    """Evict the content of *record*; *blocks* are the ids of blocks by the recording's keys.

    A tool result is replaced by a placeholder. Content that the recording does not hold is listed without tokens.
    """
    evicted: list[EvictedBlock] = []
    replacements: list[Block] = []
    for key in record.keys:
        block_ids = [block_id for block_id in blocks.get(key, ()) if block_id in tracker.window]
        if not block_ids:
            evicted.append(EvictedBlock(key[:MAXIMUM_KEY_CHARS], "tool_result", 0, "mask", record.policy))
        for block_id in block_ids:
            block = tracker.window.slot(block_id).block
            replacement = None
            if block.content_type == "tool_result":
                replacement = tracker.make_replacement("placeholder", None, PLACEHOLDER_TOKENS, replaces=block_id)
                replacements.append(replacement)
            evicted.append(_evicted(block, replacement, record.policy))
    seen = sum(block.tokens for block in evicted)
    net = max(0, seen - sum(block.replacement_tokens for block in evicted))
    freed = net if record.tokens_freed is None else record.tokens_freed
    before = tracker.gauge.account.used(tracker.window.tokens)
    tracker.evict(BlocksEvicted(record.policy, tuple(evicted), max(seen, freed), freed), replacements, at)
    if freed > net and tracker.gauge.account.anchored:
        tracker.gauge.rebase(max(0, before - freed))
    return RecordedEviction(
        tuple(evicted), {one.replaces: one.id for one in replacements if one.replaces is not None}
    )


def _evicted(block: Block, replacement: Block | None, policy: str) -> EvictedBlock:
    return EvictedBlock(
        block.id,
        block.content_type,
        block.tokens,
        "drop" if replacement is None else "mask",
        policy,
        replacement=None if replacement is None else replacement.id,
        replacement_tokens=0 if replacement is None else replacement.tokens,
        turn_added=block.turn,
        tool_name=block.tool_name,
    )
