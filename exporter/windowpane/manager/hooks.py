"""The hooks as effects: before a model call, after it, and on overflow."""

from __future__ import annotations

import logging
from typing import Final

from windowpane.core.events import OverflowDetected
from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import IrreducibleContextError
from windowpane.manager.budget_enforcement import enforce, over_budget
from windowpane.manager.content import add_reply
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.protection import GRADES
from windowpane.manager.status import Decision, due
from windowpane.manager.step import CascadeResult
from windowpane.manager.steps.cascade import run_cascade, run_steps
from windowpane.manager.steps.checkpoint import (
    checkpoint_if_due,
    checkpoint_reduction,
    save_checkpoint,
    save_milestone,
)
from windowpane.manager.steps.compaction import OVERFLOW, compact, is_summary_pending
from windowpane.manager.steps.eviction import evict, truncate_turn
from windowpane.models.overflow_errors import classify_error
from windowpane.models.wire.replies import Reply

_boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))
RETRY_SHARE: Final = 0.80
"""Maximum share of the overflowing tokens that a retry sends."""


def turn_start(engine: Engine) -> Effect[Decision]:
    """Measure the window and reduce it if its pressure requires it; raises `IrreducibleContextError`."""
    engine.follow_limits()
    engine.insert_opening()
    if engine.task.milestone:
        yield from save_milestone(engine)
    engine.measured = before = engine.tracker.measure("before")
    if engine.settings.watch is not None:
        engine.settings.watch(engine)
    limits, levels = engine.limits, engine.levels
    if limits is None or levels is None:
        return Decision("none", engine.status(), reason="the size of the window is unknown")
    action = due(before.used_tokens, levels)
    over = over_budget(engine, levels)
    if action in ("none", "prepare") and not over:
        return Decision(action, engine.status())
    levels = levels.above(engine.static_tokens())
    action = due(before.used_tokens, levels)
    if action in ("none", "prepare") and not over:
        return Decision("prepare", engine.status())
    result = CascadeResult()
    waits = is_summary_pending(engine, levels)
    if not waits:
        yield from enforce(engine, limits, levels, result, over)
    yield from checkpoint_if_due(engine, levels, before.used_tokens)
    if engine.static_tokens() <= levels.ceiling and not waits:
        yield from run_cascade(engine, limits, levels, result)
    yield from checkpoint_reduction(engine, result)
    return _settle(engine, levels, result, before=before.used_tokens)


def turn_end(
    engine: Engine, reply: Reply, reported_remaining: int | None = None, reported_used: int | None = None
) -> None:
    """Add the reply, adopt the token counts of its usage, and end the turn.

    Without usage, the tokens that the model reports as used or remaining correct the count. The used tokens apply
    also if the window's size is unknown, and if both are reported.
    """
    reported = reported_used
    if reported is None and reported_remaining is not None and engine.limits is not None:
        reported = engine.limits.limit_tokens - reported_remaining
    add_reply(engine, reply.parts)
    cost = reply.cost_dollars
    if cost is None and reply.usage is not None and engine.cost_of is not None:
        cost = engine.cost_of(reply.usage)
    engine.last_usage = reply.usage or engine.last_usage
    engine.measured = engine.tracker.end_turn(
        reply.usage,
        reported_tokens=reported,
        cost_dollars=cost,
        cost_of=engine.cost_of,
        latency_seconds=reply.latency_seconds,
        stop_reason=reply.stop_reason,
        response_id=reply.response_id or None,
    )
    if (rejected := engine.tracker.rejected) is not None:
        _boundary.warn(
            rejected.reason,
            "usage report of %s tokens rejected: %s", f"{rejected.reported_tokens:,}", rejected.rule,
        )  # fmt: skip
    engine.follow_limits()


def is_work_after_turn(engine: Engine) -> bool:
    """Return whether anything is due now that the turn has ended."""
    levels = engine.levels
    if levels is None or engine.reduction.compactions_running:
        return False
    return any(step.is_due(engine, levels) for step in engine.settings.after_turn) or bool(
        over_budget(engine, levels.above(engine.static_tokens()), between=True)
    )


