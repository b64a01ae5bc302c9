"""Compacts the conversation: archives the removed blocks, has a summary written, and replaces them by it.

A language model may write the summary, in two attempts, each of which has to pass the acceptance check. Without a
model, or if it fails, the extractive summarizer writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import BreakerOpened, ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import COMPONENT_OF, Component
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import ArchiveOriginals, CompactionProposal, ConfirmCompaction, Effect
from windowpane.fidelity.facts import extract_facts
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.acceptance import rejection_reason
from windowpane.manager.plans.compaction import DEFAULT_BOUNDS, CompactionBounds, CompactionPlan, plan_compaction
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.truncation import middle_out
from windowpane.manager.step import NOT_DONE, StepResult
from windowpane.manager.steps.eviction import REPLANS
from windowpane.manager.steps.summary import (
    COMPACTION_WRITER,
    Draft,
    SummaryInput,
    SummaryWriter,
    proposed_summary,
    retained_by,
)

OVERFLOW: Final = "overflow"
"""Trigger of a compaction after the provider refused the call."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A plan with its summary."""

    source: SummaryInput
    draft: Draft

    @property
    def ids(self) -> set[str]:
        return {block.id for block in self.source.plan.removed}


def is_summary_pending(engine: Engine, levels: Levels) -> bool:
    """Return whether a summary is being written and the call fits without it; its blocks must stay until then."""
    return engine.reduction.compactions_running > 0 and engine.used() < levels.roll


def compact(
    engine: Engine,
    limits: WindowLimits,
    levels: Levels,
    *,
    trigger: str,
    bounds: CompactionBounds = DEFAULT_BOUNDS,
    writer: SummaryWriter = COMPACTION_WRITER,
) -> Effect[StepResult]:
    """Replace the older conversation by a summary; reports acceptance or rejection, sizes and fidelity.

    If the window changes while the summary is written, the plan is made again; the summary is used if the new
    plan still removes all blocks it covers, and only those are removed. While one summary is being written, no
    other is started unless the window overflowed or is about to.
    """
    if trigger != OVERFLOW and is_summary_pending(engine, levels):
        return NOT_DONE
    engine.reduction.compactions_running += 1
    try:
        return (yield from _compact(engine, limits, levels, trigger=trigger, bounds=bounds, writer=writer))
    finally:
        engine.reduction.compactions_running -= 1


def _compact(
    engine: Engine,
    limits: WindowLimits,
    levels: Levels,
    *,
    trigger: str,
    bounds: CompactionBounds,
    writer: SummaryWriter,
) -> Effect[StepResult]:
    started = engine.timer()
    made: _Made | None = None
    for _ in range(REPLANS):
        target = engine.raw(levels.target)
        plan = plan_compaction(engine.snapshot(limits), target, bounds)
        if plan is None or (made is None and _is_refused(engine, plan, writer)):
            return NOT_DONE
        if made is None or not made.ids <= {block.id for block in plan.removed}:
            if made is not None and engine.used() <= levels.target:
                return StepResult()
            if made is None and not (yield from _is_wanted(engine, plan, trigger, writer)):
                return NOT_DONE
            made = yield from _make(engine, plan, target, bounds=bounds, writer=writer)
            if engine.tracker.window.version != plan.version:
                continue
        return _apply(engine, made, trigger=trigger, writer=writer, started=started)
    return NOT_DONE


def _is_refused(engine: Engine, plan: CompactionPlan, writer: SummaryWriter) -> bool:
    """Return whether a summary of this content was refused before and nothing else can write one."""
    if writer.strategy == "compaction" and engine.settings.summarizer is not None:
        return False
    return engine.reduction.refused.covers(writer.strategy, plan.removed)


def _is_wanted(engine: Engine, plan: CompactionPlan, trigger: str, writer: SummaryWriter) -> Effect[bool]:
    """Return whether no listener objects."""
    if not engine.reduction.has_callbacks:
        return True
    reply = yield ConfirmCompaction(
        CompactionProposal(writer.strategy, trigger, plan.removed_tokens, plan.summary_tokens, len(plan.removed))
    )
    return reply.value is not False


