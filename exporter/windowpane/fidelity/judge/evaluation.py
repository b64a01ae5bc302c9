"""Judges one compression of a session: from the blocks that left and those in sight to `fidelity.evaluated`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from windowpane.core.events import FactOutcome, FidelityEvaluated
from windowpane.core.protocols import Digester
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import Effect
from windowpane.fidelity.judge.judge import Judgement, JudgeSettings, judge
from windowpane.fidelity.judge.questions import MAXIMUM_QUESTIONS, Question, questions_from
from windowpane.fidelity.judge.writing import write_questions
from windowpane.fidelity.probe import MAXIMUM_OUTCOMES, MINIMUM_COVERAGE, WORST_FIRST


@dataclass(frozen=True, slots=True)
class Compression:
    """What a compression did, as a judge needs it: texts are those of the moment it was applied."""

    event_id: str
    removed: tuple[Block, ...]
    visible: tuple[Block, ...]
    """All that the model could see afterwards."""
    recoverable: bool = False
    earlier: str = ""
    """What earlier compressions of the session took away, so that a chain is judged against its beginning."""
    carried: tuple[Question, ...] = ()
    """Questions with keys that earlier compressions were asked, asked again."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a judge found, as an event and in full."""

    event: FidelityEvaluated
    judgement: Judgement | None = None
    """None where nothing could be asked."""

    @property
    def keyed(self) -> tuple[Question, ...]:
        """The questions with the original's answers, to be asked again after the next compression."""
        judged = () if self.judgement is None else self.judgement.judged
        return tuple(replace(item.question, expected=item.key) for item in judged)


def evaluate_compression(
    compression: Compression,
    *,
    judge_name: str,
    digest: Digester,
    settings: JudgeSettings | None = None,
    limit: int = MAXIMUM_QUESTIONS,
    write: bool = False,
) -> Effect[Evaluation]:
    """Ask the judge about one compression; with *write* the model writes the questions, else facts do.

    Half of the questions at most come from earlier compressions.
    """
    removed = compression.removed
    total = sum(block.tokens for block in removed)
    coverage = sum(block.tokens for block in removed if block.text) / total if total else 0.0
    if coverage < MINIMUM_COVERAGE:
        reason = f"the text of only {coverage:.0%} of the removed tokens was recorded"
        return Evaluation(
            FidelityEvaluated("judge", None, coverage, of=compression.event_id, judge=judge_name, reason=reason)
        )
    original = "\n\n".join(part for part in (compression.earlier, text_of(removed)) if part)
    carried = compression.carried[-(limit // 2) :] if limit > 1 else ()
    room = limit - len(carried)
    fresh: tuple[Question, ...] = ()
    if write:
        fresh = yield from write_questions(text_of(removed), limit=room)
    fresh = fresh or questions_from([block for block in removed if block.content_type != "summary"], limit=room)
    settings = replace(settings or JudgeSettings(), recoverable=compression.recoverable)
    questions = list({question.text: question for question in (*carried, *fresh)}.values())
    judgement = yield from judge(original, text_of(compression.visible), questions, settings=settings)
    event = as_event(judgement, judge_name=judge_name, coverage=coverage, digest=digest, of=compression.event_id)
    return Evaluation(event, judgement)


def as_event(
    judgement: Judgement, *, judge_name: str, coverage: float, digest: Digester, of: str | None = None
) -> FidelityEvaluated:
    """The judgement as the event that metrics and alerts read; it names the judge."""
    fates = [item.fate for item in judgement.judged]
    worst = sorted(judgement.judged, key=lambda item: WORST_FIRST.index(item.fate))[:MAXIMUM_OUTCOMES]
    return FidelityEvaluated(
        method="judge",
        score=judgement.score,
        coverage=coverage,
        key_facts=judgement.key_facts,
        continuity=judgement.continuity,
        decisions=judgement.decisions,
        facts=tuple(
            FactOutcome(item.question.kind, item.fate, digest(text), text)
            for item in worst
            for text in (f"{item.question.text} {item.key}",)
        ),
        facts_total=len(fates),
        facts_kept=fates.count("kept"),
        facts_recoverable=fates.count("recoverable"),
        facts_lost=fates.count("lost"),
        facts_contradicted=fates.count("contradicted"),
        of=of,
        judge=judge_name,
        reason=judgement.reason,
    )


def text_of(blocks: Sequence[Block]) -> str:
    """Everything the blocks say, whole: a fact is as likely at the end of a long result as at its beginning."""
    return "\n\n".join(
        f"[{block.content_type.replace('_', ' ')}]\n{block.text}" for block in blocks if block.text
    )
