"""The effect of a recorded compaction on the window: removed blocks, replacement, tokens before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from windowpane.core.events import BlocksEvicted, ContentCompressed, EvictedBlock
from windowpane.core.protocols import TokenCounter
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block, tokens_by_component
from windowpane.sources.transcripts.records import Compacted, ContentRemoved

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
    after = None
    if freed > net and tracker.gauge.account.anchored:
        after = max(0, tracker.gauge.account.used(tracker.window.tokens) - freed)
    eviction = BlocksEvicted(record.policy, tuple(evicted), max(seen, freed), freed)
    tracker.evict(eviction, replacements, at, window_tokens=after)
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


SEEN_RATIO: Final = 0.8
"""Share of the removed tokens whose text must be recorded for content to be counted instead of totals."""
MAXIMUM_TRIGGER: Final = 64


@dataclass(frozen=True, slots=True)
class RecordedCompaction:
    """A compaction in the form that the tracker records."""

    event: ContentCompressed
    results: tuple[Block, ...]
    removed: tuple[Block, ...]
    judged: tuple[Block, ...]
    """The removed blocks, and one block without text for removed content that was not recorded."""

    @property
    def seen_ratio(self) -> float:
        """Share of the removed tokens whose text was recorded, 0 to 1."""
        total = sum(block.tokens for block in self.judged)
        return sum(block.tokens for block in self.judged if block.text) / total if total else 0.0


def recorded_compaction(
    record: Compacted, tracker: SessionTracker, *, retained: frozenset[str], counter: TokenCounter
) -> RecordedCompaction:
    """Return *record* as a replacement of all blocks except system prompt, tool definitions and *retained* ones.

    Where both the removed text and the summary were recorded, they are counted (`scope=content`). Where most of
    the removed text was not, or the summary was not, only the recording's totals of the window hold
    (`scope=window`).
    """
    removed = tuple(
        block for block in tracker.window if block.content_type not in STATIC_TYPES and block.id not in retained
    )
    seen = sum(block.tokens for block in removed)
    used = tracker.gauge.account.used(tracker.window.tokens)
    before = record.tokens_before if record.tokens_before is not None else used
    summary_tokens = counter.count(record.summary) if record.summary else 0
    remaining = tracker.window.tokens - seen
    if not record.summary and record.tokens_after is not None:
        summary_tokens = max(0, record.tokens_after - remaining)
    calibrated = round(seen * tracker.gauge.account.calibration)
    after = record.tokens_after
    if after is None:
        after = max(0, before - calibrated + summary_tokens)
    removed_tokens = max(seen, before - after + summary_tokens)
    by_content = bool(record.summary) and seen > 0 and calibrated >= SEEN_RATIO * removed_tokens
    results = _results(record, tracker, removed, summary_tokens, counter)
    event = ContentCompressed(
        strategy="compaction",
        trigger=record.trigger[:MAXIMUM_TRIGGER],
        outcome="accepted",
        tokens_before=seen if by_content else before,
        tokens_after=summary_tokens if by_content else after,
        scope="content" if by_content else "window",
        removed=tuple(block.id for block in removed),
        results=tuple(block.id for block in results),
        removed_by_component=tokens_by_component(removed),
        duration_seconds=record.duration_seconds,
        method="agent",
    )
    return RecordedCompaction(event, results, removed, _judged(removed, unseen=removed_tokens - seen))


def _results(
    record: Compacted,
    tracker: SessionTracker,
    removed: tuple[Block, ...],
    tokens: int,
    counter: TokenCounter,
) -> tuple[Block, ...]:
    if not record.summary and not tokens:
        return ()
    return (
        tracker.make_replacement(
            "summary",
            record.summary,
            tokens,
            replaces=removed[0].id if removed else None,
            count_source=counter.source if record.summary else "estimate",
        ),
    )


def _judged(removed: tuple[Block, ...], *, unseen: int) -> tuple[Block, ...]:
    if unseen <= 0:
        return removed
    if removed:
        return (*removed, replace(removed[-1], id="unseen", tokens=unseen, text=None, digest="", chars=0))
    return (Block("unseen", "unattributed", unseen, 0, "unseen", 0, "", 0, "estimate"),)
