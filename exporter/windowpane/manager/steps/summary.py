"""Writers of a compaction's summary: a language model or the extractive summarizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from windowpane.core.events import Strategy
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import identifiers
from windowpane.effects.commands import Effect, compute
from windowpane.effects.model_calls import fenced
from windowpane.fidelity.passages import MESSAGE_TYPES
from windowpane.fidelity.probe import retained_share
from windowpane.fidelity.situation import Fact
from windowpane.manager.engine import Engine
from windowpane.manager.model_calls import NO_CALLS, ModelAnswer, ModelUse, call_model, may_call_model
from windowpane.manager.plans.acceptance import (
    MODEL_FIDELITY_FLOOR,
    TOO_LONG,
    ProposedSummary,
    reply_rejection_reason,
    sampled_fidelity,
)
from windowpane.manager.plans.checkpoint import goal_text
from windowpane.manager.plans.compaction import CompactionPlan
from windowpane.manager.plans.prompts import COMPACTION, SHORTER, transcript
from windowpane.manager.plans.statements import statements_of
from windowpane.manager.plans.summary import HEADINGS, PREAMBLE, names_to_keep
from windowpane.models.overflow_errors import classify_error

MODEL_ATTEMPTS: Final = 2
SHORTENINGS: Final = 4
"""Maximum number of times a transcript is shortened for a model that refuses it as too large."""
EXTRACTIVE: Final = "extractive"


class Retained(NamedTuple):
    """Shares of the names and facts that a summary retains, for the acceptance check; None if not measured."""

    names: float | None
    facts: float | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary before the acceptance check."""

    text: str
    method: str
    use: ModelUse = NO_CALLS
    retained: Retained | None = None
    """For the acceptance check; None for text that only has to be short enough."""
    rejected: str = ""
    """Reason why the model's last attempt was rejected, or the part of the input it was not shown."""


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """The input of a summary, and the handle of the original."""

    plan: CompactionPlan
    facts: Sequence[Fact]
    handle: str | None
    target_tokens: int
    """Target size of the window, as counted at ingest."""
    by_model: bool


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """A way of writing summaries."""

    strategy: Strategy
    draft: Callable[[Engine, SummaryInput], Effect[Draft]]
    required: bool = True
    """A rejected summary counts against the circuit breaker; else the next step writes another."""
    by_model: bool = False
    """Written by a model or sub-agent alone: a rejected one is not requested again for the same content."""
    fidelity_floor: float = MODEL_FIDELITY_FLOOR
    """Minimum share of the names in a summary that the acceptance check judges."""


@dataclass(frozen=True, slots=True)
class _ModelReply:
    answer: ModelAnswer
    use: ModelUse
    """Of all calls that it took."""
    blocks: list[Block]
    """The blocks of the last transcript."""


def write(engine: Engine, source: SummaryInput) -> Effect[Draft]:
    """Return a model's summary, else the extractive one.

    The model is called a second time only if its summary was too long, and not at all for content that it was
    refused for before.
    """
    plan, refused = source.plan, engine.reduction.refused
    use, reason, blocks = NO_CALLS, "", list(plan.removed)
    by_model = source.by_model and may_call_model(engine) and not refused.covers("compaction", plan.removed)
    for attempt in range(MODEL_ATTEMPTS if by_model else 0):
        tokens = plan.summary_tokens // (attempt + 1)
        reply = yield from _call_model(engine, f"{COMPACTION}\n{SHORTER.format(tokens=tokens)}", blocks)
        use, blocks = use.plus(reply.use), reply.blocks
        text = complete_summary(engine, reply.answer.text, source.handle)
        retained = yield from retained_by(engine, source, text)
        proposed = proposed_summary(engine, source, text, retained=retained)
        reason = reply.answer.failure or reply_rejection_reason(reply.answer.text, proposed)
        if not reason:
            omitted = len(_group_ids(plan.removed)) - len(_group_ids(blocks))
            unseen = f"the oldest {omitted} groups were too much for the model" if omitted else ""
            return Draft(text, engine.settings.model, use, rejected=unseen)
        if reason not in TOO_LONG or not may_call_model(engine):
            break
    if by_model:
        refused.add("compaction", plan.removed)
    summarizer = engine.settings.summarizer
    if summarizer is None:
        return Draft("", engine.settings.model, use, rejected=reason)
    previous = [block.text or "" for block in plan.previous]
    text = summarizer(
        source.facts,
        goal=stated_goal(engine),
        previous=previous,
        lookup=_lookup(source.handle),
        progress=engine.progress(),
        names=names_to_keep(engine.references, plan.removed, previous),
        failures=engine.failures(plan.removed),
        statements=statements_of(plan.removed),
        visible=_visible_names(engine, plan.removed),
        max_tokens=plan.summary_tokens,
        counter=engine.counter,
    )
    return Draft(text, EXTRACTIVE, use, rejected=reason)