def after_turn(engine: Engine) -> Effect[None]:
    """Run the steps between two turns; the agent may continue meanwhile."""
    limits, levels = engine.limits, engine.levels
    if limits is not None and levels is not None:
        result, above = CascadeResult(), levels.above(engine.static_tokens())
        yield from run_steps(engine.settings.after_turn, engine, limits, levels, result)
        yield from enforce(engine, limits, above, result, over_budget(engine, above, between=True))
        yield from checkpoint_reduction(engine, result)
        engine.tracker.flush()


def overflow(engine: Engine, error: object) -> Effect[Decision]:
    """Make the window strictly smaller after the provider rejected a call, for exactly one retry."""
    classified = classify_error(error)
    if classified.kind != "overflow":
        return Decision("none", engine.status(), reason=f"not an overflow: {classified.kind}")
    tracker = engine.tracker
    used = max(engine.used(), classified.requested_tokens or 0)
    if engine.reduction.retried_turn == tracker.turn and tracker.in_turn:
        limit_tokens = None if engine.limits is None else engine.limits.limit_tokens
        tracker.record(OverflowDetected("provider", "failed", used, limit_tokens))
        return Decision("none", engine.status(), reason="already retried in this turn")
    if classified.limit_tokens is not None and (
        engine.limits is None or classified.limit_tokens < engine.limits.limit_tokens
    ):
        tracker.set_limits(engine.settings.limits_of(classified.limit_tokens, "provider"))
    if classified.output_tokens is not None and tracker.limits is not None:
        reserving = tracker.limits.reserving(classified.output_tokens)
        if reserving is not tracker.limits:
            tracker.set_limits(reserving)
    engine.follow_limits()
    limits, levels = engine.limits, engine.levels
    if limits is None or levels is None:
        tracker.record(OverflowDetected("provider", "failed", used, None))
        return Decision("none", engine.status(), reason="the size of the window is unknown")
    before = engine.used()
    levels = levels.above(engine.static_tokens())
    result = CascadeResult()
    smaller = min(levels.target, int(RETRY_SHARE * before))
    yield from save_checkpoint(engine, "overflow")
    yield from run_steps(engine.settings.after_overflow, engine, limits, levels, result)
    yield from _shrink(engine, limits, levels, result, target_used=smaller)
    fits = engine.used() < before and engine.used() <= levels.ceiling
    engine.reduction.retried_turn = tracker.turn
    limit = limits.limit_tokens
    tracker.record(OverflowDetected("provider", "retried" if fits else "failed", used, limit))
    engine.measured = tracker.measure("after")
    return Decision(result.action, engine.status(), tuple(result.done), result.freed, retry=fits)


def _shrink(
    engine: Engine, limits: WindowLimits, levels: Levels, result: CascadeResult, *, target_used: int
) -> Effect[None]:
    """Reduce below *target_used* in any zone: the provider counts more than we do."""
    result.add(
        "evict",
        (yield from evict(engine, limits, levels, grades=GRADES, minimum_tokens=1, target_used=target_used)),
    )
    if engine.used() > target_used:
        result.add("compact", (yield from compact(engine, limits, levels, trigger=OVERFLOW)))
    if engine.used() > target_used:
        result.add("evict", (yield from truncate_turn(engine, target_used=target_used)))


def _settle(engine: Engine, levels: Levels, result: CascadeResult, *, before: int) -> Decision:
    """Measure again after a reduction; raises `IrreducibleContextError` if the rest does not fit.

    An overflow is reported with the tokens *before* the reduction: these did not fit.
    """
    used = engine.used()
    limits = engine.limits
    assert limits is not None, "nothing is reduced in a window of unknown size"
    if result.done:
        engine.measured = engine.tracker.measure("after")
    failed = used > levels.ceiling
    if before > levels.ceiling or failed:
        outcome = "failed" if failed else "rolled" if result.action == "roll" else "reduced"
        engine.tracker.record(OverflowDetected("proactive", outcome, max(before, used), limits.limit_tokens))
    if failed:
        raise IrreducibleContextError(
            required_tokens=used, usable_tokens=limits.usable_tokens, limit_tokens=limits.limit_tokens
        )
    return Decision(result.action, engine.status(), tuple(result.done), result.freed)
