"""Comparison of a rule with a text: whether it states the rule word for word, in other words, or reversed.

A clause states a rule in other words if it has most of its words, all of its numbers and names, and its stance:
both forbid, both permit or both oblige. A clause contradicts a rule if it is otherwise nearly the same, and has
the opposite stance, an opposite (`enable`, `disable`), or another number or name in place of one of the rule's.
Anything in between proves nothing, and neither does a report of what happened.

Two negations agree: `never push without asking` obliges to ask as `ask before you push` does, and `no commit
before the tests ran` is `the tests run before a commit`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Final, Literal, NamedTuple

from windowpane.fidelity.languages import lines_of, pattern_of, stem, vocabulary_of
from windowpane.fidelity.passages import kind_of, terms_of
from windowpane.fidelity.rules import MAXIMUM_CHARACTERS, sentences_of

Stance = Literal["forbid", "permit", "oblige"]
Match = Literal["verbatim", "reworded", "contradicted"]

NEARLY_SAME: Final = 0.7
"""Share of a rule's words that another wording has at least; one that contradicts has no more other words."""
SAME: Final = 0.9
"""Share of the words of a clause that another one has which states just the same."""
MINIMUM_WORDS: Final = 2
MAXIMUM_CLAUSES: Final = 4_000
MAXIMUM_COMPARED: Final = 12
"""Clauses that each rule is compared with: those that share most of its words."""
_NEEDLESS: Final = pattern_of("needless")
_FORBID: Final = pattern_of("forbid")
_PERMIT: Final = pattern_of("permit")
_STANCE_STEMS: Final = frozenset(map(stem, vocabulary_of("stance")))
"""Words that do not show what a rule is about."""
_CLAUSE: Final = re.compile(r"[;:。！？；：]|(?<=\w)[.!?](?=\s)|\s[—–-]\s|\n")
_OPPOSITES: Final = {
    stem(word): (f"pair {number}", side)
    for lines in lines_of("opposites")
    for number, pair in enumerate(lines)
    for side, words in enumerate(pair.split(" / "))
    for word in words.split()
}
"""Words that have an opposite, each with its pair, the same in all languages, and its side in it."""
CONSENT: Final = "consent"
"""The word in place of all words of asking and permission."""
_CONSENT: Final = frozenset(map(stem, vocabulary_of("consent")))
_UNLESS: Final = pattern_of("unless")
_ORDER: Final = pattern_of("order_word")
_LATER: Final = pattern_of("later")
_OTHERS: Final = pattern_of("others")
_PAST: Final = pattern_of("past")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WIDE_STANCE: Final = pattern_of("stance_phrase")
_INLINE: Final = re.compile(r"`([^`\n]{1,120})`")
_PLAIN: Final = re.compile(r"[\W_]+")
AROUND: Final = 24
"""Characters before a rule in which a reversal is looked for."""
_REVERSED_BEFORE: Final = pattern_of("reversed_before")
_REVERSED_AFTER: Final = pattern_of("reversed_after")


