"""The cascade: steps that reduce the window, low-cost ones first, each run only while the window is too full.

Steps are data. A session runs those that its settings name, in that order; register a step to add a strategy.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from windowpane.core.events import BreakerOpened
from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.model_calls import may_call_model
from windowpane.manager.plans.compaction import DEFAULT_BOUNDS, CompactionBounds
from windowpane.manager.plans.protection import GRADES
from windowpane.manager.settings import SAFETY_NET
from windowpane.manager.step import NOT_DONE, CascadeResult, Step, StepResult
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.eviction import evict, truncate_turn
from windowpane.manager.steps.merging import merge_similar
from windowpane.manager.steps.new_window import roll
from windowpane.manager.steps.note_taking import can_carry_notes, carry_notes
from windowpane.manager.steps.progressive_summarization import summarize_progressively
from windowpane.manager.steps.subagent_delegation import can_delegate, delegate_history
from windowpane.manager.steps.tool_result_summarization import summarize_results

_log = logging.getLogger(__name__)

EngineStep = Step[Engine]


def run_cascade(engine: Engine, limits: WindowLimits, levels: Levels, result: CascadeResult) -> Effect[None]:
    """Run each step that is due, in the order of the session's settings."""
    yield from run_steps(engine.settings.cascade, engine, limits, levels, result)


def run_steps(
    steps: Sequence[str | EngineStep], engine: Engine, limits: WindowLimits, levels: Levels, result: CascadeResult
) -> Effect[None]:
    """Run each of *steps* that is due, in order; one that fails is skipped, and logged once."""
    for entry in steps:
        step = STEPS.get(entry) if isinstance(entry, str) else entry
        if step is None:
            raise ConfigurationError("compression.cascade", f"{entry!r} is not a step", expected=", ".join(STEPS))
        try:
            if step.is_due(engine, levels):
                result.add(step.action, (yield from step.run(engine, limits, levels)))
        except Exception:  # noqa: BLE001 (a policy, summarizer or strategy may be the user's code)
            name = entry if isinstance(entry, str) else step.action
            if name not in engine.reduction.failed_steps:
                engine.reduction.failed_steps.add(name)
                _log.exception("%s failed; the steps after it are tried instead", name)


