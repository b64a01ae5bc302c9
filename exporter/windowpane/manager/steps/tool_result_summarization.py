"""Summarizes single tool results with a language model: between masking them and a compaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.core.events import ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import Effect, compute
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.model_calls import NO_CALLS, LabeledText, ModelAnswer, shorten_texts, texts_per_call
from windowpane.manager.plans.acceptance import ProposedSummary, reply_rejection_reason, sampled_fidelity
from windowpane.manager.plans.prompts import TOOL_RESULT
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.snapshot import groups_of
from windowpane.manager.step import NOT_DONE, StepResult
from windowpane.manager.steps.eviction import archive_original

RESULTS_A_CALL: Final = 12
"""Results that one call summarizes, at most; one call is made before a call of the agent."""
SHARE: Final = 0.25
"""Share of the original that a summary may take."""
SHOWN_CHARACTERS: Final = 80_000
"""Characters of results that one call shows, at most."""
STRATEGY: Final = "tool_result_summarization"


def summarize_results(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Replace the largest tool results by a model's summary of them, as many as the target requires, in one call.

    Skipped are results that are never removed, were shortened before, or whose summary was refused before.
    """
    batch = _batch(engine, limits, levels)
    if not batch:
        return NOT_DONE
    texts = [
        LabeledText(
            f"Output of {block.tool_name or 'a tool'}", (block.text or "")[:SHOWN_CHARACTERS], _bound(block)
        )
        for block in batch
    ]
    started = engine.timer()
    shortened = yield from shorten_texts(engine, TOOL_RESULT, texts)
    seconds, answer = engine.timer() - started, shortened.answer
    freed = count = 0
    for block, summary in zip(batch, shortened.texts or [""], strict=False):
        saved = yield from _replace(engine, block, summary, answer, seconds, checks=len(batch))
        if answer.reply.failed:
            break
        answer, seconds = ModelAnswer(answer.reply, NO_CALLS), 0.0  # one call, reported with the first result
        freed += saved
        count += saved > 0
    if not freed:
        return NOT_DONE
    return StepResult(
        f"summarised {count} tool results, {freed:,} tokens freed", freed, engine.used() > levels.target
    )


def _bound(block: Block) -> int:
    return int(SHARE * block.tokens)


def _batch(engine: Engine, limits: WindowLimits, levels: Levels) -> list[Block]:
    """Return the largest results that together reach the target, as far as one call may show them."""
    wanted = engine.raw(engine.used()) - engine.raw(levels.target)
    room = SHOWN_CHARACTERS
    batch: list[Block] = []
    for block in _largest(engine, limits):
        size = len(block.text or "")
        if wanted <= 0 or len(batch) == texts_per_call(engine, RESULTS_A_CALL):
            break
        if batch and size > room:
            continue
        batch.append(block)
        room -= size
        wanted -= block.tokens - _bound(block)
    return batch


def _largest(engine: Engine, limits: WindowLimits) -> Sequence[Block]:
    snapshot = engine.snapshot(limits)
    fixed = never_removed(snapshot, groups_of(snapshot.items))
    candidates = [
        block
        for block in engine.tracker.window
        if block.content_type == "tool_result"
        and block.text
        and block.tokens > engine.settings.summarize_tokens
        and block.replaces is None
        and not _shows_images(engine, block)
        and block.group not in fixed
        and not engine.reduction.refused.covers(STRATEGY, [block])
    ]
    return sorted(candidates, key=lambda block: -block.tokens)


def _shows_images(engine: Engine, block: Block) -> bool:
    """Return whether the result has images, which a text model would not see."""
    payload = engine.payloads.get(block.id)
    return payload is not None and bool(payload.media)


def _replace(
    engine: Engine, block: Block, summary: str, answer: ModelAnswer, seconds: float, *, checks: int
) -> Effect[int]:
    """Replace one result by its summary; return the tokens freed, 0 if the summary is rejected."""
    tracker = engine.tracker
    handle = yield from archive_original(engine, block)
    text = f"{summary}\n[summary; original: {handle}]" if handle else f"{summary}\n[summary]"
    short = tracker.make_shortened(
        block, text, engine.counter.count(text), count_source=engine.counter.source, handle=handle
    )
    fidelity = None
    if engine.settings.evaluate is not None and not answer.failure:
        fidelity = yield from compute(lambda: sampled_fidelity([block], short, checks=checks))
    if block.id not in tracker.window:
        return 0
    proposed = ProposedSummary(summary, block.tokens, short.tokens, block.tokens, short.tokens, fidelity=fidelity)
    reason = answer.failure or reply_rejection_reason(summary, proposed)
    event = tracker.compress(
        ContentCompressed(
            strategy=STRATEGY,
            trigger="pressure",
            outcome="failed" if answer.reply.failed else "rejected" if reason else "accepted",
            tokens_before=block.tokens,
            tokens_after=short.tokens,
            removed=(block.id,),
            results=() if reason else (short.id,),
            removed_by_component={"tool_results": block.tokens},
            model_calls=answer.use.calls,
            cost_dollars=answer.use.cost_dollars,
            duration_seconds=seconds,
            method=engine.settings.model,
            reason=reason,
        ),
        () if reason else (short,),
    )
    if reason:
        if not answer.reply.failed and engine.reduction.answers_in_parts:
            engine.reduction.refused.add(STRATEGY, [block])
        return 0
    engine.transfer(block, short)
    engine.record_fidelity([block], [short], recoverable=handle is not None, of=event.event_id)
    return block.tokens - short.tokens
