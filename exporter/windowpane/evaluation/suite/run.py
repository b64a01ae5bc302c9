"""Run of a fidelity suite: compress each case's text, judge the summary, and compare scores with the minimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from windowpane.core.choices import MINIMUM_REPLICATES
from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.effects.model_calls import Model, call_model, fenced, model_name, run_effect
from windowpane.evaluation.suite.document import CaseEntry, Suite, original_of
from windowpane.evaluation.suite.judges import string_match
from windowpane.exceptions import WindowpaneError
from windowpane.fidelity.facts import blocks_of, extract_facts, names_kept
from windowpane.fidelity.judge.judge import (
    JudgedQuestion,
    Judgment,
    judge,
    text_of,
    weighted_score,
)
from windowpane.fidelity.judge.questions import WEIGHTS, Dimension, Question, questions_from
from windowpane.manager.plans.findings import failures_in
from windowpane.manager.plans.prompts import COMPACTION, SHORTER, transcript
from windowpane.manager.plans.summary import summarize

EXTRACTIVE = "extractive (no model)"
MODEL_TIMEOUT_SECONDS = 300.0
"""Timeout of one call; generous, because texts may be long and only a terminal waits."""


@dataclass(frozen=True, slots=True)
class SuiteSetup:
    """The models and settings of a run."""

    counter: TokenCounter
    judge: Model = string_match
    compressor: Model | None = None
    """None takes the embedded extractive summarizer."""
    prompt: str = ""
    """System prompt for the compressor; empty takes the one the manager uses."""
    replicates: int = MINIMUM_REPLICATES
    minimum_score: float | None = None
    """Overrides the minimum of the suite."""

    @property
    def compressor_name(self) -> str:
        """Name of the compressor in reports."""
        return EXTRACTIVE if self.compressor is None else model_name(self.compressor)


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The result of one case."""

    name: str
    minimum_score: float
    judgment: Judgment
    probe: float | None = None
    """Share of names that the summary still contains, found without a model: a lower bound, not recall."""
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str = ""

    @property
    def dimensions(self) -> dict[Dimension, float | None]:
        """Mean credit of the questions of each dimension; None where none was judged."""
        return {name: self.judgment.shares.get(name) for name in WEIGHTS}

    @property
    def passed(self) -> bool:
        """True if the score is known and at least the minimum."""
        return self.judgment.score is not None and self.judgment.score >= self.minimum_score


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The result of a suite; ratios from 0 to 1, over the questions of all cases."""

    suite: str
    judge: str
    compressor: str
    cases: tuple[CaseReport, ...]
    minimum_score: float
    minimums: dict[Dimension, float]

    @property
    def dimensions(self) -> dict[Dimension, float | None]:
        """Mean credit of the questions of each dimension."""
        return {dimension: _mean(self._judged(dimension)) for dimension in WEIGHTS}

    @property
    def score(self) -> float | None:
        """Weighted mean of the dimensions; None where nothing could be judged."""
        return weighted_score(self.dimensions)

    @property
    def failures(self) -> tuple[str, ...]:
        """Reasons why the suite failed; empty if it passed. An unknown score fails."""
        failures: list[str] = []
        if not _reaches(self.score, self.minimum_score):
            failures.append(_below("score", self.score, self.minimum_score))
        for dimension, minimum in self.minimums.items():
            if not _reaches(self.dimensions[dimension], minimum):
                failures.append(_below(dimension, self.dimensions[dimension], minimum))
        for case in self.cases:
            if case.judgment.score is None:
                failures.append(f"case {case.name}: {case.judgment.reason}")
            elif not case.passed:
                failures.append(_below(f"case {case.name}", case.judgment.score, case.minimum_score))
            if case.tokens_after >= case.tokens_before > 0:
                failures.append(f"case {case.name}: the summary is not smaller than the original")
        return tuple(failures)

    def _judged(self, dimension: Dimension) -> list[JudgedQuestion]:
        return [
            item for case in self.cases for item in case.judgment.judged if item.question.measures == dimension
        ]


def run_suite(
    suite: Suite, folder: Path, setup: SuiteSetup, *, progress: Callable[[str], object] | None = None
) -> SuiteReport:
    """Run all cases; one that cannot be run is reported with the reason, and the others continue."""
    minimum = suite.minimum_score if setup.minimum_score is None else setup.minimum_score
    reports = []
    for case in suite.cases:
        if progress is not None:
            progress(case.name)
        floor = 0.0 if case.minimum_score is None else case.minimum_score
        try:
            reports.append(_run_case(case, suite, folder, setup, floor=floor))
        except WindowpaneError as error:
            reports.append(CaseReport(case.name, floor, Judgment(None, reason=str(error))))
    return SuiteReport(
        suite.name,
        model_name(setup.judge),
        setup.compressor_name,
        tuple(reports),
        minimum,
        dict(suite.dimensions),
    )


def _run_case(case: CaseEntry, suite: Suite, folder: Path, setup: SuiteSetup, *, floor: float) -> CaseReport:
    blocks = original_of(case, folder, setup.counter)
    original = text_of(blocks)
    summary = ""
    for part in _parts(blocks, suite.rounds):
        summary = _compress(part, summary, case.goal, suite.summary_tokens, setup)
    questions: Sequence[Question] = [entry.question() for entry in case.questions] or questions_from(blocks)
    judgment = run_effect(
        judge(original, summary, questions, replicates=setup.replicates),
        setup.judge,
        timeout_seconds=MODEL_TIMEOUT_SECONDS,
    )
    return CaseReport(
        name=case.name,
        minimum_score=floor,
        judgment=judgment,
        probe=names_kept(blocks, blocks_of(summary)),
        tokens_before=setup.counter.count(original),
        tokens_after=setup.counter.count(summary),
        summary=summary,
    )


def _compress(blocks: Sequence[Block], previous: str, goal: str, max_tokens: int, setup: SuiteSetup) -> str:
    """Compress the summary so far and the next part of the text."""
    if setup.compressor is None:
        earlier = [previous] if previous else []
        return summarize(
            extract_facts(blocks),
            goal=goal,
            previous=earlier,
            failures=failures_in(blocks),
            max_tokens=max_tokens,
            counter=setup.counter,
        )
    system = setup.prompt or COMPACTION
    parts = [f"[summary of what came before]\n{previous}"] if previous else []
    parts += [f"[goal]\n{goal}"] if goal else []
    user = fenced([*parts, *transcript(blocks, setup.counter)])
    answer = call_model(
        setup.compressor,
        f"{system}\n{SHORTER.format(tokens=max_tokens)}",
        user,
        timeout_seconds=MODEL_TIMEOUT_SECONDS,
    )
    if answer.failed:
        raise WindowpaneError(f"the compressor failed: {type(answer.error).__name__}: {answer.error}")
    return str(answer.value or "")


def _parts(blocks: Sequence[Block], rounds: int) -> list[Sequence[Block]]:
    """Return the blocks in at most *rounds* parts of the same size, none empty."""
    size = -(-len(blocks) // rounds)
    return [blocks[at : at + size] for at in range(0, len(blocks), size)]


def _mean(judged: Sequence[JudgedQuestion]) -> float | None:
    return sum(item.credit for item in judged) / len(judged) if judged else None


def _reaches(value: float | None, minimum: float) -> bool:
    return value is not None and value >= minimum


def _below(name: str, value: float | None, minimum: float) -> str:
    return f"{name} is unknown" if value is None else f"{name} {value:.2f} is below {minimum:.2f}"
