"""The judge: answers questions from the compressed text and compares the answers with those of the original.

`judge` is a generator that yields model calls; `effects.model_calls` runs it. The key of a
question comes from the original alone, and a question that the original does not answer is dropped. Every
question is asked several times, since a single answer of a model proves little; each answer is compared with the
key in a blind order. Not knowing is never agreement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

from windowpane.core.choices import MAXIMUM_QUESTIONS, MINIMUM_REPLICATES
from windowpane.core.events import FidelityEvaluated
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import FATES, Fate
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import CallModel, Effect
from windowpane.effects.model_calls import fenced
from windowpane.fidelity.authorship import labeled
from windowpane.fidelity.judge.prompts import ANSWER, COMPARE, Verdict, chunks, read_answer, read_verdict
from windowpane.fidelity.judge.questions import (
    KINDS,
    WEIGHTS,
    Dimension,
    Question,
    QuestionKind,
    questions_from,
    write_questions,
)
from windowpane.fidelity.probe import unevaluated, with_outcomes

MINIMUM_READ: Final = 0.5
"""Share of the questions that must have a readable outcome for a score."""
FAILURES_IN_A_ROW: Final = 3
"""A judgment stops after this many failed calls in a row."""
LITERAL_CHARS: Final = 4
"""A key of at least this length that is in the original word for word needs no model to confirm it."""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """One question's outcome."""

    question: Question
    key: str
    """The original's answer."""
    fates: tuple[Fate, ...]
    """Fates of the readable replicates."""
    answers: tuple[str, ...]
    """Answers from the compressed text; empty for not knowing."""

    @property
    def credit(self) -> float:
        """Mean over the replicates, 0 to 1."""
        return self.fates.count("kept") / len(self.fates)

    @property
    def fate(self) -> Fate:
        """`kept` if more than half of the replicates are; else the most frequent, in a tie the most severe."""
        if 2 * self.fates.count("kept") > len(self.fates):
            return "kept"
        return max(reversed(FATES[1:]), key=self.fates.count)


@dataclass(frozen=True, slots=True)
class Judgment:
    """The retained knowledge after one compression; ratios 0 to 1, None if nothing was asked."""

    score: float | None
    shares: Mapping[Dimension, float | None] = field(default_factory=dict)
    """Mean credit of the questions of each dimension."""
    judged: tuple[JudgedQuestion, ...] = ()
    dropped: tuple[Question, ...] = ()
    """Questions that the original does not answer."""
    unread: tuple[Question, ...] = ()
    """Questions with no readable outcome."""
    calls: int = 0
    reason: str = ""
    """The reason for a missing score."""

    @property
    def by_kind(self) -> dict[QuestionKind, float]:
        """Mean credit of the questions of each kind that was asked."""
        kinds = ((kind, [one.credit for one in self.judged if one.question.kind == kind]) for kind in KINDS)
        return {kind: sum(credit) / len(credit) for kind, credit in kinds if credit}

    @property
    def spread(self) -> float | None:
        """Difference between the highest and the lowest score of the repetitions; None below two."""
        rounds = zip(*(item.fates for item in self.judged), strict=False)
        scores = [fates.count("kept") / len(fates) for fates in rounds]
        return max(scores) - min(scores) if len(scores) > 1 else None


class _Stopped(Exception):  # noqa: N818 (control flow: the model failed too often)
    """Ends a judgment early."""


def judge(
    original: str,
    compressed: str,
    questions: Sequence[Question],
    *,
    replicates: int = MINIMUM_REPLICATES,
    recoverable: bool = False,
) -> Effect[Judgment]:
    """Judge how many *questions* about *original* can still be answered from *compressed*.

    They are asked *replicates* times. The fate of an unknown answer is `recoverable` where the model can see a
    handle that fetches the originals.
    """
    if not questions:
        return Judgment(None, reason="there are no questions")
    asker = _Asker(replicates, "recoverable" if recoverable else "lost")
    judged: list[JudgedQuestion] = []
    dropped: list[Question] = []
    try:
        for question in questions:
            key = question.expected if question.is_confirmed else (yield from _key(asker, original, question))
            if key is None:
                dropped.append(question)
            else:
                judged.append((yield from _judge_one(asker, compressed, question, key)))
    except _Stopped as stopped:
        return Judgment(None, dropped=tuple(dropped), calls=asker.calls, reason=f"the judge failed: {stopped}")
    return _summed(judged, dropped, asker.calls)


def _key(asker: _Asker, original: str, question: Question) -> Effect[str | None]:
    """Return the original's answer; None if it has none, or another one than expected."""
    expected = read_answer(question.expected)
    if question.expected and expected is None:
        return None
    if expected is not None and len(expected) >= LITERAL_CHARS and _plain(expected) in _plain(original):
        return expected
    answer = yield from asker.answer(question.text, original)
    if expected is None or not answer:
        return answer or None
    agreed = yield from asker.agree(question.text, expected, answer, replicate=0)
    return expected if agreed == "yes" else None


def _judge_one(asker: _Asker, compressed: str, question: Question, key: str) -> Effect[JudgedQuestion]:
    fates: list[Fate] = []
    answers: list[str] = []
    for replicate in range(asker.replicates):
        answer = yield from asker.answer(question.text, compressed)
        fate = None if answer is None else asker.unknown
        if answer:
            agreed = yield from asker.agree(question.text, key, answer, replicate=replicate)
            fate = None if agreed is None else "kept" if agreed == "yes" else "contradicted"
        if fate is not None:
            fates.append(fate)
            answers.append(answer or "")
    return JudgedQuestion(question, key, tuple(fates), tuple(answers))


