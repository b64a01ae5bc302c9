"""The four hooks as programs: what happens before a call, after it, with a tool's result, and on overflow."""

from __future__ import annotations

from typing import Final

from windowpane.core.events import OverflowDetected
from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.exceptions import IrreducibleContextError
from windowpane.manager.enforce_budgets import enforce, over_budget
from windowpane.manager.engine import Core
from windowpane.manager.levels import Levels
from windowpane.manager.plans.protection import GRADES
from windowpane.manager.status import Decision, due
from windowpane.manager.steps.compaction import OVERFLOW, compact, is_room_coming
from windowpane.manager.steps.eviction import cut_within_turn, evict
from windowpane.manager.steps.ladder import Tally, climb, take
from windowpane.manager.steps.new_window import checkpoint_if_due, save_checkpoint, save_milestone
from windowpane.models.overflow_errors import classify
from windowpane.models.replies import Reply

RETRY_SHARE: Final = 0.80
"""A retry after an overflow sends at most this share of what overflowed."""


def turn_start(core: Core) -> Effect[Decision]:
    """Measure the window and do what its pressure calls for; raises `IrreducibleContextError`."""
    core.follow_limits()
    if core.opening:
        core.open()
    if core.milestone:
        yield from save_milestone(core)
    core.measured = before = core.tracker.measure("before")
    if core.settings.watch is not None:
        core.settings.watch(core)
    limits, levels = core.limits, core.levels
    if limits is None or levels is None:
        return Decision("none", core.status(), reason="the size of the window is unknown")
    action = due(before.used_tokens, levels)
    over = over_budget(core, levels)
    if action in ("none", "prepare") and not over:
        return Decision(action, core.status())
    levels = levels.above(core.standing())
    action = due(before.used_tokens, levels)
    if action in ("none", "prepare") and not over:
        return Decision("prepare", core.status())
    tally = Tally()
    waits = is_room_coming(core, levels)
    if not waits:
        yield from enforce(core, limits, levels, tally, over)
    yield from checkpoint_if_due(core, levels, before.used_tokens)
    if core.standing() <= levels.ceiling and not waits:
        yield from climb(core, limits, levels, tally)
    return _settle(core, levels, tally, before=before.used_tokens)


def turn_end(
    core: Core, reply: Reply, reported_remaining: int | None = None, reported_used: int | None = None
) -> None:
    """The reply enters the window, its usage becomes the truth, the turn closes.

    What the model said is used, or left, of its window corrects the count where there is no usage. What it said
    is used holds also where the window's size is unknown, and where both are said.
    """
    reported = reported_used
    if reported is None and reported_remaining is not None and core.limits is not None:
        reported = core.limits.limit_tokens - reported_remaining
    core.sent = core.used()
    core.add_reply(reply.parts)
    cost = reply.cost_dollars
    if cost is None and reply.usage is not None and core.cost_of is not None:
        cost = core.cost_of(reply.usage)
    core.last_usage = reply.usage or core.last_usage
    core.measured = core.tracker.end_turn(
        reply.usage,
        reported_tokens=reported,
        cost_dollars=cost,
        latency_seconds=reply.latency_seconds,
        stop_reason=reply.stop_reason,
    )
    core.follow_limits()


def is_work_after_turn(core: Core) -> bool:
    """Whether anything is due now that the turn has ended."""
    levels = core.levels
    if levels is None or core.compacting:
        return False
    return any(rung.is_due(core, levels) for rung in core.settings.after_turn) or bool(
        over_budget(core, levels.above(core.standing()), between=True)
    )


def after_turn(core: Core) -> Effect[None]:
    """What is done between two turns; the agent may go on meanwhile."""
    limits, levels = core.limits, core.levels
    if limits is not None and levels is not None:
        tally, above = Tally(), levels.above(core.standing())
        yield from take(core.settings.after_turn, core, limits, levels, tally)
        yield from enforce(core, limits, above, tally, over_budget(core, above, between=True))
        core.tracker.flush()


def overflow(core: Core, error: object) -> Effect[Decision]:
    """The provider refused the call as too large: make the window strictly smaller, for exactly one retry."""
    found = classify(error)
    if found.kind != "overflow":
        return Decision("none", core.status(), reason=f"not an overflow: {found.kind}")
    tracker = core.tracker
    used = max(core.used(), found.requested_tokens or 0)
    if core.retried_turn == tracker.turn and tracker.in_turn:
        known = None if core.limits is None else core.limits.limit_tokens
        tracker.record(OverflowDetected("provider", "failed", used, known))
        return Decision("none", core.status(), reason="already retried in this turn")
    if found.limit_tokens is not None and (core.limits is None or found.limit_tokens < core.limits.limit_tokens):
        tracker.set_limits(core.settings.limits_of(found.limit_tokens, "provider"))
    core.follow_limits()
    limits, levels = core.limits, core.levels
    if limits is None or levels is None:
        tracker.record(OverflowDetected("provider", "failed", used, None))
        return Decision("none", core.status(), reason="the size of the window is unknown")
    before = core.used()
    levels = levels.above(core.standing())
    tally = Tally()
    smaller = min(levels.target, int(RETRY_SHARE * before))
    yield from save_checkpoint(core, "overflow")
    yield from take(core.settings.after_overflow, core, limits, levels, tally)
    yield from _shrink(core, limits, levels, tally, target_used=smaller)
    fits = core.used() < before and core.used() <= levels.ceiling
    core.retried_turn = tracker.turn
    limit = limits.limit_tokens
    tracker.record(OverflowDetected("provider", "retried" if fits else "failed", used, limit))
    core.measured = tracker.measure("after")
    return Decision(tally.action, core.status(), tuple(tally.done), tally.freed, retry=fits)


def _shrink(core: Core, limits: WindowLimits, levels: Levels, tally: Tally, *, target_used: int) -> Effect[None]:
    """Get below *target_used* whatever the zone says: the provider counts more than we do."""
    tally.note(
        "evict",
        (yield from evict(core, limits, levels, grades=GRADES, minimum_tokens=1, target_used=target_used)),
    )
    if core.used() > target_used:
        tally.note("compact", (yield from compact(core, limits, levels, trigger=OVERFLOW)))
    if core.used() > target_used:
        tally.note("evict", (yield from cut_within_turn(core, target_used=target_used)))


def _settle(core: Core, levels: Levels, tally: Tally, *, before: int) -> Decision:
    """Measure again after a reduction; raises where what must stay does not fit.

    An overflow is told with the size *before* it, tokens: that is what did not fit.
    """
    used = core.used()
    limits = core.limits
    assert limits is not None, "nothing is reduced in a window of unknown size"
    if tally.done:
        core.measured = core.tracker.measure("after")
    failed = used > levels.ceiling
    if before > levels.ceiling or failed:
        outcome = "failed" if failed else "rolled" if tally.action == "roll" else "reduced"
        core.tracker.record(OverflowDetected("proactive", outcome, max(before, used), limits.limit_tokens))
    if failed:
        raise IrreducibleContextError(
            required_tokens=used, usable_tokens=limits.usable_tokens, limit_tokens=limits.limit_tokens
        )
    return Decision(tally.action, core.status(), tuple(tally.done), tally.freed)
