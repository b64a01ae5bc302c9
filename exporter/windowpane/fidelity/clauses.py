"""Clauses: the terms of a sentence in their order, and whether each is negated, limited or only wished.

A sentence negates a term (`is not used`), limits it (`without a lock`, `fails to start`, `only if it runs`), or
speaks of it as a wish, a plan, a condition, a question or the past. Only a plain statement and a plain negation
of the same term can contradict each other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from windowpane.core.remembered import Remembered
from windowpane.fidelity.statements import EXACT_WEIGHT, MAXIMUM_CHARACTERS, SHORT_NOT, STEMS, STOPWORDS, stem
from windowpane.fidelity.tokens import TOKEN, TOKEN_KINDS

NEGATION_REACH: Final = 4
"""Terms after a negation, within its clause, that it may apply to; it negates the first of them."""
LIMIT_REACH: Final = 3
"""Terms after a limiting word that it may apply to."""
JOINED_REACH: Final = 2
"""Terms that a negation may still apply to after `and`, `or` or a comma."""


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOT: Final = _split("not never cannot unable nor neither")
_NOT_QUITE: Final = _split("just only necessarily")
"""After `not` they leave open whether the rest is so."""
_LIMITS: Final = _split("no without none nothing instead rather except unless until only hardly rarely barely")
_LIMITING_STEMS: Final = frozenset(
    map(
        stem,
        _split("avoid prevent lack missing skip fail stop ignore remove drop broken unnecessary false"),
    )
)
_UNREAL: Final = _split(
    "need needs needed should would could may might must if whether let want wants wanted will plan going ll"
    " please can try once before ask asked asks suggest suggested requires require unless todo pending next"
    " expected supposed previously formerly originally earlier until"
)
"""Words after which a sentence speaks of a wish, a plan, a condition or the past."""
_MODAL: Final = _split("must should can cannot could would will may might shall need needs do")
_DOUBT: Final = _split(
    "claimed incorrectly wrong wrongly mistaken mistakenly misread falsely thought assumed suspected false"
    " misleading inaccurate supposedly"
)
_BREAKS: Final = _split(", ; : ( ) — – → but and or because since when while which so then")
_JOINS: Final = frozenset((",", "and", "or"))
_NEW_PARTS: Final = frozenset(";:—→")
_FUNCTIONAL: Final = STOPWORDS | _split(
    "is be been being am does do could should must might shall the an to its any yet by of in on at as we so now"
    " still currently actually already get gets got"
)
_VERBS_TO_BE: Final = _split("is are was were")
_INFLECTED: Final = ("ed", "ing", "s", "en")
_TOKEN: Final = re.compile(TOKEN.pattern + r"|[,;()—–→?]")
_DOUBTFUL: Final = re.compile(rf"(?i)\b(?:{'|'.join(sorted(_DOUBT))})\b")


class Term(NamedTuple):
    """A word, name or number of a sentence."""

    text: str
    """Stem of a word; a name or number as it is."""
    weight: int
    is_number: bool
    negated: bool
    """True if it is the term that a negation applies to."""
    limited: bool
    """True if a negation or a limiting word may apply to it."""
    unreal: bool
    """True in a wish, a plan, a condition, a question, and what was so in the past."""
    modal: bool
    """True after `must`, `can` and the like, whose negation is not about a fact but a rule."""
    pending: bool
    """True if it is negated with `yet`: it may have changed since."""


class _Token(NamedTuple):
    """The part that a token has in any sentence."""

    word: str
    """The token in lower case."""
    kind: Literal["negation", "break", "limit", "term", "other"]
    is_modal: bool
    is_unreal: bool
    term: str = ""
    """Stem of a word; a name or number as it is."""
    is_exact: bool = False
    is_number: bool = False
    is_base_form: bool = False
    """True for a word without an ending, which may be an order or an infinitive."""


def _read_token(text: str) -> _Token:
    word = text.lower()
    modes = word in _MODAL, word in _UNREAL
    if word in _NOT:
        return _Token(word, "negation", *modes)
    if word in _BREAKS:
        return _Token(word, "break", *modes)
    if word in _LIMITS:
        return _Token(word, "limit", *modes)
    kind = TOKEN_KINDS[text]
    if kind in ("path", "identifier", "number"):
        return _Token(word, "term", *modes, text, is_exact=True, is_number=kind == "number")
    if len(word) < 3 or word in _FUNCTIONAL or not word[0].isalnum():
        return _Token(word, "other", *modes)
    return _Token(word, "term", *modes, STEMS[text], is_base_form=not word.endswith(_INFLECTED))


_TOKENS: Final = Remembered(_read_token)


@lru_cache(maxsize=4_096)
def read_terms(text: str) -> tuple[Term, ...]:
    """Return the terms of a sentence in their order."""
    tokens = [_TOKENS[token] for token in _TOKEN.findall(SHORT_NOT.sub(" not", text[:MAXIMUM_CHARACTERS]))]
    question_end = max((at for at, token in enumerate(tokens) if token.word == "?"), default=-1)
    sentence = _Sentence()
    for position, token in enumerate(tokens):
        if token.kind == "negation" or (token.word == "longer" and sentence.previous == "no"):
            sentence.negate(tokens[position + 1].word if position + 1 < len(tokens) else "")
        elif token.kind == "break":
            sentence.end_clause(token.word)
        elif token.kind == "term":
            sentence.add(token, in_question=position < question_end)
        else:
            sentence.read_function_word(token)
        sentence.previous = token.word
        sentence.modal |= token.is_modal
        sentence.unreal |= token.is_unreal
    sentence.end_negation()
    return tuple(sentence.terms)


class _Sentence:
    """The terms of a sentence as far as it was read."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.previous = ""
        self.modal = False
        self.unreal = False
        self._reach = 0
        """Terms that the last negation or limiting word may still apply to."""
        self._negates = False
        """True until the term after a negation."""
        self._is_pending = False
        self._excludes = False
        self._starts_part = True

    def negate(self, following: str) -> None:
        is_double = self._reach > 0 and self._negates
        self._reach = 0 if is_double else NEGATION_REACH
        self._negates = not is_double and following not in _NOT_QUITE
        self._starts_part = False

    def end_negation(self) -> None:
        """Apply a negation that no term follows to the term before it: `where you cannot`."""
        if self._negates and self.terms:
            self.terms[-1] = self.terms[-1]._replace(negated=True, limited=True)
        self._negates = False

    def end_clause(self, word: str) -> None:
        if word in _JOINS:
            self._reach = min(self._reach, JOINED_REACH)
            return
        self.end_negation()
        self._reach = 0
        self.modal = False
        if word in _NEW_PARTS:
            self.unreal = False
            self._starts_part = True

    def read_function_word(self, token: _Token) -> None:
        word = token.word
        if token.kind == "limit":
            self._reach = max(self._reach, LIMIT_REACH)
            self._excludes |= word == "without"
        elif word == "yet":
            self._is_pending = self._negates
            self.terms[-LIMIT_REACH:] = [one._replace(pending=one.negated) for one in self.terms[-LIMIT_REACH:]]
        elif self._excludes and word in _VERBS_TO_BE:
            self._reach = 0
        self._starts_part &= not word.isalpha()

    def add(self, token: _Token, *, in_question: bool) -> None:
        is_order = token.is_base_form and (self._starts_part or self.previous == "to")
        self.terms.append(
            Term(
                token.term,
                EXACT_WEIGHT if token.is_exact else 1,
                token.is_number,
                self._negates and self._reach > 0,
                self._reach > 0,
                self.unreal or in_question or is_order,
                self.modal,
                self._is_pending,
            )
        )
        self._starts_part = self._is_pending = False
        self._negates = self._negates and token.word.endswith("ly")
        self._reach = LIMIT_REACH if token.term in _LIMITING_STEMS else max(0, self._reach - 1)


def is_doubtful(text: str) -> bool:
    """Return whether a sentence reports a belief: `I incorrectly claimed that …`."""
    return _DOUBTFUL.search(text) is not None
