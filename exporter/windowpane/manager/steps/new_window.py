"""Crossing from one window into the next: checkpoints, rolling, clearing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.core.events import CheckpointRejected, CheckpointSaved
from windowpane.core.limits import WindowLimits
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import Effect, ProbeEnvironment, SaveCheckpoint
from windowpane.exceptions import StaleCheckpointError
from windowpane.manager.circuit_breaker import NO_PROGRESS
from windowpane.manager.engine import Core
from windowpane.manager.levels import Levels
from windowpane.manager.plans.checkpoint import checkpoint_of
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.eviction import NOTHING, Outcome

CHECKPOINT_TURNS: Final = 5
"""Turns between checkpoints while the window stays above their level."""


def roll(core: Core, limits: WindowLimits, levels: Levels) -> Effect[Outcome]:
    """Compact, save a checkpoint, and go on in a new window with what is left."""
    tracker = core.tracker
    before = core.used()
    if core.breaker.open and core.breaker.reason == NO_PROGRESS:
        return NOTHING
    outcome = yield from compact(core, limits, levels, trigger="roll")
    if not outcome:
        return NOTHING
    yield from save_checkpoint(core, "roll")
    _carry_on(core, "checkpoint", [block for block in tracker.window if block.content_type != "unattributed"])
    core.breaker.reset()
    freed = before - core.used()
    return Outcome(f"{outcome.done}; window {tracker.window_id} opened from a checkpoint", freed)


def clear(core: Core) -> None:
    """The user went on in a new, empty window: system prompt, tools and what is pinned come along."""
    standing = ("system_prompt", "tool_definition")
    kept = [block for block in core.tracker.window if block.content_type in standing or block.pinned]
    core.open_calls.clear()
    core.held.clear()
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
    for call in (*core.open_calls.values(), *core.held.values()):
        call.group = groups.get(call.group, call.group)
    core.interim = {call_id: moved[block] for call_id, block in core.interim.items() if block in moved}
    core.reindex()


def checkpoint_if_due(core: Core, levels: Levels, used_tokens: int) -> Effect[None]:
    """Save a checkpoint when the window passes their level, and every few turns while it stays above."""
    last = core.checkpoint_turn
    if used_tokens < levels.checkpoint:
        return
    if last is None or core.tracker.turn - last >= CHECKPOINT_TURNS:
        yield from save_checkpoint(core, "pressure")


def save_milestone(core: Core) -> Effect[None]:
    """Save the checkpoint that something which happened is still waiting for."""
    trigger, core.milestone = core.milestone, ""
    if trigger:
        yield from save_checkpoint(core, trigger)


def save_checkpoint(core: Core, trigger: str, *, completed: str | None = None) -> Effect[bool]:
    """Save the session's state; False where another session has saved a newer one.

    A checkpoint that cannot be saved is reported and does not stop the session.
    """
    if not core.settings.checkpoint:
        return True
    core.milestone = ""
    core.checkpoint_version += 1
    core.checkpoint_turn = core.tracker.turn
    if core.settings.environment:
        seen = yield ProbeEnvironment(tuple(core.task.paths))
        core.environment = core.environment if seen.failed or seen.value is None else seen.value
    saved = checkpoint_of(core, completed=completed)
    answer = yield SaveCheckpoint(saved.document, saved.markdown)
    if answer.failed:
        reason = f"{type(answer.error).__name__}: {answer.error}"[:200]
        core.tracker.record(CheckpointRejected(saved.version, reason))
        return not isinstance(answer.error, StaleCheckpointError)
    core.tracker.record(CheckpointSaved(saved.version, trigger, saved.size_bytes, core.digest(saved.markdown)))
    return True