def _visible_names(engine: Engine, removed: Sequence[Block]) -> frozenset[str]:
    """Return the names in retained messages and calls, which stay until a summary replaces them."""
    removed_ids = {block.id for block in removed}
    texts = (
        block.text or ""
        for block in engine.tracker.window
        if block.content_type in MESSAGE_TYPES and block.id not in removed_ids
    )
    return frozenset(name for text in texts for name in identifiers(text))


COMPACTION_WRITER: Final = SummaryWriter("compaction", write)


def _call_model(engine: Engine, system: str, blocks: list[Block]) -> Effect[_ModelReply]:
    """Return the model's reply; the oldest quarter is removed while it refuses the transcript as too large.

    The same transcript is never sent twice to a model that refused it.
    """
    use = NO_CALLS
    while True:
        answer = yield from call_model(engine, system, fenced(transcript(blocks, engine.counter)))
        use = use.plus(answer.use)
        groups = _group_ids(blocks)
        if not answer.reply.failed or classify_error(answer.reply.error).kind != "overflow":
            return _ModelReply(answer, use, blocks)
        if use.calls > SHORTENINGS or len(groups) < 2 or not may_call_model(engine):
            return _ModelReply(answer, use, blocks)
        oldest = set(groups[: -(-len(groups) // 4)])
        blocks = [block for block in blocks if block.group not in oldest]


def _group_ids(blocks: Sequence[Block]) -> list[str]:
    return list(dict.fromkeys(block.group for block in blocks))


def complete_summary(engine: Engine, text: str, handle: str | None) -> str:
    """Return a model's summary with goal, progress and look-up hints added word for word."""
    if not text.strip():
        return ""
    body = text.strip().removeprefix(PREAMBLE).strip()
    goal, progress, lookup = stated_goal(engine), engine.progress(), _lookup(handle)
    parts = [PREAMBLE, *([HEADINGS["goal"], goal] if goal else [])]
    if progress:
        parts += [HEADINGS["progress"], *(f"- {line}" for line in progress)]
    parts.append(body)
    if lookup:
        parts += [HEADINGS["lookup"], *(f"- {line}" for line in lookup)]
    return "\n".join(parts)


def stated_goal(engine: Engine) -> str:
    """Return what a summary has to state of the task: nothing that stays in the window word for word."""
    task, window = engine.task, engine.tracker.window
    has_rules = task.stated_block is not None and task.stated_block in window
    has_goal = has_rules if task.goal_is_given else task.goal_block is not None and task.goal_block in window
    goal = "" if has_goal else task.goal
    return goal if has_rules else goal_text(goal, task.constraints, task.record.success_criteria)


def _lookup(handle: str | None) -> list[str]:
    return [f"the messages this replaces, whole: {handle}"] if handle else []


def retained_by(engine: Engine, source: SummaryInput, text: str) -> Effect[Retained | None]:
    """Return what a summary retains; None without an evaluator."""
    removed = source.plan.removed
    if engine.settings.evaluate is None:
        return None
    replacement = replace(removed[0], content_type="summary", text=text, replaces=removed[0].id)
    removed_ids = {block.id for block in removed}
    visible = [*(block for block in engine.tracker.window if block.id not in removed_ids), replacement]
    facts = [fact for fact in source.facts if fact.kind not in ("name", "setting")]

    def measure() -> Retained:
        share = retained_share(facts, removed, visible, recoverable=source.handle is not None)
        return Retained(sampled_fidelity(removed, replacement), share)

    return (yield from compute(measure))


def proposed_summary(
    engine: Engine,
    source: SummaryInput,
    text: str,
    *,
    retained: Retained | None = None,
    fidelity_floor: float = MODEL_FIDELITY_FLOOR,
) -> ProposedSummary:
    """Return the summary for the acceptance check."""
    plan, goal = source.plan, stated_goal(engine)
    static = engine.raw(engine.static_tokens())
    return ProposedSummary(
        text=text,
        tokens_before=plan.removed_tokens,
        tokens_after=engine.counter.count(text) + plan.partial_tokens,
        window_before=engine.tracker.window.tokens - static,
        target_tokens=source.target_tokens - static,
        required_sections=("goal",) if goal else (),
        pinned=(goal,) if goal else (),
        fidelity=None if retained is None else retained.names,
        fidelity_floor=fidelity_floor,
        facts=None if retained is None else retained.facts,
    )
