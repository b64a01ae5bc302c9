"""Sub-agent delegation: of a subtask before it fills the window, or of summarizing the older conversation.

The sub-agent works in its own window and returns a bounded result. `plans.subagent` decides whether to delegate
and bounds the result; the driver runs the sub-agent.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.events import SubagentDelegated
from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import CommandResult, Effect, RunSubagent
from windowpane.effects.model_calls import fenced
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.model_calls import ModelUse, may_run_subagent
from windowpane.manager.plans.prompts import COMPACTION, transcript
from windowpane.manager.plans.subagent_delegation import SubagentResult, Subtask, bounded_result, plan_delegation
from windowpane.manager.step import StepResult
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.summary import Draft, SummaryInput, SummaryWriter, complete_summary

METHOD: Final = "subagent"


def delegate(engine: Engine, subtask: Subtask) -> Effect[SubagentResult | None]:
    """Delegate *subtask*; None if it costs less in place, or there is no sub-agent."""
    if not engine.settings.subagent:
        return None
    plan = plan_delegation(subtask, child_session_id=_child(engine), digest=engine.digest)
    if plan is None:
        return None
    engine.tracker.record(plan.delegated)
    reply = yield RunSubagent(plan.assignment)
    back = bounded_result(plan, _text(reply), counter=engine.counter, failed=_failure(reply))
    engine.tracker.record(back.event)
    return back


def can_delegate(engine: Engine, levels: Levels) -> bool:
    """Return whether the older conversation may be delegated to a sub-agent."""
    return levels.evict <= engine.used() and may_run_subagent(engine)


def delegate_history(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Replace the older conversation by the report of a sub-agent that read it in its own window."""
    return compact(engine, limits, levels, trigger="pressure", writer=SUBAGENT)


def _draft(engine: Engine, source: SummaryInput) -> Effect[Draft]:
    rules = (*engine.task.constraints, *engine.task.record.success_criteria)
    subtask = Subtask("Sum up the work below.", rules, expected_tokens=10**9)
    plan = plan_delegation(
        subtask, child_session_id=_child(engine), digest=engine.digest, max_tokens=source.plan.summary_tokens
    )
    assert plan is not None, "a whole conversation is worth a separate window"
    engine.tracker.record(
        SubagentDelegated(plan.child_session_id, engine.digest(engine.task.goal) if engine.task.goal else None)
    )
    conversation = fenced(transcript(source.plan.removed, engine.counter))
    engine.reduction.model_calls.spend()
    reply = yield RunSubagent(f"{COMPACTION}\n{plan.assignment}\n\n{conversation}")
    back = bounded_result(plan, _text(reply), counter=engine.counter, failed=_failure(reply))
    engine.tracker.record(back.event)
    return Draft(
        complete_summary(engine, back.text, source.handle), METHOD, ModelUse(1), rejected=_failure(reply)
    )


SUBAGENT: Final = SummaryWriter("subagent_delegation", _draft, required=False, by_model=True)


def _child(engine: Engine) -> str:
    engine.reduction.subagents_run += 1
    return f"{engine.tracker.info.session_id}-{engine.reduction.subagents_run}"


def _text(reply: CommandResult) -> str | None:
    return None if reply.failed or reply.value is None else str(reply.value)


def _failure(reply: CommandResult) -> str:
    return f"sub-agent failed: {type(reply.error).__name__}" if reply.failed else ""