def _evict(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Merge similar blocks if the policy does so, then evict if the window is still too full."""
    policy = engine.settings.policy
    merged = NOT_DONE
    if policy is not None and policy.merges:
        merged = yield from merge_similar(engine, limits, levels)
    if merged and not merged.shortfall:
        return merged
    least = limits.limit_tokens if _awaits_compaction(engine, levels) else levels.minimum_saving
    evicted = yield from evict(engine, limits, levels, grades=GRADES[:2], minimum_tokens=least)
    if not (merged and evicted):
        return merged or evicted
    return StepResult(
        f"{merged.done}; {evicted.done}", merged.freed_tokens + evicted.freed_tokens, evicted.shortfall
    )


def _awaits_compaction(engine: Engine, levels: Levels) -> bool:
    """Return whether an eviction that misses its target is skipped, so that a summary reads no placeholders."""
    settings = engine.settings
    can_compact = "compaction" in settings.cascade and not engine.reduction.breaker.open
    has_writer = settings.summarizer is not None or may_call_model(engine)
    return can_compact and has_writer and engine.used() < levels.roll


def _evict_hard(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    return evict(engine, limits, levels, grades=GRADES[2:], minimum_tokens=1)


def _evict_anything(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Drop any removable group, so that the call becomes possible."""
    if engine.settings.policy is None:
        return NOT_DONE
    policy = replace(engine.settings.policy, drops="any")
    return (yield from evict(engine, limits, levels, grades=GRADES[2:], minimum_tokens=1, policy=policy))


def _compact(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    return compact_with_breaker(engine, limits, levels, trigger="pressure")


def compact_with_breaker(
    engine: Engine,
    limits: WindowLimits,
    levels: Levels,
    *,
    trigger: str,
    bounds: CompactionBounds = DEFAULT_BOUNDS,
) -> Effect[StepResult]:
    """Compact, unless the circuit breaker is open; report it if it opens now."""
    breaker = engine.reduction.breaker
    was_open = breaker.open
    if not breaker.due(engine.tracker.turn):
        if not was_open:
            engine.tracker.record(BreakerOpened(breaker.reason, breaker.attempts))
        return NOT_DONE
    return (yield from compact(engine, limits, levels, trigger=trigger, bounds=bounds))


def cascade_from_thresholds(thresholds: Mapping[str, float]) -> tuple[str | EngineStep, ...]:
    """Return a cascade whose compression strategies start at given utilizations; others are not used."""
    ordered = sorted(thresholds.items(), key=lambda item: item[1])
    return ("eviction", *(_step_from(ratio, name) for name, ratio in ordered), "roll", *SAFETY_NET)


def _step_from(ratio: float, name: str) -> EngineStep:
    """Return the engine's step from *ratio* on; at the rollover level it runs before the rollover."""
    step = STEPS[name]

    def due(engine: Engine, levels: Levels) -> bool:
        start = levels.evict if engine.limits is None else engine.limits.at(ratio)
        if engine.used() < start:
            return False
        levels = replace(levels, compact=start)
        return step.due(engine, levels) if start >= levels.roll else step.is_due(engine, levels)

    return Step(step.action, due, step.run)


def background_compaction(start_ratio: float | None = None) -> EngineStep:
    """Return the step that compacts after a turn, so that no call has to wait for it.

    *start_ratio* is the configured utilization of compaction; the step is due from there, else from the level of
    compaction, or from the checkpoint level if that is lower.
    """

    def due(engine: Engine, levels: Levels) -> bool:
        if engine.limits is None:
            return False
        levels = levels.above(engine.static_tokens())
        start = levels.compact if start_ratio is None else max(levels.evict, engine.limits.at(start_ratio))
        return engine.used() >= min(start, levels.checkpoint)

    def run(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
        return _compact(engine, limits, levels.above(engine.static_tokens()))

    return Step("compact", due, run)


def _cut(engine: Engine, limits: WindowLimits, _levels: Levels) -> Effect[StepResult]:
    return truncate_turn(engine, target_used=limits.usable_tokens)


def _may_compact(engine: Engine, levels: Levels) -> bool:
    return engine.used() >= levels.compact and not is_compacted_after_turn(engine, levels)


def is_compacted_after_turn(engine: Engine, levels: Levels) -> bool:
    """Return whether the conversation is compacted after the turn and the call fits without that."""
    between = any(step.action == "compact" for step in engine.settings.after_turn)
    red = levels.compact if engine.limits is None else engine.limits.red_tokens
    return between and engine.used() < max(levels.compact, red)


def _worth_evicting(engine: Engine, levels: Levels) -> bool:
    """Below red, a plan that was not worth applying is made again only after the window has grown."""
    used, before = engine.used(), engine.reduction.fruitless_used
    if used < levels.evict:
        return False
    return before is None or used >= levels.compact or used >= before + max(1, levels.minimum_saving // 2)


STEPS: Final[dict[str, EngineStep]] = {
    "eviction": Step("evict", _worth_evicting, _evict),
    "tool_result_summarization": Step(
        "compact",
        lambda engine, levels: may_call_model(engine) and engine.used() >= levels.evict,
        summarize_results,
        skipped_before_rollover=True,
    ),
    "progressive_summarization": Step(
        "compact",
        lambda engine, levels: engine.used() >= levels.evict,
        summarize_progressively,
        skipped_before_rollover=True,
    ),
    "compaction": Step("compact", _may_compact, _compact, skipped_before_rollover=True),
    "note_taking": Step("compact", can_carry_notes, carry_notes, skipped_before_rollover=True),
    "subagent_delegation": Step(
        "compact",
        lambda engine, levels: can_delegate(engine, levels) and not is_compacted_after_turn(engine, levels),
        delegate_history,
        skipped_before_rollover=True,
    ),
    "roll": Step("roll", lambda engine, levels: engine.used() >= levels.roll, roll),
    "hard_eviction": Step("evict", lambda engine, levels: engine.used() > levels.ceiling, _evict_hard),
    "truncation": Step("evict", lambda engine, levels: engine.used() > levels.ceiling, _cut),
    "last_eviction": Step("evict", lambda engine, levels: engine.used() > levels.ceiling, _evict_anything),
}
"""Every step by name. The default order is that of the settings."""
