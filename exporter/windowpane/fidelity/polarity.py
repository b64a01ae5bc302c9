"""Doubt about negations: a text affirms in the same context what a claim negates, or negates what it affirms.

The context of a term are the terms around it. Evidence against a claim counts by how much closer its context
is than that of anything which agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.fidelity.clauses import Term, is_doubtful, read_terms
from windowpane.fidelity.evidence import MINIMUM_COMMON, SUPPORT, UNSUPPORTED_WEIGHT, Near
from windowpane.fidelity.statements import NEGATION

CONTEXT: Final = 6
"""Terms on each side of a term that are its context."""
EVIDENCE_CONTEXT: Final = 8
"""Terms on each side of the same term elsewhere in which the context is looked for."""
UNREAL_WEIGHT: Final = 0.4
"""Weight of evidence that is a wish, a plan, a condition, a question or the past."""
UNCLEAR_TERMS: Final = 4
"""With a negation so close to a term, the sentence does not clearly affirm it."""


def polarity_doubt(text: str, sources: Sequence[Near]) -> float:
    """Return how strongly *sources* contradict what a claim affirms and negates, 0 to 1."""
    denying = [] if is_doubtful(text) else [source.denying(least=1 + MINIMUM_COMMON) for source in sources]
    if not any(denying) and not NEGATION.search(text):
        return 0.0
    terms = read_terms(text)
    both = {term.text for term in terms if term.negated} & {term.text for term in terms if not term.limited}
    doubt = 0.0
    for position, term in enumerate(terms):
        if term.text in both or term.pending or (term.limited and not term.negated):
            continue
        least = 0.0
        if term.negated:
            least = UNSUPPORTED_WEIGHT * SUPPORT
            opposed = [
                source.terms(number)
                for source in sources
                for number in source.having(term.text, least=1 + MINIMUM_COMMON)
            ]
        else:
            opposed = [other for by_term in denying for other in by_term.get(term.text, ())]
        if not opposed and not term.negated:
            continue
        pivot = _Pivot(terms, position)
        against = pivot.against(opposed)
        if max(against, least) > doubt:
            agreeing = max(pivot.agreeing(source, enough=max(against, SUPPORT)) for source in sources)
            unsupported = UNSUPPORTED_WEIGHT * (SUPPORT - agreeing) if term.negated else 0.0
            doubt = max(doubt, against - agreeing, unsupported)
    return doubt


class _Pivot:
    """A term of a claim, which is affirmed or negated, in its context."""

    def __init__(self, terms: Sequence[Term], position: int) -> None:
        self._term = terms[position]
        around = terms[max(0, position - CONTEXT) : position + CONTEXT + 1]
        self._context = {term.text: term.weight for term in around if term.text != self._term.text}
        self._weight = sum(self._context.values())

    def against(self, sentences: Sequence[Sequence[Term]]) -> float:
        """Return how close the context of the closest opposite in *sentences* is."""
        best = 0.0
        for terms in sentences:
            for position, term in enumerate(terms):
                if term.text == self._term.text and self._is_opposite(term, terms, position):
                    is_unreal = term.pending or (term.unreal and not (self._term.modal or self._term.unreal))
                    weight = UNREAL_WEIGHT if is_unreal else 1.0
                    best = max(best, weight * self._closeness(terms, position, MINIMUM_COMMON))
        return best

    def agreeing(self, source: Near, *, enough: float) -> float:
        """Return how close the closest context with the same polarity is, as far as *enough*."""
        best = 0.0
        for number in source.having(self._term.text, least=2):
            terms = source.terms(number)
            for position, term in enumerate(terms):
                if term.text == self._term.text and term.limited == self._term.negated:
                    best = max(best, self._closeness(terms, position, 1))
            if best >= enough:
                break
        return best

    def _is_opposite(self, other: Term, terms: Sequence[Term], position: int) -> bool:
        if not self._term.negated:
            return other.negated
        near = terms[max(0, position - UNCLEAR_TERMS) : position + UNCLEAR_TERMS]
        return not other.limited and not any(term.negated for term in near)

    def _closeness(self, terms: Sequence[Term], position: int, minimum: int) -> float:
        start, end = max(0, position - EVIDENCE_CONTEXT), position + EVIDENCE_CONTEXT + 1
        around = {term.text for term in terms[start:end]}
        common = [weight for text, weight in self._context.items() if text in around]
        return sum(common) / self._weight if len(common) >= minimum else 0.0