class _Asker:
    """Asks one question per prompt and reads the answers strictly."""

    def __init__(self, replicates: int, unknown: Fate) -> None:
        self.replicates = replicates
        self.unknown = unknown
        self.calls = 0
        self._failures = 0

    def answer(self, question: str, text: str) -> Effect[str | None]:
        """Return the answer of the last part of *text* that has one; empty for not knowing, None for no reply."""
        heard = False
        for part in reversed(list(chunks(text))):
            reply = yield from self._call(ANSWER, f"{fenced([part])}\n\nQuestion: {question}")
            if reply is None:
                continue
            heard = True
            answer = read_answer(reply)
            if answer is not None:
                return answer
        return "" if heard else None

    def agree(self, question: str, key: str, answer: str, *, replicate: int) -> Effect[Verdict | None]:
        """Return whether *answer* agrees with *key*; a hash of the content decides their order in the prompt."""
        drawn = blake2b(f"{question}\0{key}\0{replicate}".encode("utf-8", "surrogatepass"), digest_size=1)
        first, second = map(fenced, ([key], [answer]) if drawn.digest()[0] % 2 else ([answer], [key]))
        answers = f"First answer:\n{first}\n\nSecond answer:\n{second}"
        reply = yield from self._call(COMPARE, f"Question: {question}\n\n{answers}")
        return None if reply is None else read_verdict(reply)

    def _call(self, system: str, user: str) -> Effect[str | None]:
        self.calls += 1
        answer = yield CallModel(system, user)
        if not answer.failed:
            self._failures = 0
            return str(answer.value or "").strip() or None  # an empty reply is not an answer, not even "unknown"
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            raise _Stopped(f"{type(answer.error).__name__}: {answer.error}"[:200])
        return None


def _summed(judged: Sequence[JudgedQuestion], dropped: Sequence[Question], calls: int) -> Judgment:
    read = [item for item in judged if item.fates]
    unread = tuple(item.question for item in judged if not item.fates)
    by_dimension = {name: [one.credit for one in read if one.question.measures == name] for name in WEIGHTS}
    shares = {name: sum(credit) / len(credit) if credit else None for name, credit in by_dimension.items()}
    score, reason = weighted_score(shares), ""
    if not judged:
        reason = "the original answers none of the questions"
    elif len(read) < MINIMUM_READ * len(judged):
        score, reason = None, f"only {len(read)} of {len(judged)} questions had a readable verdict"
    return Judgment(score, shares, tuple(read), tuple(dropped), unread, calls=calls, reason=reason)


def weighted_score(shares: Mapping[Dimension, float | None]) -> float | None:
    """Return the weighted mean of the dimensions that have a share; None if none has."""
    present = [(WEIGHTS[name], share) for name, share in shares.items() if share is not None]
    total = math.fsum(weight for weight, _ in present)  # `sum` of fractions differs between Pythons
    return math.fsum(weight * share for weight, share in present) / total if present else None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class JudgedCompression:
    """A compression to judge, with the texts of the moment it was applied."""

    event_id: str
    removed: tuple[Block, ...]
    visible: tuple[Block, ...]
    """Everything that the model could see afterwards."""
    carried: tuple[Question, ...] = ()
    """Questions with keys from earlier compressions, asked again, so that a chain is judged against its start."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A judgment, as an event and in full."""

    event: FidelityEvaluated
    judgment: Judgment | None = None
    """None if nothing could be asked."""

    @property
    def keyed(self) -> tuple[Question, ...]:
        """The questions with the original's answers, to be asked again after the next compression."""
        judged = () if self.judgment is None else self.judgment.judged
        return tuple(replace(item.question, expected=item.key, is_confirmed=True) for item in judged)


def judge_compression(
    compression: JudgedCompression,
    *,
    judge_name: str,
    digest: Digester,
    replicates: int = MINIMUM_REPLICATES,
    limit: int = MAXIMUM_QUESTIONS,
    write: bool = False,
) -> Effect[Evaluation]:
    """Judge one compression; if *write*, the model writes the questions, else they are made from facts.

    Half of the questions at most come from earlier compressions.
    """
    removed = compression.removed
    event = replace(unevaluated("judge", removed, of=compression.event_id), judge=judge_name)
    if event.reason:
        return Evaluation(event)
    original = text_of(removed)
    carried = compression.carried[-(limit // 2) :] if limit > 1 else ()
    room = limit - len(carried)
    fresh: tuple[Question, ...] = ()
    if write:
        fresh = yield from write_questions(original, limit=room)
    fresh = fresh or questions_from([block for block in removed if block.content_type != "summary"], limit=room)
    questions = list({question.text: question for question in (*carried, *fresh)}.values())
    removed_ids = {block.id for block in removed}
    recoverable = any(one.handle is not None and one.replaces in removed_ids for one in compression.visible)
    judgment = yield from judge(
        original, text_of(compression.visible), questions, replicates=replicates, recoverable=recoverable
    )
    outcomes = [
        (item.question.kind, item.fate, f"{item.question.text} {item.key}", None) for item in judgment.judged
    ]
    event = replace(
        with_outcomes(event, outcomes, digest),
        score=judgment.score,
        reason=judgment.reason,
        spread=judgment.spread,
        key_facts=judgment.shares.get("key_facts"),
        continuity=judgment.shares.get("continuity"),
        decisions=judgment.shares.get("decisions"),
    )
    return Evaluation(event, judgment)


def text_of(blocks: Sequence[Block]) -> str:
    """Return the text of all blocks, untruncated: a long result may state a fact at its end."""
    return "\n\n".join(
        labeled(block.content_type.replace("_", " "), block.text) for block in blocks if block.text
    )
