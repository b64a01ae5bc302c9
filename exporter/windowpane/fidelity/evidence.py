"""Sentences that a claim is held against: those of the removed text, and the others of the replacement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from windowpane.fidelity.clauses import Term, read_terms
from windowpane.fidelity.statement_index import COMPARISON, StatementIndex, Work
from windowpane.fidelity.statements import NEGATIONS, Statement
from windowpane.fidelity.tokens import TOKEN

MINIMUM_COMMON: Final = 2
"""Terms of a context that a sentence must have to be evidence."""
SUPPORT: Final = 0.25
"""Share of its context below which a number or negation is unsupported, and so doubtful in itself."""
UNSUPPORTED_WEIGHT: Final = 0.1

_DIGIT: Final = re.compile(r"\d")
_NEGATIONS: Final = frozenset(form for word in NEGATIONS for form in (word, word.capitalize(), word.upper()))


class Evidence:
    """Sentences, looked up by the words that they share with a claim."""

    def __init__(self, claims: Sequence[Statement], sentences: Iterable[str], work: Work) -> None:
        self._index = StatementIndex(claims, work)
        self._work = work
        self.negating: set[int] = set()
        """The numbers of the sentences that negate anything."""
        for number, sentence in enumerate(sentences):
            words = TOKEN.findall(sentence)
            self._index.add(sentence, words)
            if not _NEGATIONS.isdisjoint(words) or "n't" in sentence or "n’t" in sentence:
                self.negating.add(number)
        self._has_digit: dict[int, bool] = {}

    def near(self, claim: Statement, own: int | None) -> Near:
        """Return the sentences that share words with *claim*; *own* is its number if it is one of them."""
        self._work.spend(self._index.postings_of(claim))
        shared = Counter[int]() if self._work.is_used_up() else self._index.shared(claim)
        if own is not None:
            del shared[own]
        return Near(self, shared)

    def terms(self, number: int) -> Sequence[Term]:
        """Return the terms of a sentence."""
        self._work.spend(COMPARISON)
        return () if self._work.is_used_up() else read_terms(self._index.unit(number))

    def text(self, number: int) -> str:
        """Return a sentence."""
        return self._index.unit(number)

    def having(self, term: str) -> Sequence[int]:
        """Return the numbers of the sentences that have a term."""
        return self._index.having(term)

    def has_digit(self, number: int) -> bool:
        """Return whether a sentence has a number."""
        if number not in self._has_digit:
            self._has_digit[number] = _DIGIT.search(self._index.unit(number)) is not None
        return self._has_digit[number]


class Near:
    """The sentences that share words with one claim."""

    def __init__(self, evidence: Evidence, shared: Mapping[int, int]) -> None:
        self._evidence = evidence
        self._shared = shared
        """The count of the words that a sentence shares with the claim, by the number of the sentence."""

    def having(self, term: str, *, least: int) -> Iterator[int]:
        """Yield the numbers of the sentences with *term* that share at least so many words with the claim."""
        shared = self._shared
        for number in self._evidence.having(term):
            if shared.get(number, 0) >= least:
                yield number

    def with_digits(self, *, least: int) -> Sequence[str]:
        """Return the sentences with a digit that share at least so many words with the claim."""
        evidence = self._evidence
        return [
            evidence.text(number)
            for number, count in self._shared.items()
            if count >= least and evidence.has_digit(number)
        ]

    def denying(self, *, least: int) -> Mapping[str, Sequence[Sequence[Term]]]:
        """Return the terms of sentences with so many words of the claim, by the terms that they negate."""
        evidence = self._evidence
        sentences: dict[str, list[Sequence[Term]]] = {}
        for number in self._shared.keys() & evidence.negating:
            if self._shared[number] >= least:
                terms = evidence.terms(number)
                for text in {term.text for term in terms if term.negated}:
                    sentences.setdefault(text, []).append(terms)
        return sentences

    def terms(self, number: int) -> Sequence[Term]:
        """Return the terms of a sentence."""
        return self._evidence.terms(number)

    def text(self, number: int) -> str:
        """Return a sentence."""
        return self._evidence.text(number)
