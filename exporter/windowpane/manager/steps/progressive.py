"""Progressive summarization: shortens blocks by their age, with or without a language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windowpane.core.events import BreakerOpened, ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import COMPONENT_OF
from windowpane.effects.commands import CallModel, Effect
from windowpane.effects.model_calls import fenced
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.progressive import (
    LEVELS,
    PROMPT,
    AgedBlock,
    plan_progressive,
    rejection_reason,
    shorten,
)
from windowpane.manager.steps.eviction import archive_original
from windowpane.manager.steps.step import NOT_DONE, StepResult

BLOCKS_A_TURN: Final = 12
"""Blocks shortened before one call of the agent, at most."""
MODEL_BLOCKS_A_TURN: Final = 3
"""Blocks shortened by the model; others, and those it fails at, are shortened to their facts."""
HANDLE_TOKENS: Final = 60
"""A shorter form of at least this size names the handle of its original."""


@dataclass(frozen=True, slots=True)
class _Draft:
    text: str
    method: str
    model_calls: int = 0


def summarize_progressively(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Shorten content by its age, oldest first, until the target is reached; texts are cached per level."""
    freed = count = calls = 0
    plan = plan_progressive(engine.snapshot(limits), engine.shortened, engine.raw(levels.target))
    for aged in plan.aged[:BLOCKS_A_TURN]:
        by_model = calls < MODEL_BLOCKS_A_TURN and not engine.reduction.breaker.open
        draft = yield from _draft(engine, aged, by_model=by_model)
        calls += draft.model_calls
        saved = yield from _replace(engine, aged, draft)
        freed += saved
        count += saved > 0
    if not freed:
        return NOT_DONE
    done = f"shortened {count} older blocks by their age, {freed:,} tokens freed"
    return StepResult(done, freed, engine.used() > levels.target)


def _draft(engine: Engine, aged: AgedBlock, *, by_model: bool) -> Effect[_Draft]:
    cached = engine.shortened.text(aged)
    if cached is not None:
        return _Draft(cached, "cached")
    calls = 0
    if engine.settings.model and by_model:
        calls = 1
        system = PROMPT.format(tokens=aged.max_tokens, level=LEVELS[aged.level].name)
        reply = yield CallModel(system, fenced([aged.original]))
        text = "" if reply.failed else f"[{LEVELS[aged.level].name}] {str(reply.value or '').strip()}"
        if reply.failed and engine.reduction.breaker.failed():
            engine.tracker.record(
                BreakerOpened(engine.reduction.breaker.reason, engine.reduction.breaker.attempts)
            )
        if text and engine.counter.count(text) <= aged.max_tokens:
            engine.shortened.write(aged, text)
            return _Draft(text, engine.settings.model, calls)
    text = shorten(aged, engine.counter)
    engine.shortened.write(aged, text)
    return _Draft(text, "extractive", calls)


def _replace(engine: Engine, aged: AgedBlock, draft: _Draft) -> Effect[int]:
    """Replace the block by the shorter form; return the tokens freed, 0 if it is rejected."""
    tracker, block = engine.tracker, aged.block
    handle = yield from archive_original(engine, block, root=aged.root, text=aged.original)
    if block.id not in tracker.window:
        return 0
    with_handle = f"{draft.text} [original: {handle}]"
    names_handle = handle is not None and aged.max_tokens >= HANDLE_TOKENS
    names_handle = names_handle and engine.counter.count(with_handle) < block.tokens
    text = with_handle if names_handle else draft.text
    reason = rejection_reason(aged, text, engine.counter)
    replacement = tracker.make_shortened(
        block, text, engine.counter.count(text), count_source=engine.counter.source, handle=handle
    )
    event = tracker.compress(
        ContentCompressed(
            strategy="progressive_summarization",
            trigger="age",
            outcome="rejected" if reason else "accepted",
            tokens_before=block.tokens,
            tokens_after=replacement.tokens,
            removed=(block.id,),
            results=() if reason else (replacement.id,),
            removed_by_component={COMPONENT_OF[block.content_type]: block.tokens},
            model_calls=draft.model_calls,
            method=draft.method,
            reason=reason,
        ),
        () if reason else (replacement,),
    )
    if reason:
        return 0
    engine.shortened.replaced(aged, replacement)
    engine.transfer(block, replacement)
    engine.record_fidelity([block], [replacement], recoverable=names_handle, facts=None, of=event.event_id)
    return block.tokens - replacement.tokens
