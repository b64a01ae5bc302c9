"""What a recorded compaction did to the window: what left, what stands for it, and how much of it was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import ContentCompressed
from windowpane.core.protocols import TokenCounter
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import COMPONENT_OF, STANDING_TYPES, Component
from windowpane.core.window.blocks import Block
from windowpane.sources.records import Compacted

SEEN_RATIO: Final = 0.8
"""Share of what must have left whose text the recording has to show for it to be counted instead of totals."""
MAXIMUM_TRIGGER: Final = 64


@dataclass(frozen=True, slots=True)
class Replacement:
    """A compaction as the tracker takes it."""

    event: ContentCompressed
    results: tuple[Block, ...]
    removed: tuple[Block, ...]
    judged: tuple[Block, ...]
    """What left, and one block without text for what left unseen."""

    @property
    def seen_ratio(self) -> float:
        """Share of what left whose text was recorded, 0 to 1."""
        total = sum(block.tokens for block in self.judged)
        return sum(block.tokens for block in self.judged if block.text) / total if total else 0.0


def replacement_of(
    record: Compacted, tracker: SessionTracker, *, kept: frozenset[str], counter: TokenCounter
) -> Replacement:
    """Everything but system prompt, tool definitions and what the recording says was kept is replaced.

    Where both the text that left and the summary are there, they are counted (`scope=content`). Where most of
    what left was never seen, or the summary was not recorded, only the recording's totals of the whole window are
    true (`scope=window`).
    """
    removed = tuple(
        block for block in tracker.window if block.content_type not in STANDING_TYPES and block.id not in kept
    )
    seen = sum(block.tokens for block in removed)
    used = tracker.gauge.account.used(tracker.window.tokens)
    before = record.tokens_before if record.tokens_before is not None else used
    summary_tokens = counter.count(record.summary) if record.summary else 0
    staying = tracker.window.tokens - seen
    if not record.summary and record.tokens_after is not None:
        summary_tokens = max(0, record.tokens_after - staying)
    calibrated = round(seen * tracker.gauge.account.calibration)
    after = record.tokens_after
    if after is None:
        after = max(0, before - calibrated + summary_tokens)
    left = max(seen, before - after + summary_tokens)
    by_content = bool(record.summary) and seen > 0 and calibrated >= SEEN_RATIO * left
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
        removed_by_component=_by_component(removed),
        duration_seconds=record.duration_seconds,
        method="agent",
    )
    return Replacement(event, results, removed, _judged(removed, unseen=left - seen))


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


def _by_component(blocks: tuple[Block, ...]) -> dict[Component, int]:
    sums: dict[Component, int] = {}
    for block in blocks:
        component = COMPONENT_OF[block.content_type]
        sums[component] = sums.get(component, 0) + block.tokens
    return sums


def _judged(removed: tuple[Block, ...], *, unseen: int) -> tuple[Block, ...]:
    if unseen <= 0:
        return removed
    if removed:
        return (*removed, replace(removed[-1], id="unseen", tokens=unseen, text=None, digest="", chars=0))
    return (Block("unseen", "unattributed", unseen, 0, "unseen", 0, "", 0, "estimate"),)
