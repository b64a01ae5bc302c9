"""A judge that is no model: it matches strings. It proves that a suite runs; it does not measure recall."""

from __future__ import annotations

import re
from typing import Final

from windowpane.fidelity.facts import TOKEN, significant
from windowpane.fidelity.judge.prompts import ANSWER, COMPARE
from windowpane.fidelity.probe import SENTENCE_SHARE

STRING_MATCH: Final = "string-match (no model)"
"""What it is called wherever its scores are shown."""
ANSWER_LINES: Final = 3
_FENCED: Final = re.compile(r"<<<content (\w+)\n(.*?)\n\1 content>>>", re.DOTALL)
_MINIMUM_OVERLAP: Final = 0.3
"""Of a question's words that a line must hold to be offered as its answer."""


def string_match(system: str, user: str) -> str:
    """Answer a judge's prompt by matching words.

    Gives the lines nearest to a question, or whether two answers share their words. Raises `ValueError` for any
    other prompt.
    """
    fenced = [body for _, body in _FENCED.findall(user)]
    if system == COMPARE and len(fenced) == 2:
        return "yes" if _same(fenced[0], fenced[1]) else "no"
    if system == ANSWER and len(fenced) == 1:
        return _nearest(user.rsplit("Question: ", 1)[-1], fenced[0])
    raise ValueError("the string-matching judge only answers questions and compares answers")


string_match.name = STRING_MATCH  # type: ignore[attr-defined]  # how events and reports call it


def _nearest(question: str, material: str) -> str:
    wanted = set(significant(TOKEN.findall(question)))
    rated = []
    for place, line in enumerate(material.splitlines()):
        overlap = len(wanted.intersection(significant(TOKEN.findall(line)))) / max(1, len(wanted))
        if overlap >= _MINIMUM_OVERLAP:
            rated.append((overlap, place, line.strip()))
    best = sorted(rated, reverse=True)[:ANSWER_LINES]
    return " / ".join(line for _, _, line in best) or "UNKNOWN"


def _same(first: str, second: str) -> bool:
    """Whether the shorter answer's names and numbers, and most of its words, are in the other."""
    shorter, longer = sorted((_tokens(first), _tokens(second)), key=len)
    names = {token for token in shorter if not token.isalpha()}
    return bool(shorter) and names <= longer and len(shorter & longer) >= SENTENCE_SHARE * len(shorter)


def _tokens(text: str) -> set[str]:
    words = TOKEN.findall(text)
    return set(significant(words)) or {word.lower() for word in words}