@dataclass(frozen=True)
class Clause:
    """A clause in the form that it is compared in."""

    text: str
    plain: str
    words: frozenset[str]
    """Stems without those that only make it a rule; pairs of characters where words are not separated."""
    values: frozenset[str]
    """Its numbers, names, paths and quoted code."""
    stance: Stance
    negations: int
    is_consent: bool
    """True where someone has to be asked, or need not be."""

    @property
    def terms(self) -> frozenset[str]:
        """Its words and values."""
        return self.words | self.values

    @cached_property
    def sides(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """The words of what comes first and of what comes later; None if it has no order."""
        order = _ORDER.search(self.text)
        if order is None:
            return None
        before, after = self.text[: order.start()], self.text[order.end() :]
        if not before.strip(" *-"):
            after, _, before = after.partition(",")
        sides = _stems_and_values(before)[0], _stems_and_values(after)[0]
        return sides[::-1] if _LATER.search(order.group()) else sides


@lru_cache(maxsize=8_192)
def read_clause(text: str) -> Clause:
    """Return *text* in the form that it is compared in."""
    words, values = _stems_and_values(text)
    text = text[:MAXIMUM_CHARACTERS]
    is_consent = CONSENT in words
    negated = text if is_consent else _ORDER.sub(" ", text, count=1)
    negations = len(_FORBID.findall(negated))
    needless = _NEEDLESS.search(negated)
    if is_consent:
        negations += len(_UNLESS.findall(text))
        negations += needless is not None and not negations
        stance: Stance = "permit" if needless or negations % 2 else "oblige"
    elif negations and not needless:
        stance = "forbid"
    else:
        stance = "permit" if needless or _PERMIT.search(text) else "oblige"
    return Clause(text, _normal(text), words, values, stance, negations, is_consent)


@lru_cache(maxsize=8_192)
def _stems_and_values(text: str) -> tuple[frozenset[str], frozenset[str]]:
    text = text[:MAXIMUM_CHARACTERS]
    terms = list(terms_of(text if text.isascii() else _WIDE_STANCE.sub(" ", text)))
    stems = {term.text for term in terms if term.kind == "word"}
    words = {_OPPOSITES[word][0] if word in _OPPOSITES else word for word in stems - _CONSENT - _STANCE_STEMS}
    if not stems.isdisjoint(_CONSENT):
        words.add(CONSENT)
    values = {term.text for term in terms if term.kind in ("number", "name")}
    return frozenset(words), frozenset(values.union(code.strip() for code in _INLINE.findall(text)))


def _normal(text: str) -> str:
    return _PLAIN.sub(" ", text.casefold()).strip()


class ComparedText:
    """A text that rules are compared with, by the words of its clauses."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(text for text in texts if text)
        self._plain = "\n".join(f" {_normal(text)} " for text in self._texts)

    def has(self, rule: str) -> bool:
        """Return whether a text has the rule word for word, whatever its case, marks and line breaks.

        Not where words around it reverse it: `no need to …`, `do not …`, `… is no longer required`.
        """
        plain = _normal(rule)
        wanted = plain if _WIDE.search(plain) else f" {plain} "
        at = self._plain.find(wanted)
        while at >= 0:
            is_reversed = _REVERSED_BEFORE.search(self._plain, max(0, at - AROUND), at)
            if not is_reversed and not _REVERSED_AFTER.match(self._plain, at + len(wanted)):
                return True
            at = self._plain.find(wanted, at + 1)
        return False

    def near(self, rule: Clause) -> Iterator[Clause]:
        """Yield the clauses that share most words with a rule, the closest first, of equals the first."""
        clauses, postings = _indexed(self._texts)
        votes = Counter(number for term in rule.terms for number in postings.get(term, ()))
        for number in sorted(votes, key=lambda number: (-votes[number], number))[:MAXIMUM_COMPARED]:
            yield read_clause(clauses[number])

    def states(self, clause: Clause) -> bool:
        """Return whether the text states a clause, word for word or in other words."""
        return any(
            one.plain == clause.plain
            or (compare(clause, one) == "reworded" and _covered(clause.words, one.words) >= SAME)
            for one in self.near(clause)
        )

    def match(self, text: str) -> Found:
        """Return how the text states a rule, and the clause that contradicts it."""
        if self.has(text):
            return Found("verbatim")
        rule = read_clause(text)
        compared = [(compare(rule, clause), clause) for clause in self.near(rule)]
        stating = [clause.plain for match, clause in compared if match == "reworded"]
        contradicting = [clause for match, clause in compared if match == "contradicted"]
        if any(all(plain not in one.plain for one in contradicting) for plain in stating):
            return Found("reworded")  # and not by a part of the sentence that reverses it
        return Found("contradicted", contradicting[0]) if contradicting else Found(None)


@lru_cache(maxsize=4)  # the probe and the record of rules read the same summary
def _indexed(texts: tuple[str, ...]) -> tuple[list[str], dict[str, list[int]]]:
    """Return the clauses of texts, and the numbers of those that have a word or value."""
    clauses = list(islice(chain.from_iterable(map(_clauses_of, texts)), MAXIMUM_CLAUSES))
    postings: dict[str, list[int]] = {}
    for number, clause in enumerate(clauses):
        for term in frozenset.union(*_stems_and_values(clause)):
            postings.setdefault(term, []).append(number)
    return clauses, postings


class Found(NamedTuple):
    """The way in which a text states a rule."""

    match: Match | None
    contradicting: Clause | None = None


def _clauses_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text, and the clauses of those that have several."""
    for sentence in sentences_of(text):
        yield sentence
        parts = [part.strip() for part in _CLAUSE.split(sentence) if part and part.strip()]
        if len(parts) > 1:
            yield from parts


def compare(rule: Clause, clause: Clause) -> Match | None:
    """Return whether *clause* states *rule* in other words or contradicts it; None if it does neither."""
    if len(rule.terms) < MINIMUM_WORDS and (
        not rule.terms or rule.terms != clause.terms or clause.stance == "oblige"
    ):
        return None  # `changes` alone neither obliges nor permits
    if _covered(rule.words, clause.words) < NEARLY_SAME:
        return None
    is_nearly_same = _covered(clause.words, rule.words) >= NEARLY_SAME
    missing, other = rule.values - clause.values, clause.values - rule.values
    if missing:
        is_opposed = not {kind_of(value) for value in missing}.isdisjoint(map(kind_of, other))
        return "contradicted" if is_nearly_same and is_opposed else None
    if rule.is_consent == clause.is_consent:
        if not _is_opposed(rule, clause):
            return "reworded"
    elif clause.stance != "permit" or not (rule.is_consent or rule.stance == "forbid"):
        return None
    is_other = any(kind.search(clause.text) and not kind.search(rule.text) for kind in (_OTHERS, _PAST))
    return "contradicted" if is_nearly_same and not is_other else None


def _is_opposed(rule: Clause, clause: Clause) -> bool:
    is_odd = (rule.negations - clause.negations) % 2 == 1
    if rule.is_consent:
        return is_odd
    is_denied = rule.stance != clause.stance or (rule.stance == "forbid" and is_odd)
    if "permit" in (rule.stance, clause.stance):
        return is_denied
    return is_denied != (_has_opposite(rule, clause) != _is_swapped(rule, clause))


def _has_opposite(rule: Clause, clause: Clause) -> bool:
    """Return whether one has an opposite of a word of the other: `enable`, `disable`."""
    ours, theirs = _poles(rule.text), _poles(clause.text)
    shared = {pair for pair, _ in ours} & {pair for pair, _ in theirs}
    return len(shared - {pair for pair, _ in ours & theirs}) % 2 == 1


def _poles(text: str) -> set[tuple[str, int]]:
    """Return the pairs of opposites of which a text has a word, with the sides that it has."""
    words = {term.text for term in terms_of(text)}
    return {pole for word, pole in _OPPOSITES.items() if word in words or (_WIDE.match(word) and word in text)}


def _is_swapped(rule: Clause, clause: Clause) -> bool:
    """Return whether what comes first in a rule comes later in a clause."""
    if rule.sides is None or clause.sides is None:
        return False
    (first, later), (start, end) = rule.sides, clause.sides
    return len(first & end) + len(later & start) > len(first & start) + len(later & end)


def _covered(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / len(words) if words else 1.0
