"""Compacts the conversation: archives the stretch that goes, has a summary written, and puts it in its place.

A language model may write the summary, in two attempts; whatever it writes has to pass the gate. Without one,
or when it fails, the extractive summarizer writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.control.checkpoint import goal_text
from windowpane.control.compression.accept import Offer, reject
from windowpane.control.compression.compaction import ENGINE_SHAPE, CompactionPlan, Shape, plan_compaction
from windowpane.control.compression.extractive import summarize
from windowpane.control.compression.prompts import COMPACTION, SHORTER, fenced, transcript
from windowpane.control.compression.sections import HEADINGS, PREAMBLE
from windowpane.control.compression.truncation import middle_out
from windowpane.control.core import Core
from windowpane.control.eviction.placeholders import handle_of
from windowpane.control.facts import Fact, extract
from windowpane.control.fidelity import evaluate
from windowpane.control.overflow import classify
from windowpane.control.pressure import Levels
from windowpane.control.reduction import NOTHING, REPLANS, Outcome
from windowpane.control.requests import Answer, AskModel, KeepOriginals, Program
from windowpane.events import BreakerOpened, ContentCompressed
from windowpane.settings import WindowLimits
from windowpane.vocabulary import COMPONENT_OF, Component
from windowpane.window.blocks import Block

MODEL_ATTEMPTS: Final = 2
SHORTENINGS: Final = 4
"""Times a transcript is shortened for a model that refuses it as too large."""
EXTRACTIVE: Final = "extractive"


@dataclass(frozen=True, slots=True)
class _Draft:
    text: str
    method: str
    model_calls: int = 0
    rejected: str = ""
    """Why the model's last attempt was not used, or what it was not shown."""


@dataclass(frozen=True, slots=True)
class _Asked:
    answer: Answer
    calls: int
    shown: list[Block]
    """What the model was shown in the end."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A plan with its summary."""

    plan: CompactionPlan
    draft: _Draft
    facts: Sequence[Fact]
    handle: str | None

    @property
    def ids(self) -> set[str]:
        return {block.id for block in self.plan.removed}


def compact(
    core: Core, limits: WindowLimits, levels: Levels, *, trigger: str, shape: Shape = ENGINE_SHAPE
) -> Program[Outcome]:
    """Replace the older conversation by a summary; reports acceptance, rejection and fidelity.

    Where the window changed while the summary was written, the plan is made again; the summary is used if that
    plan still removes all it covers, and then exactly that leaves: what came meanwhile stays.
    """
    started = core.timer()
    made: _Made | None = None
    for _ in range(REPLANS):
        target = core.raw(levels.target)
        plan = plan_compaction(core.snapshot(limits), target, shape)
        if plan is None:
            return NOTHING
        if made is None or not made.ids <= {block.id for block in plan.removed}:
            made = yield from _make(core, plan, target, by_model=shape.by_model)
            if core.tracker.window.version != plan.version:
                continue
        return _apply(core, made, trigger=trigger, target=target, started=started)
    return NOTHING


def _make(core: Core, plan: CompactionPlan, target: int, *, by_model: bool) -> Program[_Made]:
    """Keep the originals and write the summary."""
    facts = extract(plan.removed)
    handle = None
    if core.settings.archive:
        handle = handle_of(f"c{plan.removed[0].id[1:]}")
        text = "\n\n".join(_archived(plan.removed))
        answer = yield KeepOriginals(((handle, text), *_originals(plan.removed)))
        handle = None if answer.failed else handle
    draft = yield from _draft(core, plan, facts, handle, target, by_model=by_model)
    return _Made(plan, draft, facts, handle)


def _draft(
    core: Core, plan: CompactionPlan, facts: Sequence[Fact], handle: str | None, target: int, *, by_model: bool
) -> Program[_Draft]:
    calls, reason, shown = 0, "", list(plan.removed)
    for attempt in range(MODEL_ATTEMPTS if core.settings.model and by_model else 0):
        tokens = plan.summary_tokens // (attempt + 1)
        asked = yield from _ask(core, f"{COMPACTION}\n{SHORTER.format(tokens=tokens)}", shown)
        calls, shown = calls + asked.calls, asked.shown
        if asked.answer.failed:
            reason = f"model failed: {type(asked.answer.error).__name__}"
            continue
        text = completed(core, str(asked.answer.value or ""), handle)
        visible = [replace(plan.removed[0], content_type="summary", text=text)]
        score = evaluate(plan.removed, visible, digest=str, facts=facts).score
        reason = reject(_offer(core, plan, text, target, fidelity=score))
        if not reason:
            omitted = len(_group_ids(plan.removed)) - len(_group_ids(shown))
            unseen = f"the oldest {omitted} groups were too much for the model" if omitted else ""
            return _Draft(text, core.settings.model, calls, unseen)
    text = summarize(
        facts,
        goal=_goal(core),
        previous=[block.text or "" for block in plan.previous],
        lookup=_lookup(handle),
        progress=core.progress(),
        max_tokens=plan.summary_tokens,
        counter=core.counter,
    )
    return _Draft(text, EXTRACTIVE, calls, reason)


