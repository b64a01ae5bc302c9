"""The units of a text, looked up by the words of statements: those about the same, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Final, NamedTuple

from windowpane.fidelity.statements import (
    EXACT_WEIGHT,
    MATCH,
    NEGATION,
    WRAPPED_CHARACTERS,
    Statement,
    contradicts,
    denies,
    read_statement,
    stem,
)

MAXIMUM_LINES: Final = 6
"""Neighboring lines that are read as one wrapped sentence."""


class Closest(NamedTuple):
    """The unit that is closest to a statement among those that do not contradict it."""

    share: float
    """Share of the statement's words that the unit has, names and numbers counted double."""
    is_same: bool
    """True if the unit is about the same."""
    contradicted: bool
    """True if a unit is about the same and contradicts the statement."""


class StatementIndex:
    """The units of a text by the words of the statements that are looked up in it."""

    def __init__(self, wanted: Iterable[Statement]) -> None:
        self._postings: dict[str, list[int]] = {}
        for statement in wanted:
            for word in statement.words | statement.exact:
                self._postings.setdefault(word, [])
        self._units: list[str] = []
        self._starts: set[int] = set()
        self._read: dict[int, Statement | None] = {}
        self._negated: dict[int, frozenset[str]] = {}
        self._keys: dict[str, str | None] = {}

    def start_block(self) -> None:
        """Note that the next unit does not continue the one before it."""
        self._starts.add(len(self._units))

    def add(self, unit: str, words: Iterable[str]) -> None:
        """Index a unit, given the words of its text."""
        number, keys, postings = len(self._units), self._keys, self._postings
        self._units.append(unit)
        for word in words:
            try:
                key = keys[word]
            except KeyError:
                key = keys[word] = self._key(word)
            if key is not None:
                posting = postings[key]
                if not posting or posting[-1] != number:
                    posting.append(number)

    def _key(self, word: str) -> str | None:
        if word in self._postings:
            return word
        reduced = stem(word.lower())
        return reduced if reduced in self._postings else None

    def having(self, word: str) -> Sequence[int]:
        """Return the numbers of the units that have a word of the wanted statements."""
        return self._postings.get(word, ())

    def votes(self, statement: Statement) -> Counter[int]:
        """Return the weight of the words that each unit shares with *statement*, by the number of the unit."""
        counted = chain(statement.words, *repeat(statement.exact, EXACT_WEIGHT))
        return Counter(chain.from_iterable(self._postings[word] for word in counted))

    def statement(self, number: int) -> Statement | None:
        """Return what a unit is compared by; None if it has too few significant words."""
        if number not in self._read:
            self._read[number] = read_statement(self._units[number])
        return self._read[number]

    def negated(self, number: int) -> frozenset[str]:
        """Return the words that a unit negates."""
        if number not in self._negated:
            read = self.statement(number) if NEGATION.search(self._units[number]) else None
            self._negated[number] = frozenset() if read is None else read.negated
        return self._negated[number]

    def closest(self, statement: Statement) -> Closest:
        """Return the closest unit that does not contradict *statement*."""
        votes = self.votes(statement)
        needed = MATCH * statement.weight
        same, contradicted = 0, False
        for number, vote in votes.items():
            match = self.statement(number) if vote >= needed else None
            if match is None:
                continue
            if statement.text in match.text or not conflicts(statement, match):
                same = max(same, vote)
            else:
                contradicted = True
        if same < statement.weight:
            same = max(same, self._vote_over_lines(statement, votes))
        others = max((vote for vote in votes.values() if vote < needed), default=0)
        return Closest(max(same, others) / statement.weight, same > 0, contradicted)

    def _vote_over_lines(self, statement: Statement, votes: Counter[int]) -> int:
        """Return the vote of neighboring lines that together state *statement*; a formatter has wrapped it."""
        needed, best = MATCH * statement.weight, 0
        for start in votes:
            end = start + 1
            while end - start < MAXIMUM_LINES and votes[end] and self._may_continue(end):
                end += 1
                vote = sum(votes[number] for number in range(start, end))
                if vote < needed or vote <= best:
                    continue
                joined = read_statement(" ".join(self._units[start:end]))
                if joined is None or not statement.matches(joined):
                    continue
                if not denies(statement, joined) and not differs(statement, joined):
                    best = max(best, statement.common(joined))
        return best

    def _may_continue(self, number: int) -> bool:
        return number not in self._starts and len(self._units[number - 1]) >= WRAPPED_CHARACTERS


def conflicts(one: Statement, other: Statement) -> bool:
    """Return whether two statements about the same differ in a negation, or in a name or number."""
    return contradicts(one, other) or differs(one, other)


def differs(one: Statement, other: Statement) -> bool:
    """Return whether each of two statements has a name or number that the other does not have."""
    return bool(one.exact - other.exact and other.exact - one.exact)
