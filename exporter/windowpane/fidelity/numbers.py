"""Doubt about numbers: a text has another number beside the same word, and the number itself nowhere as close."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from windowpane.fidelity.clauses import Term, read_terms
from windowpane.fidelity.evidence import MINIMUM_COMMON, SUPPORT, UNSUPPORTED_WEIGHT, Near
from windowpane.fidelity.statement_index import COMPARISON, Work

CONTEXT: Final = 4
"""Terms on each side of a number that are its context."""
MARGIN: Final = 0.15
"""Counts and sums are as close to other numbers by chance."""
MAXIMUM_OCCURRENCES: Final = 10_000
"""Occurrences of a number outside prose that are looked at."""
TERMS_COMPARED: Final = 10
"""Work of comparing two contexts."""
LINE_COMPARED: Final = 40
"""Work of looking at one of these."""
LINE_CHARACTERS: Final = 50
"""Characters of a line on each side of a number in which its context is looked for."""

_LIST_NUMBER: Final = re.compile(r"\s*(?:[-*>#]+\s*)?(?:\*\*)?\d{1,3}[.)]\s")


class _Number(NamedTuple):
    """A number in a sentence."""

    text: str
    beside: frozenset[str]
    """The terms before and after it."""
    context: frozenset[str]

    def closeness(self, common: int) -> float:
        """Return how close a context is that has so many terms of this one's."""
        return common / (len(self.context) + 0.5)


def number_doubt(text: str, sources: Sequence[Near], lines: str, work: Work) -> float:
    """Return how strongly the evidence contradicts the numbers of a claim, 0 to 1.

    *lines* is the text that is not prose, such as tool output, in lower case: it supports a
    number, and never contradicts one.
    """
    numbers = [number for number in _numbers(text) if number.context]
    if not numbers:
        return 0.0
    sentences = (sentence for source in sources for sentence in source.with_digits(least=MINIMUM_COMMON))
    near: list[_Number] = []
    for sentence in sentences:
        work.spend(COMPARISON)
        if work.is_used_up():
            return 0.0
        near.extend(_numbers(sentence))
    doubt = 0.0
    for number in numbers:
        work.spend(len(near) * TERMS_COMPARED)
        if work.is_used_up():
            return 0.0
        support, other = _support(number, near), _other(number, near)
        enough = max(SUPPORT, other - MARGIN)
        if support < enough:
            support = max(support, _support_of_lines(number, lines, work, enough=enough))
        doubt += max(0.0, other - support - MARGIN) + UNSUPPORTED_WEIGHT * max(0.0, SUPPORT - support)
    return min(1.0, doubt)


@lru_cache(maxsize=4_096)
def _numbers(text: str) -> tuple[_Number, ...]:
    """Return the numbers of a sentence, without the one that numbers a list."""
    terms = read_terms(text) if any(map(str.isdigit, text)) else ()
    return tuple(
        _Number(term.text, _around(terms, position, 1), _around(terms, position, CONTEXT))
        for position, term in enumerate(terms)
        if term.is_number and not (position == 0 and _LIST_NUMBER.match(text))
    )


def _around(terms: Sequence[Term], position: int, reach: int) -> frozenset[str]:
    around = terms[max(0, position - reach) : position + reach + 1]
    return frozenset(term.text for term in around if not term.is_number)


def _support(number: _Number, near: Iterable[_Number]) -> float:
    """Return how close the context of the number itself is where it is closest."""
    common = (len(number.context & one.context) for one in near if one.text == number.text)
    return number.closeness(max(common, default=0))


def _other(number: _Number, near: Iterable[_Number]) -> float:
    """Return how close the context of another number beside the same word is."""
    others = (one for one in near if one.text != number.text and not number.beside.isdisjoint(one.beside))
    common = max((len(number.context & one.context) for one in others), default=0)
    return number.closeness(common) if common >= MINIMUM_COMMON else 0.0


def _support_of_lines(number: _Number, lowered: str, work: Work, *, enough: float) -> float:
    """Return how close the context of the number in any line of a text is, as far as *enough*."""
    context = [term.lower() for term in number.context]
    find = lowered.find
    best = 0.0
    for match in islice(re.finditer(re.escape(number.text.lower()) + r"(?!\w)", lowered), MAXIMUM_OCCURRENCES):
        work.spend(LINE_COMPARED)
        if work.is_used_up():
            break
        at, end = match.span()
        if lowered[at - 1 : at].isalnum():
            continue
        start = max(lowered.rfind("\n", max(0, at - LINE_CHARACTERS), at), at - LINE_CHARACTERS, 0)
        stop = find("\n", end, end + LINE_CHARACTERS)
        stop = stop if stop >= 0 else end + LINE_CHARACTERS
        common = sum(find(term, start, stop) >= 0 for term in context)
        best = max(best, number.closeness(common))
        if best >= enough:
            break
    return best
