"""New windows: rolling over with a summary and a checkpoint, and clearing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from windowpane.core.limits import WindowLimits
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import Effect
from windowpane.manager.circuit_breaker import NO_PROGRESS
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.notes import note_lines
from windowpane.manager.plans.summary import HEADINGS, PREAMBLE
from windowpane.manager.step import NOT_DONE, StepResult
from windowpane.manager.steps.checkpoint import save_checkpoint
from windowpane.manager.steps.compaction import compact


def roll(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Compact, save a checkpoint, and open a new window with the remaining blocks."""
    tracker = engine.tracker
    before = engine.used()
    if engine.reduction.breaker.open and engine.reduction.breaker.reason == NO_PROGRESS:
        return NOT_DONE
    outcome = yield from compact(engine, limits, levels, trigger="roll")
    if not outcome:
        return NOT_DONE
    yield from save_checkpoint(engine, "roll")
    _carry_on(engine, "checkpoint", [block for block in tracker.window if block.content_type != "unattributed"])
    engine.reduction.breaker.reset()
    freed = before - engine.used()
    return StepResult(f"{outcome.done}; window {tracker.window_id} opened from a checkpoint", freed)


def clear(engine: Engine) -> None:
    """Open a new window with the system prompt, tool definitions, pinned blocks and critical notes only."""
    static = ("system_prompt", "tool_definition")
    retained = [block for block in engine.tracker.window if block.content_type in static or block.pinned]
    engine.calls.open.clear()
    engine.calls.held.clear()
    engine.calls.answered.clear()
    _carry_on(engine, "clear", retained)
    if engine.task.goal_block is None and not engine.task.goal_is_given:
        engine.task.goal = ""
    critical, _others = note_lines(engine.notes.notes)
    if critical and engine.task.is_opened:  # otherwise the opening has them
        engine.add("summary", "\n".join((PREAMBLE, HEADINGS["progress"], *(f"- {line}" for line in critical))))
    engine.reduction.breaker.reset()


def _carry_on(engine: Engine, reason: Literal["checkpoint", "clear"], retained: Sequence[Block]) -> None:
    """Open a new window with *retained*, and update everything that refers to blocks by id."""
    opened = engine.tracker.roll(reason, carried=retained)
    moved = {block.replaces: block.id for block in opened}
    groups = {old.group: new.group for old, new in zip(retained, opened, strict=True)}
    engine.payloads = {moved[old]: payload for old, payload in engine.payloads.items() if old in moved}
    engine.task.goal_block = moved.get(engine.task.goal_block)
    engine.task.stated_block = moved.get(engine.task.stated_block)
    for call in (*engine.calls.open.values(), *engine.calls.held.values()):
        call.group = groups.get(call.group, call.group)
    engine.calls.interim = {
        call_id: moved[block] for call_id, block in engine.calls.interim.items() if block in moved
    }
    engine.reindex()
