"""The full status of a session: every component against its budget, and when each is used up."""

from __future__ import annotations

from dataclasses import replace

from windowpane.core.vocabulary import COMPONENTS, Component
from windowpane.manager.engine import Engine
from windowpane.manager.status import ComponentStatus, Status


def full_status(engine: Engine, *, audit_events: int) -> Status:
    """The window at the last measurement; before the first, as it is."""
    status = engine.status()
    parts = status.used_by_component or dict(engine.tracker.window.tokens_by_component)
    burn = engine.tracker.gauge.growth.burn_by_component()
    limits = engine.limits
    return replace(
        status,
        limit_tokens=None if limits is None else limits.limit_tokens,
        used_by_component=parts,
        components={
            component: _component(engine, component, parts[component], burn.get(component))
            for component in COMPONENTS
        },
        output_tokens=None if limits is None else limits.reserved_tokens,
        breaker_open=engine.breaker.open,
        audit_events=audit_events,
        subtasks=dict(engine.task.subtasks),
    )


def _component(engine: Engine, component: Component, used: int, burn: float | None) -> ComponentStatus:
    budget = engine.budget
    tokens = None if budget is None else budget.budget_tokens(component)
    if budget is None or not tokens:
        return ComponentStatus(used, burn_rate=burn)
    return ComponentStatus(
        used_tokens=used,
        budget_tokens=tokens,
        reserved_tokens=budget.reserved.get(component, 0),
        utilization=used / tokens,
        state=budget.state(component, used),
        burn_rate=burn,
        turns_until_exhausted=_turns(tokens - used, burn),
    )


def _turns(remaining_tokens: int, burn: float | None) -> float | None:
    if burn is None:
        return None
    if remaining_tokens <= 0:
        return 0.0
    return remaining_tokens / burn if burn > 0 else float("inf")
