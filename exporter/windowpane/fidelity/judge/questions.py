"""Questions about a text: made from the facts it states, or written by a language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Final, Literal, get_args

from windowpane.core.choices import MAXIMUM_QUESTIONS
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import CallModel, Effect
from windowpane.effects.model_calls import fenced
from windowpane.fidelity.facts import extract_facts
from windowpane.fidelity.judge.prompts import WRITE, chunks
from windowpane.fidelity.languages import DECISION
from windowpane.fidelity.passages import PROSE_TYPES, Passage
from windowpane.fidelity.situation import Fact, FactKind

Dimension = Literal["key_facts", "continuity", "decisions"]
QuestionKind = Literal["recall", "artifact", "continuation", "decision", "rule"]
"""A single fact; a file or name of the work; its state; a decision and its reason; a standing instruction."""
KINDS: Final[tuple[QuestionKind, ...]] = get_args(QuestionKind)
DIMENSION_OF: Final[dict[QuestionKind, Dimension]] = {
    "recall": "key_facts",
    "artifact": "key_facts",
    "continuation": "continuity",
    "decision": "decisions",
    "rule": "continuity",
}
WEIGHTS: Final[dict[Dimension, float]] = {"key_facts": 0.5, "continuity": 0.25, "decisions": 0.25}
"""Weights of the dimensions; a dimension without questions gives its weight to the others."""
LINE_CHARS: Final = 200
"""Characters of the line around a blank that a question shows."""
CONTEXT_WORDS: Final = 3
"""Minimum significant words beside a blank."""
_WORDING: Final[dict[FactKind, tuple[QuestionKind, str]]] = {
    "setting": ("recall", ""),
    "failed_command": ("recall", "Which command failed that involves {subject}, and with which message?"),
    "name": ("artifact", ""),
    "changed_file": ("artifact", ""),
    "goal": ("continuation", "What is the goal of the task that involves {subject}?"),
    "rule": ("rule", "Which rule about {subject} must be followed?"),
    "open_work": ("continuation", "What work on {subject} is still open?"),
    "decision": ("decision", "What was decided about {subject}, and why?"),
}
"""Kinds and wordings of the questions about facts; a name has none, but a blank in its place."""
MAXIMUM_PARTS: Final = 4
"""Parts of a long text that questions are written about, spread over it."""
_BLANK: Final = "____"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and its key if one was written."""

    text: str
    kind: QuestionKind
    expected: str = ""
    """The right answer; empty if the original gives it."""
    dimension: Dimension | None = None
    """Overrides the dimension of its kind."""
    is_confirmed: bool = False
    """True where the original is known to give the expected answer."""

    @property
    def measures(self) -> Dimension:
        """The dimension its outcome counts towards."""
        return self.dimension or DIMENSION_OF[self.kind]


def questions_from(blocks: Sequence[Block], *, limit: int = MAXIMUM_QUESTIONS) -> tuple[Question, ...]:
    """Return at most *limit* questions about the facts of *blocks*, alternating kinds; deterministic.

    Questions of a kind are spread over the whole text.
    """
    pools: dict[QuestionKind, list[Question]] = {kind: [] for kind in KINDS}
    positions = {block.id: position for position, block in enumerate(blocks)}
    for fact in sorted(extract_facts(blocks), key=lambda fact: positions.get(fact.block or "", -1)):
        question = _question(fact, blocks)
        if question is not None and question.text not in {other.text for other in pools[question.kind]}:
            pools[question.kind].append(question)
    rounds = zip_longest(*map(_spread, pools.values()))
    return tuple(islice((question for one in rounds for question in one if question is not None), limit))


def _spread(pool: list[Question]) -> list[Question]:
    """Return the pool as last, first, middle, then the rest, so that any prefix covers the whole text."""
    order, spans = pool[-1:], [pool[:-1]]
    while spans:
        if span := spans.pop(0):
            middle = len(span) // 2 if len(order) > 1 else 0
            order.append(span[middle])
            spans += [span[middle + 1 :], span[:middle]]
    return order


def _question(fact: Fact, blocks: Sequence[Block]) -> Question | None:
    if fact.kind not in _WORDING:
        return None
    kind, wording = _WORDING[fact.kind]
    if fact.kind == "setting":
        key, value = fact.text.split("=", 1)
        return Question(f"Which value does `{key}` have?", kind, value)
    if not wording:
        return _cloze(fact, blocks, kind)
    subject = _subject(fact.text)
    return Question(wording.format(subject=subject), kind, fact.text) if subject else None


def _subject(sentence: str) -> str:
    """Return at most two of the most specific words of a sentence: names first, then long words; never all."""
    spelled = (sentence[term.start : term.end].strip(".,") for term in Passage(sentence).terms)
    words = list(dict.fromkeys(word for word in spelled if not DECISION.fullmatch(word)))
    if len(words) < 3:
        return ""
    telling = sorted(words, key=lambda word: (word.isalpha(), -len(word)))[:2]
    return " and ".join(f"`{word}`" for word in words if word in telling)


def _cloze(fact: Fact, blocks: Sequence[Block], kind: QuestionKind) -> Question | None:
    """Return the question that shows the last line of prose with the name, a blank in its place."""
    for block in reversed(blocks):
        text = block.text or ""
        if block.content_type not in PROSE_TYPES or fact.text not in text:
            continue
        for line in reversed([line.strip() for line in text.split("\n") if fact.text in line]):
            at = line.index(fact.text)
            start = max(0, at - LINE_CHARS // 2)
            excerpt = line[start : at + len(fact.text) + LINE_CHARS // 2].replace(fact.text, _BLANK)
            if len(Passage(excerpt.replace(_BLANK, " ")).positions) >= CONTEXT_WORDS:
                wording = f"Which name or path fills the blank in this line from the work: “{excerpt}”"
                return Question(wording, kind, fact.text)
    return None


def write_questions(text: str, *, limit: int = MAXIMUM_QUESTIONS) -> Effect[tuple[Question, ...]]:
    """Return at most *limit* questions about *text* with their answers, as written by the model."""
    parts = list(chunks(text))
    if len(parts) > MAXIMUM_PARTS:
        last = len(parts) - 1
        parts = [parts[round(n * last / (MAXIMUM_PARTS - 1))] for n in range(MAXIMUM_PARTS)]
    written: dict[str, Question] = {}
    for part in parts:
        prompt = WRITE.format(count=max(1, math.ceil(limit / len(parts))))
        answer = yield CallModel(prompt, fenced([part]))
        if not answer.failed:
            for question in read_questions(str(answer.value or "")):
                written.setdefault(question.text, question)
    return tuple(written.values())[:limit]


def read_questions(reply: str) -> tuple[Question, ...]:
    """Return the questions in the lines that have the requested form; other lines are skipped."""
    questions = []
    for line in reply.splitlines():
        fields = [field.strip() for field in line.strip().removeprefix("- ").split("|", 2)]
        kind = next((kind for kind in KINDS if kind == fields[0].lower()), None)
        if len(fields) == 3 and kind is not None and all(fields):
            questions.append(Question(fields[1], kind, fields[2]))
    return tuple(questions)
