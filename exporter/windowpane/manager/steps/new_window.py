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
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.checkpoint import checkpoint_of
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.eviction import NOT_DONE, StepResult

CHECKPOINT_TURNS: Final = 5
"""Turns between checkpoints while the window stays above their level."""


def roll(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Compact, save a checkpoint, and go on in a new window with what is left."""
    tracker = engine.tracker
    before = engine.used()
    if engine.breaker.open and engine.breaker.reason == NO_PROGRESS:
        return NOT_DONE
    outcome = yield from compact(engine, limits, levels, trigger="roll")
    if not outcome:
        return NOT_DONE
    yield from save_checkpoint(engine, "roll")
    _carry_on(engine, "checkpoint", [block for block in tracker.window if block.content_type != "unattributed"])
    engine.breaker.reset()
    freed = before - engine.used()
    return StepResult(f"{outcome.done}; window {tracker.window_id} opened from a checkpoint", freed)


def clear(engine: Engine) -> None:
    """The user went on in a new, empty window: system prompt, tools and what is pinned come along."""
    standing = ("system_prompt", "tool_definition")
    kept = [block for block in engine.tracker.window if block.content_type in standing or block.pinned]
    engine.open_calls.clear()
    engine.held.clear()
    engine.answered.clear()
    _carry_on(engine, "clear", kept)
    if engine.goal_block is None and not engine.goal_is_given:
        engine.goal = ""
    engine.breaker.reset()


def _carry_on(engine: Engine, reason: str, kept: Sequence[Block]) -> None:
    """Open a new window with *kept*, and let everything that names blocks follow their new ids."""
    opened = engine.tracker.roll(reason, carried=kept)
    moved = {block.replaces: block.id for block in opened}
    groups = {old.group: new.group for old, new in zip(kept, opened, strict=True)}
    engine.payloads = {moved[old]: payload for old, payload in engine.payloads.items() if old in moved}
    engine.goal_block = moved.get(engine.goal_block)
    for call in (*engine.open_calls.values(), *engine.held.values()):
        call.group = groups.get(call.group, call.group)
    engine.interim = {call_id: moved[block] for call_id, block in engine.interim.items() if block in moved}
    engine.reindex()


def checkpoint_if_due(engine: Engine, levels: Levels, used_tokens: int) -> Effect[None]:
    """Save a checkpoint when the window passes their level, and every few turns while it stays above."""
    last = engine.checkpoint_turn
    if used_tokens < levels.checkpoint:
        return
    if last is None or engine.tracker.turn - last >= CHECKPOINT_TURNS:
        yield from save_checkpoint(engine, "pressure")


def save_milestone(engine: Engine) -> Effect[None]:
    """Save the checkpoint that something which happened is still waiting for."""
    trigger, engine.milestone = engine.milestone, ""
    if trigger:
        yield from save_checkpoint(engine, trigger)


def save_checkpoint(engine: Engine, trigger: str, *, completed: str | None = None) -> Effect[bool]:
    """Save the session's state; False where another session has saved a newer one.

    A checkpoint that cannot be saved is reported and does not stop the session.
    """
    if not engine.settings.checkpoint:
        return True
    engine.milestone = ""
    engine.checkpoint_version += 1
    engine.checkpoint_turn = engine.tracker.turn
    if engine.settings.environment:
        seen = yield ProbeEnvironment(tuple(engine.task.paths))
        engine.environment = engine.environment if seen.failed or seen.value is None else seen.value
    saved = checkpoint_of(engine, completed=completed)
    answer = yield SaveCheckpoint(saved.document, saved.markdown)
    if answer.failed:
        reason = f"{type(answer.error).__name__}: {answer.error}"[:200]
        engine.tracker.record(CheckpointRejected(saved.version, reason))
        return not isinstance(answer.error, StaleCheckpointError)
    engine.tracker.record(
        CheckpointSaved(saved.version, trigger, saved.size_bytes, engine.digest(saved.markdown))
    )
    return True
