"""Summarizes single tool results with a language model: between masking them and compacting everything."""

from __future__ import annotations

from typing import Final

from windowpane.core.events import BreakerOpened, ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import CallModel, CommandResult, Effect
from windowpane.effects.model_calls import fenced
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.prompts import TOOL_RESULT
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.snapshot import groups_of
from windowpane.manager.steps.eviction import archive_original
from windowpane.manager.steps.step import NOT_DONE, StepResult

RESULTS_A_TURN: Final = 3
"""Maximum model calls before one call of the agent."""
SHARE: Final = 0.25
"""Share of the original that a summary may take."""
SHOWN_CHARACTERS: Final = 80_000


def summarize_results(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Replace the largest tool results by a model's summary of them, until the target is reached.

    Results that are never removed or were shortened before are skipped. A model that fails is not called again in
    this turn, and the failure counts against the circuit breaker.
    """
    freed = count = 0
    failures = engine.reduction.breaker.attempts
    for block in _largest(engine, limits)[:RESULTS_A_TURN]:
        if engine.used() <= levels.target or engine.reduction.breaker.attempts > failures:
            break
        saved = yield from _summarize(engine, block)
        freed += saved
        count += saved > 0
    if not freed:
        return NOT_DONE
    return StepResult(
        f"summarised {count} tool results, {freed:,} tokens freed", freed, engine.used() > levels.target
    )


def _largest(engine: Engine, limits: WindowLimits) -> list[Block]:
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
    ]
    return sorted(candidates, key=lambda block: -block.tokens)


def _shows_images(engine: Engine, block: Block) -> bool:
    """Return whether the result has images, which a text model would not see."""
    payload = engine.payloads.get(block.id)
    return payload is not None and bool(payload.media)


def _summarize(engine: Engine, block: Block) -> Effect[int]:
    """Replace one result by its summary; return the tokens freed, 0 if the summary is rejected."""
    tracker, started = engine.tracker, engine.timer()
    limit = int(SHARE * block.tokens)
    reply = yield CallModel(TOOL_RESULT.format(tokens=limit), fenced([(block.text or "")[:SHOWN_CHARACTERS]]))
    handle = yield from archive_original(engine, block)
    if block.id not in tracker.window:
        return 0
    summary = "" if reply.failed else str(reply.value or "").strip()
    text = f"{summary}\n[summary; original: {handle}]" if handle else f"{summary}\n[summary]"
    short = tracker.make_shortened(
        block, text, engine.counter.count(text), count_source=engine.counter.source, handle=handle
    )
    reason = _refusal(reply, summary, smaller=short.tokens < block.tokens)
    event = tracker.compress(
        ContentCompressed(
            strategy="tool_result_summarization",
            trigger="pressure",
            outcome="failed" if reply.failed else "rejected" if reason else "accepted",
            tokens_before=block.tokens,
            tokens_after=short.tokens,
            removed=(block.id,),
            results=() if reason else (short.id,),
            removed_by_component={"tool_results": block.tokens},
            model_calls=1,
            duration_seconds=engine.timer() - started,
            method=engine.settings.model,
            reason=reason,
        ),
        () if reason else (short,),
    )
    if reply.failed and engine.reduction.breaker.failed():
        tracker.record(BreakerOpened(engine.reduction.breaker.reason, engine.reduction.breaker.attempts))
    if reason:
        return 0
    engine.transfer(block, short)
    engine.record_fidelity([block], [short], recoverable=handle is not None, facts=None, of=event.event_id)
    return block.tokens - short.tokens


def _refusal(reply: CommandResult, summary: str, *, smaller: bool) -> str:
    """Return why a summary is rejected; empty if it is not."""
    if reply.failed:
        return f"model failed: {type(reply.error).__name__}"
    if not summary:
        return "empty"
    return "" if smaller else "not smaller"
