"""Lets a language model write the questions; each must then be answered by the original, or it is dropped."""

from __future__ import annotations

from typing import Final

from windowpane.effects.commands import CallModel, Effect
from windowpane.fidelity.judge.prompts import CHUNK_CHARS, chunks, write_prompt
from windowpane.fidelity.judge.questions import KINDS, MAXIMUM_QUESTIONS, Question, QuestionKind

MAXIMUM_PARTS: Final = 4
"""Parts of a long text that questions are written about, spread over it."""


def write_questions(
    text: str, *, limit: int = MAXIMUM_QUESTIONS, chunk_chars: int = CHUNK_CHARS
) -> Effect[tuple[Question, ...]]:
    """At most *limit* questions about *text* with the answers it gives; none where the model wrote none."""
    parts = list(chunks(text, chunk_chars))
    if len(parts) > MAXIMUM_PARTS:
        last = len(parts) - 1
        parts = [parts[round(n * last / (MAXIMUM_PARTS - 1))] for n in range(MAXIMUM_PARTS)]
    written: dict[str, Question] = {}
    for part in parts:
        answer = yield CallModel(*write_prompt(part, count=max(1, -(-limit // len(parts)))))
        if not answer.failed:
            for question in read_questions(str(answer.value or "")):
                written.setdefault(question.text, question)
    return tuple(written.values())[:limit]


def read_questions(said: str) -> tuple[Question, ...]:
    """The lines that have exactly the form asked for; everything else is passed over."""
    found = []
    for line in said.splitlines():
        fields = [field.strip() for field in line.strip().removeprefix("- ").split("|", 2)]
        kind = _kind(fields[0])
        if len(fields) == 3 and kind is not None and all(fields):
            found.append(Question(fields[1], kind, fields[2]))
    return tuple(found)


def _kind(word: str) -> QuestionKind | None:
    return next((kind for kind in KINDS if kind == word.lower()), None)
