"""Hands work to a sub-agent: a subtask before it fills the window, or the older conversation to sum up.

The sub-agent works in a window of its own and only a bounded result comes back. What it is told, whether it is
worth it and what may return is for `compression.subagent`; running it is the caller's.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.events import SubagentDelegated
from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import CommandResult, Effect, RunSubagent
from windowpane.effects.model_calls import fenced
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.prompts import COMPACTION, transcript
from windowpane.manager.plans.subagent import Returned, Subtask, plan_delegation, returned
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.step import StepResult
from windowpane.manager.steps.summary import Draft, Stretch, Writer, completed

METHOD: Final = "subagent"


def delegate(engine: Engine, subtask: Subtask) -> Effect[Returned | None]:
    """Have *subtask* done elsewhere; None where doing it in place is cheaper, or there is no sub-agent."""
    if not engine.settings.subagent:
        return None
    plan = plan_delegation(subtask, child_session_id=_child(engine), digest=engine.digest)
    if plan is None:
        return None
    engine.tracker.record(plan.delegated)
    answer = yield RunSubagent(plan.assignment)
    back = returned(plan, _text(answer), counter=engine.counter, failed=_failure(answer))
    engine.tracker.record(back.event)
    return back


def can_delegate(engine: Engine, levels: Levels) -> bool:
    """Whether a sub-agent may be asked to look through the older conversation."""
    return engine.settings.subagent and levels.evict <= engine.used() and not engine.reduction.breaker.open


def delegate_history(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Replace the older conversation by what a sub-agent with a clean window reports of it."""
    return compact(engine, limits, levels, trigger="pressure", writer=SUBAGENT)


def _draft(engine: Engine, stretch: Stretch) -> Effect[Draft]:
    rules = (*engine.task.constraints, *engine.task.record.success_criteria)
    subtask = Subtask("Sum up the work below.", rules, expected_tokens=10**9)
    plan = plan_delegation(
        subtask, child_session_id=_child(engine), digest=engine.digest, max_tokens=stretch.plan.summary_tokens
    )
    assert plan is not None, "looking through a whole conversation is worth a window of its own"
    engine.tracker.record(
        SubagentDelegated(plan.child_session_id, engine.digest(engine.task.goal) if engine.task.goal else None)
    )
    shown = fenced(transcript(stretch.plan.removed, engine.counter))
    answer = yield RunSubagent(f"{COMPACTION}\n{plan.assignment}\n\n{shown}")
    back = returned(plan, _text(answer), counter=engine.counter, failed=_failure(answer))
    engine.tracker.record(back.event)
    return Draft(completed(engine, back.text, stretch.handle), METHOD, 1, _failure(answer))


SUBAGENT: Final = Writer("subagent_delegation", _draft, required=False)


def _child(engine: Engine) -> str:
    engine.reduction.subagents_run += 1
    return f"{engine.tracker.info.session_id}-{engine.reduction.subagents_run}"


def _text(answer: CommandResult) -> str | None:
    return None if answer.failed or answer.value is None else str(answer.value)


def _failure(answer: CommandResult) -> str:
    return f"sub-agent failed: {type(answer.error).__name__}" if answer.failed else ""
