"""Enforces the budgets of components: each one that exceeds its budget is reduced in its own way.

Tool results: the oldest are summarized by a model, then masked. Memory: the stalest is removed. History:
compacted. System prompt and tools cannot be reduced and are only reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import Component
from windowpane.effects.commands import Effect
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.policies import Policy
from windowpane.manager.plans.protection import GRADES
from windowpane.manager.state import StuckComponent
from windowpane.manager.status import Action
from windowpane.manager.step import NOT_DONE, CascadeResult, StepResult
from windowpane.manager.steps.cascade import compact_with_breaker, is_compacted_after_turn
from windowpane.manager.steps.eviction import evict
from windowpane.manager.steps.tool_result_summarization import summarize_results

ORDER: Final[tuple[Component, ...]] = ("tool_results", "memory_injection", "message_history")
GROWTH: Final = 1.05
RETRY_TURNS: Final = 4
"""A component that could not be reduced is retried after this growth, or this many turns."""
RESULTS: Final = Policy("tool_results", {"recency": 0.6, "type_ttl": 0.4}, only=frozenset({"tool_result"}))
MEMORY: Final = Policy(
    "memory_injection",
    {"type_ttl": 0.6, "reference_frequency": 0.2, "recency": 0.2},
    drops="any",
    masks=False,
    only=frozenset({"memory_injection"}),
)


def enforce(
    engine: Engine, limits: WindowLimits, levels: Levels, result: CascadeResult, components: Iterable[Component]
) -> Effect[None]:
    """Reduce each of *components* that is over its budget, whatever the zone."""
    for component in components:
        if _excess(engine, component) <= 0:
            continue
        for action, outcome in (yield from _reduce(engine, limits, levels, component)):
            result.add(action, outcome)
        engine.reduction.stuck.pop(component, None)
        if _excess(engine, component) > 0:
            engine.reduction.stuck[component] = StuckComponent(_used(engine, component), engine.tracker.turn)


def over_budget(engine: Engine, levels: Levels, *, between: bool = False) -> list[Component]:
    """Return the components to reduce before a call, or *between* turns: history, if it is compacted there."""
    if engine.settings.enforce != "component":
        return []
    waits = is_compacted_after_turn(engine, levels)
    return [
        component
        for component in ORDER
        if _excess(engine, component) > 0
        and not _is_stuck(engine, component)
        and between == (waits and component == "message_history")
    ]


def _is_stuck(engine: Engine, component: Component) -> bool:
    stuck = engine.reduction.stuck.get(component)
    if stuck is None:
        return False
    return (
        _used(engine, component) < stuck.used_tokens * GROWTH and engine.tracker.turn < stuck.turn + RETRY_TURNS
    )


def _used(engine: Engine, component: Component) -> int:
    return engine.tracker.window.tokens_by_component[component]


def _excess(engine: Engine, component: Component) -> int:
    budget = None if engine.budget is None else engine.budget.budget_tokens(component)
    return 0 if budget is None else _used(engine, component) - budget


def _reduce(
    engine: Engine, limits: WindowLimits, levels: Levels, component: Component
) -> Effect[list[tuple[Action, StepResult]]]:
    done: list[tuple[Action, StepResult]] = []
    target = max(0, engine.used() - _excess(engine, component))
    aimed = replace(levels, target=target)
    if component == "message_history":
        return [("compact", (yield from compact_with_breaker(engine, limits, aimed, trigger="budget")))]
    if component == "tool_results" and engine.settings.model and not engine.reduction.breaker.open:
        done.append(("compact", (yield from summarize_results(engine, limits, aimed))))
    excess = _excess(engine, component)
    outcome = NOT_DONE
    if excess > 0 and engine.settings.policy is not None:
        outcome = yield from evict(
            engine,
            limits,
            levels,
            grades=GRADES,
            minimum_tokens=1,
            target_used=max(0, engine.used() - excess),
            policy=RESULTS if component == "tool_results" else MEMORY,
        )
    return [*done, ("evict", outcome)]
