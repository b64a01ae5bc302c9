"""The effect of a recorded compaction on the window: removed blocks, replacement, tokens before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import ContentCompressed
from windowpane.core.protocols import TokenCounter
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block, tokens_by_component
from windowpane.sources.transcripts.records import Compacted

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
