"""The four hooks as programs: what happens before a call, after it, with a tool's result, and on overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.control.breaker import NO_PROGRESS
from windowpane.control.checkpoint import checkpoint_of
from windowpane.control.compacting import compact
from windowpane.control.core import Core
from windowpane.control.decisions import Action, Decision, due
from windowpane.control.overflow import classify
from windowpane.control.pressure import Levels
from windowpane.control.protection import GRADES
from windowpane.control.reduction import NOTHING, Outcome, cut_within_turn, evict
from windowpane.control.replies import Reply
from windowpane.control.requests import Program, SaveCheckpoint
from windowpane.events import (
    BreakerOpened,
    CheckpointRejected,
    CheckpointSaved,
    OverflowDetected,
)
from windowpane.exceptions import IrreducibleContextError
from windowpane.settings import WindowLimits
from windowpane.window.blocks import Block

CHECKPOINT_TURNS: Final = 5
"""Turns between checkpoints while the window stays above their level."""
RETRY_SHARE: Final = 0.80
"""A retry after an overflow sends at most this share of what overflowed."""


class _Tally:
    """What a hook has done so far."""

    def __init__(self) -> None:
        self.action: Action = "none"
        self.done: list[str] = []
        self.freed = 0

    def note(self, action: Action, outcome: Outcome) -> None:
        if outcome:
            self.action = action
            self.done.append(outcome.done)
            self.freed += outcome.freed_tokens


def turn_start(core: Core) -> Program[Decision]:
    """Measure the window and do what its pressure calls for; raises `IrreducibleContextError`."""
    core.follow_limits()
    core.measured = before = core.tracker.measure("before")
    limits, levels = core.limits, core.levels
    if limits is None or levels is None:
        return Decision("none", core.status(), reason="the size of the window is unknown")
    action = due(before.used_tokens, levels)
    if action in ("none", "prepare"):
        return Decision(action, core.status())
    tally = _Tally()
    yield from _checkpoint_if_due(core, levels, before.used_tokens)
    yield from _reduce(core, limits, levels, tally)
    return _settle(core, levels, tally, overflowed=before.used_tokens > levels.ceiling)


def turn_end(core: Core, reply: Reply) -> None:
    """The reply enters the window, its usage becomes the truth, the turn closes."""
    core.add_reply(reply.parts)
    cost = reply.cost_dollars
    if cost is None and reply.usage is not None and core.cost_of is not None:
        cost = core.cost_of(reply.usage)
    core.last_usage = reply.usage or core.last_usage
    core.measured = core.tracker.end_turn(
        reply.usage,
        cost_dollars=cost,
        latency_seconds=reply.latency_seconds,
        stop_reason=reply.stop_reason,
    )
    core.follow_limits()


def overflow(core: Core, error: object) -> Program[Decision]:
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
        tracker.set_limits(WindowLimits.of(found.limit_tokens, "provider"))
    core.follow_limits()
    limits, levels = core.limits, core.levels
    if limits is None or levels is None:
        tracker.record(OverflowDetected("provider", "failed", used, None))
        return Decision("none", core.status(), reason="the size of the window is unknown")
    before = core.used()
    tally = _Tally()
    smaller = min(levels.target, int(RETRY_SHARE * before))
    yield from _checkpoint(core, "overflow")
    yield from _shrink(core, limits, levels, tally, target_used=smaller)
    fits = core.used() < before and core.used() <= levels.ceiling
    core.retried_turn = tracker.turn
    limit = limits.limit_tokens
    tracker.record(OverflowDetected("provider", "retried" if fits else "failed", used, limit))
    core.measured = tracker.measure("after")
    return Decision(tally.action, core.status(), tuple(tally.done), tally.freed, retry=fits)


def _reduce(core: Core, limits: WindowLimits, levels: Levels, tally: _Tally) -> Program[None]:
    """The ladder: evict, then compact on a shortfall, then go on in a new window, then cut within the turn.

    Not tried at all where what is sent with every call fills the window by itself.
    """
    if core.standing() > levels.ceiling:
        return
    used = core.used()
    if used >= levels.compact or not _was_fruitless(core, levels):
        outcome = yield from evict(core, limits, levels, grades=GRADES[:2], minimum_tokens=levels.minimum_saving)
        tally.note("evict", outcome)
    if levels.evict <= core.used() < levels.roll:
        tally.note("compact", (yield from _compact(core, limits, levels, trigger="pressure")))
    if core.used() >= levels.roll:
        tally.note("roll", (yield from _roll(core, limits, levels)))
    if core.used() > levels.ceiling:
        tally.note("evict", (yield from evict(core, limits, levels, grades=GRADES[2:], minimum_tokens=1)))
    if core.used() > levels.ceiling:
        tally.note("evict", (yield from cut_within_turn(core, target_used=limits.usable_tokens)))


def _shrink(
    core: Core, limits: WindowLimits, levels: Levels, tally: _Tally, *, target_used: int
) -> Program[None]:
    """Get below *target_used* whatever the zone says: the provider counts more than we do."""
    tally.note(
        "evict",
        (yield from evict(core, limits, levels, grades=GRADES, minimum_tokens=1, target_used=target_used)),
    )
    if core.used() > target_used:
        tally.note("compact", (yield from compact(core, limits, levels, trigger="overflow")))
    if core.used() > target_used:
        tally.note("evict", (yield from cut_within_turn(core, target_used=target_used)))


def _was_fruitless(core: Core, levels: Levels) -> bool:
    """Whether the last plan was not worth applying and little has come since."""
    before = core.fruitless_used
    return before is not None and core.used() < before + max(1, levels.minimum_saving // 2)


def _compact(core: Core, limits: WindowLimits, levels: Levels, *, trigger: str) -> Program[Outcome]:
    breaker = core.breaker
    was_open = breaker.open
    if not breaker.due(core.tracker.turn):
        if not was_open:
            core.tracker.record(BreakerOpened(breaker.reason, breaker.attempts))
        return NOTHING
    return (yield from compact(core, limits, levels, trigger=trigger))


def _roll(core: Core, limits: WindowLimits, levels: Levels) -> Program[Outcome]:
    """Compact, save a checkpoint, and go on in a new window with what is left."""
    tracker = core.tracker
    before = core.used()
    if core.breaker.open and core.breaker.reason == NO_PROGRESS:
        return NOTHING
    outcome = yield from compact(core, limits, levels, trigger="roll")
    if not outcome:
        return NOTHING
    yield from _checkpoint(core, "roll")
    _carry_on(core, "checkpoint", [block for block in tracker.window if block.content_type != "unattributed"])
    core.breaker.reset()
    freed = before - core.used()
    return Outcome(f"{outcome.done}; window {tracker.window_id} opened from a checkpoint", freed)


def clear(core: Core) -> None:
    """The user went on in a new, empty window: system prompt, tools and what is pinned come along."""
    standing = ("system_prompt", "tool_definition")
    kept = [block for block in core.tracker.window if block.content_type in standing or block.pinned]
    core.open_calls.clear()
    core.answered.clear()
    _carry_on(core, "clear", kept)
    if core.goal_block is None and not core.goal_is_given:
        core.goal = ""
    core.breaker.reset()


def _carry_on(core: Core, reason: str, kept: Sequence[Block]) -> None:
    """Open a new window with *kept*, and let everything that names blocks follow their new ids."""
    opened = core.tracker.roll(reason, carried=kept)
    moved = {block.replaces: block.id for block in opened}
    groups = {old.group: new.group for old, new in zip(kept, opened, strict=True)}
    core.payloads = {moved[old]: payload for old, payload in core.payloads.items() if old in moved}
    core.goal_block = moved.get(core.goal_block)
    for call in core.open_calls.values():
        call.group = groups.get(call.group, call.group)
    core.reindex()


def _settle(core: Core, levels: Levels, tally: _Tally, *, overflowed: bool) -> Decision:
    """Measure again after a reduction; raises where what must stay does not fit."""
    used = core.used()
    limits = core.limits
    assert limits is not None, "nothing is reduced in a window of unknown size"
    if tally.done:
        core.measured = core.tracker.measure("after")
    failed = used > levels.ceiling
    if overflowed or failed:
        outcome = "failed" if failed else "rolled" if tally.action == "roll" else "reduced"
        core.tracker.record(OverflowDetected("proactive", outcome, used, limits.limit_tokens))
    if failed:
        raise IrreducibleContextError(
            required_tokens=used, usable_tokens=limits.usable_tokens, limit_tokens=limits.limit_tokens
        )
    return Decision(tally.action, core.status(), tuple(tally.done), tally.freed)


def _checkpoint_if_due(core: Core, levels: Levels, used_tokens: int) -> Program[None]:
    last = core.checkpoint_turn
    if used_tokens < levels.checkpoint:
        return
    if last is None or core.tracker.turn - last >= CHECKPOINT_TURNS:
        yield from _checkpoint(core, "pressure")


def _checkpoint(core: Core, trigger: str) -> Program[None]:
    """Save the session's state; a checkpoint that cannot be saved is reported and does not stop the session."""
    if not core.settings.checkpoint:
        return
    core.checkpoint_version += 1
    core.checkpoint_turn = core.tracker.turn
    saved = checkpoint_of(core)
    answer = yield SaveCheckpoint(saved.document, saved.markdown)
    if answer.failed:
        reason = f"{type(answer.error).__name__}: {answer.error}"[:200]
        core.tracker.record(CheckpointRejected(core.checkpoint_version, reason))
        return
    core.tracker.record(CheckpointSaved(saved.version, trigger, saved.size_bytes, core.digest(saved.markdown)))
