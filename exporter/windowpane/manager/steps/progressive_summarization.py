"""Progressive summarization: shortens blocks by their age, with or without a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import COMPONENT_OF
from windowpane.effects.commands import Effect
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.model_calls import (
    NO_CALLS,
    LabeledText,
    ModelUse,
    may_call_model,
    shorten_texts,
    texts_per_call,
)
from windowpane.manager.plans.acceptance import states_nothing
from windowpane.manager.plans.progressive_summarization import (
    EXTRACTIVE,
    LEVELS,
    PROMPT,
    AgedBlock,
    plan_progressive,
    rejection_reason,
    shorten,
)
from windowpane.manager.step import NOT_DONE, StepResult
from windowpane.manager.steps.eviction import archive_original

BLOCKS_A_TURN: Final = 12
"""Blocks shortened before one call of the agent, at most: in one call of the model, or to their facts."""
SHOWN_CHARACTERS: Final = 80_000
"""Characters that the call shows, at most; texts beyond it are shortened to their facts."""
HANDLE_TOKENS: Final = 60
"""A shorter form of at least this size names the handle of its original."""


@dataclass(frozen=True, slots=True)
class _Draft:
    text: str
    method: str
    use: ModelUse = NO_CALLS


def summarize_progressively(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Shorten content by its age, oldest first, until the target is reached; texts are cached per level."""
    freed = count = 0
    plan = plan_progressive(engine.snapshot(limits), engine.shortened, engine.raw(levels.target))
    due = plan.aged[:BLOCKS_A_TURN]
    use = yield from _write_by_model(engine, due)
    for aged in due:
        draft = _draft(engine, aged)
        saved = yield from _replace(engine, aged, replace(draft, use=use))
        use = NO_CALLS  # one call, reported with the first block
        freed += saved
        count += saved > 0
    if not freed:
        return NOT_DONE
    done = f"shortened {count} older blocks by their age, {freed:,} tokens freed"
    return StepResult(done, freed, engine.used() > levels.target)


def _write_by_model(engine: Engine, due: Sequence[AgedBlock]) -> Effect[ModelUse]:
    """Have the model write the forms that are not cached, in one call; those that are too long are not used."""
    room = SHOWN_CHARACTERS
    batch: list[AgedBlock] = []
    for aged in due:
        if len(batch) == texts_per_call(engine, BLOCKS_A_TURN):
            break
        if engine.shortened.text(aged) is None and len(aged.original) <= room:
            batch.append(aged)
            room -= len(aged.original)
    if not batch or not may_call_model(engine):
        return NO_CALLS
    texts = [
        LabeledText(f"Content to shorten ({LEVELS[aged.level].name})", aged.original, aged.max_tokens)
        for aged in batch
    ]
    shortened = yield from shorten_texts(engine, PROMPT, texts)
    for aged, text in zip(batch, shortened.texts, strict=False):
        labeled = f"[{LEVELS[aged.level].name}] {text}"
        if not states_nothing(text) and engine.counter.count(labeled) <= aged.max_tokens:
            engine.shortened.write(aged, labeled, engine.settings.model)
    return shortened.answer.use


def _draft(engine: Engine, aged: AgedBlock) -> _Draft:
    cached = engine.shortened.text(aged)
    if cached is not None:
        return _Draft(cached.text, cached.author)
    text = shorten(aged, engine.counter)
    engine.shortened.write(aged, text, EXTRACTIVE)
    return _Draft(text, EXTRACTIVE)


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
            model_calls=draft.use.calls,
            cost_dollars=draft.use.cost_dollars,
            method=draft.method,
            reason=reason,
        ),
        () if reason else (replacement,),
    )
    if reason:
        return 0
    engine.shortened.replaced(aged, replacement)
    engine.transfer(block, replacement)
    engine.record_fidelity([block], [replacement], recoverable=names_handle, of=event.event_id)
    return block.tokens - replacement.tokens