def _make(
    engine: Engine, plan: CompactionPlan, target: int, *, bounds: CompactionBounds, writer: SummaryWriter
) -> Effect[_Made]:
    """Archive the originals and write the summary."""
    facts = extract_facts(plan.removed, engine.readings.read)
    handle = None
    if engine.settings.archive:
        handle = handle_of(f"c{plan.removed[0].id[1:]}")
        text = "\n\n".join(_archived(plan.removed))
        reply = yield ArchiveOriginals(((handle, text), *_originals(plan.removed)))
        handle = None if reply.failed else handle
    source = SummaryInput(plan, facts, handle, target, bounds.by_model)
    draft = yield from writer.draft(engine, source)
    if not writer.required:
        draft = replace(draft, retained=(yield from retained_by(engine, source, draft.text)))
    return _Made(source, draft)


def _archived(blocks: Sequence[Block]) -> list[str]:
    return [_labeled(block) for block in blocks if block.text]


def _labeled(block: Block) -> str:
    name = f" of {block.tool_name}" if block.tool_name else ""
    return f"[turn {block.turn}, {block.content_type}{name}]\n{block.text}"


def _originals(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    """User messages are archived under their own handles, since one may be replaced by a shortened form."""
    return [
        (handle_of(block.id), block.text)
        for block in blocks
        if block.content_type == "user_message" and block.text and block.handle is None
    ]


def _apply(engine: Engine, made: _Made, *, trigger: str, writer: SummaryWriter, started: float) -> StepResult:
    source, draft = made.source, made.draft
    plan, handle, target = source.plan, source.handle, source.target_tokens
    tracker = engine.tracker
    proposed = proposed_summary(
        engine, source, draft.text, retained=draft.retained, fidelity_floor=writer.fidelity_floor
    )
    reason = rejection_reason(proposed)
    results = () if reason else tuple(_results(engine, plan, draft.text, handle))
    by_component: dict[Component, int] = {}
    for block in plan.removed:
        component = COMPONENT_OF[block.content_type]
        by_component[component] = by_component.get(component, 0) + block.tokens
    after = sum(block.tokens for block in results)
    event = tracker.compress(
        ContentCompressed(
            strategy=writer.strategy,
            trigger=trigger,
            outcome="rejected" if reason else "accepted",
            tokens_before=plan.removed_tokens,
            tokens_after=after if not reason else engine.counter.count(draft.text),
            removed=tuple(block.id for block in plan.removed),
            results=tuple(block.id for block in results),
            removed_by_component=by_component,
            model_calls=draft.use.calls,
            cost_dollars=draft.use.cost_dollars,
            duration_seconds=engine.timer() - started,
            method=draft.method,
            reason=reason or draft.rejected,
        ),
        results,
    )
    if reason:
        if writer.by_model:
            engine.reduction.refused.add(writer.strategy, plan.removed)
        if writer.required and engine.reduction.breaker.failed():
            tracker.record(BreakerOpened(engine.reduction.breaker.reason, engine.reduction.breaker.attempts))
        return NOT_DONE
    engine.forget(plan.removed)
    engine.reduction.breaker.succeeded(tracker.turn)
    engine.reduction.compacted_turn = tracker.turn
    engine.record_fidelity(plan.removed, list(tracker.window), recoverable=handle is not None, of=event.event_id)
    freed = plan.removed_tokens - after
    done = f"compacted {len(plan.removed)} blocks into a summary ({draft.method}), {freed:,} tokens freed"
    return StepResult(done, freed, engine.raw(engine.used()) > target)


def _results(engine: Engine, plan: CompactionPlan, text: str, handle: str | None) -> list[Block]:
    source = engine.counter.source
    results = [
        engine.tracker.make_replacement(
            "summary",
            text,
            engine.counter.count(text),
            replaces=plan.removed[0].id,
            count_source=source,
            handle=handle,
        )
    ]
    user = plan.partial_message
    if user is not None:
        own = (user.handle or handle_of(user.id)) if handle else None
        note = f", original: {own}" if own else ""
        short = middle_out(user.text or "", plan.partial_tokens, engine.counter, note=note)
        tokens = engine.counter.count(short)
        if short and tokens < user.tokens:
            results.append(
                engine.tracker.make_replacement(
                    "user_message", short, tokens, replaces=user.id, count_source=source, handle=own
                )
            )
    return results