def _ask(core: Core, system: str, shown: list[Block]) -> Program[_Asked]:
    """The model's answer; while it refuses the transcript as too large, the oldest quarter is left out.

    The same transcript is never sent twice to a model that refused it.
    """
    calls = 0
    while True:
        calls += 1
        answer = yield AskModel(system, fenced(transcript(shown, core.counter)))
        groups = _group_ids(shown)
        if not answer.failed or classify(answer.error).kind != "overflow":
            return _Asked(answer, calls, shown)
        if calls > SHORTENINGS or len(groups) < 2:
            return _Asked(answer, calls, shown)
        gone = set(groups[: -(-len(groups) // 4)])
        shown = [block for block in shown if block.group not in gone]


def _group_ids(blocks: Sequence[Block]) -> list[str]:
    return list(dict.fromkeys(block.group for block in blocks))


def completed(core: Core, text: str, handle: str | None) -> str:
    """A model's summary with what it is not trusted to keep: goal and progress as they are, and where to look."""
    if not text.strip():
        return ""
    body = text.strip().removeprefix(PREAMBLE).strip()
    goal, progress, lookup = _goal(core), core.progress(), _lookup(handle)
    parts = [PREAMBLE, *([HEADINGS["goal"], goal] if goal else [])]
    if progress:
        parts += [HEADINGS["progress"], *(f"- {line}" for line in progress)]
    parts.append(body)
    if lookup:
        parts += [HEADINGS["lookup"], *(f"- {line}" for line in lookup)]
    return "\n".join(parts)


def _goal(core: Core) -> str:
    """The goal as the summary states it: not where the message that gave it stays in the window."""
    if core.goal_block is not None and core.goal_block in core.tracker.window and not core.goal_is_given:
        return goal_text("", core.constraints, core.task.success_criteria)
    return goal_text(core.goal, core.constraints, core.task.success_criteria)


def _lookup(handle: str | None) -> list[str]:
    return [f"the messages this replaces, whole: {handle}"] if handle else []


def _archived(blocks: Sequence[Block]) -> list[str]:
    return [_labelled(block) for block in blocks if block.text]


def _labelled(block: Block) -> str:
    name = f" of {block.tool_name}" if block.tool_name else ""
    return f"[turn {block.turn}, {block.content_type}{name}]\n{block.text}"


def _originals(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    """Messages that come back shortened keep a handle of their own."""
    return [
        (handle_of(block.id), block.text)
        for block in blocks
        if block.content_type == "user_message" and block.text and block.handle is None
    ]


def _offer(core: Core, plan: CompactionPlan, text: str, target: int, *, fidelity: float | None = None) -> Offer:
    goal = _goal(core)
    standing = core.raw(core.standing())
    return Offer(
        text=text,
        tokens_before=plan.removed_tokens,
        tokens_after=core.counter.count(text) + plan.straddler_tokens,
        window_before=core.tracker.window.tokens - standing,
        target_tokens=target - standing,
        required_sections=("goal",) if goal else (),
        pinned=(goal,) if goal else (),
        fidelity=fidelity,
    )


def _apply(core: Core, made: _Made, *, trigger: str, target: int, started: float) -> Outcome:
    plan, draft, facts, handle = made.plan, made.draft, made.facts, made.handle
    tracker = core.tracker
    reason = reject(_offer(core, plan, draft.text, target))
    results = () if reason else tuple(_results(core, plan, draft.text, handle))
    by_component: dict[Component, int] = {}
    for block in plan.removed:
        component = COMPONENT_OF[block.content_type]
        by_component[component] = by_component.get(component, 0) + block.tokens
    after = sum(block.tokens for block in results)
    event = tracker.compress(
        ContentCompressed(
            strategy="compaction",
            trigger=trigger,
            outcome="rejected" if reason else "accepted",
            tokens_before=plan.removed_tokens,
            tokens_after=after if not reason else core.counter.count(draft.text),
            removed=tuple(block.id for block in plan.removed),
            results=tuple(block.id for block in results),
            removed_by_component=by_component,
            model_calls=draft.model_calls,
            duration_seconds=core.timer() - started,
            method=draft.method,
            reason=reason or draft.rejected,
        ),
        results,
    )
    if reason:
        if core.breaker.failed():
            tracker.record(BreakerOpened(core.breaker.reason, core.breaker.attempts))
        return NOTHING
    core.forget(plan.removed)
    core.breaker.succeeded(tracker.turn)
    core.compacted_turn = tracker.turn
    tracker.record(
        evaluate(
            plan.removed,
            list(tracker.window),
            digest=core.digest,
            recoverable=handle is not None,
            facts=facts,
            of=event.event_id,
        )
    )
    freed = plan.removed_tokens - after
    done = f"compacted {len(plan.removed)} blocks into a summary ({draft.method}), {freed:,} tokens freed"
    return Outcome(done, freed, core.used() > core.raw(target))


def _results(core: Core, plan: CompactionPlan, text: str, handle: str | None) -> list[Block]:
    source = core.counter.source
    results = [
        core.tracker.stand_in(
            "summary",
            text,
            core.counter.count(text),
            replaces=plan.removed[0].id,
            count_source=source,
            handle=handle,
        )
    ]
    user = plan.straddler
    if user is not None:
        own = (user.handle or handle_of(user.id)) if handle else None
        note = f", original: {own}" if own else ""
        short = middle_out(user.text or "", plan.straddler_tokens, core.counter, note=note)
        tokens = core.counter.count(short)
        if short and tokens < user.tokens:
            results.append(
                core.tracker.stand_in(
                    "user_message", short, tokens, replaces=user.id, count_source=source, handle=own
                )
            )
    return results
