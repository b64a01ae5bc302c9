"""The units of a text, looked up by the words of statements: those about the same, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Final, NamedTuple

from windowpane.fidelity.statements import (
    EXACT_WEIGHT,
    MATCH,
    STEMS,
    WRAPPED_CHARACTERS,
    Statement,
    contradicts,
    denies,
    read_statement,
)

MAXIMUM_LINES: Final = 6
"""Neighboring lines that are read as one wrapped sentence."""


MAXIMUM_WORK: Final = 8_000_000
"""Units of work of one evaluation, about 50 ns each."""
COMPARISON: Final = 400
"""Work of reading and comparing a sentence; that of looking it up is 1."""


class Work:
    """The work that an evaluation may still do, so that it ends soon whatever the text is like.

    It is counted instead of timed: the same text always gives the same result.
    """

    def __init__(self, maximum: int = MAXIMUM_WORK) -> None:
        self._remaining = maximum

    def spend(self, units: int) -> None:
        """Count work that is about to be done."""
        self._remaining -= units

    def is_used_up(self) -> bool:
        """Return whether more work was needed than is allowed."""
        return self._remaining < 0


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

    def __init__(self, wanted: Iterable[Statement], work: Work) -> None:
        self._work = work
        self._postings: dict[str, list[int]] = {}
        for statement in wanted:
            for word in statement.words | statement.exact:
                self._postings.setdefault(word, [])
        self._units: list[str] = []
        self._starts_block = True
        self._continuing: set[int] = set()
        """Units that may continue the one before them."""
        self._read: dict[int, Statement | None] = {}

    def start_block(self) -> None:
        """Note that the next unit does not continue the one before it."""
        self._starts_block = True

    def add(self, unit: str, words: Iterable[str]) -> None:
        """Index a unit, given the words of its text."""
        number = len(self._units)
        if not self._starts_block and len(self._units[-1]) >= WRAPPED_CHARACTERS:
            self._continuing.add(number)
        self._starts_block = False
        self._units.append(unit)
        postings = self._postings
        for word in dict.fromkeys(words):
            posting = postings.get(word)
            if posting is None:
                posting = postings.get(STEMS[word])
            if posting is not None and (not posting or posting[-1] != number):
                posting.append(number)

    def having(self, word: str) -> Sequence[int]:
        """Return the numbers of the units that have a word of the wanted statements."""
        return self._postings.get(word, ())

    def unit(self, number: int) -> str:
        """Return the text of a unit."""
        return self._units[number]

    def postings_of(self, statement: Statement) -> int:
        """Return the work of looking up *statement*: how often any unit has one of its words."""
        return sum(len(self.having(word)) for word in chain(statement.words, statement.exact))

    def shared(self, statement: Statement) -> Counter[int]:
        """Return how many words each unit shares with *statement*, by the number of the unit."""
        return Counter(
            chain.from_iterable(self._postings[word] for word in chain(statement.words, statement.exact))
        )

    def votes(self, statement: Statement) -> Counter[int]:
        """Return the weight of the words that each unit shares with *statement*, by the number of the unit."""
        counted = chain(statement.words, *repeat(statement.exact, EXACT_WEIGHT))
        return Counter(chain.from_iterable(map(self._postings.__getitem__, counted)))

    def statement(self, number: int) -> Statement | None:
        """Return what a unit is compared by; None if it has too few significant words."""
        if number not in self._read:
            self._read[number] = read_statement(self._units[number])
        return self._read[number]

    def closest(self, statement: Statement) -> Closest | None:
        """Return the closest unit that does not contradict *statement*; None if the work is used up."""
        self._work.spend(self.postings_of(statement))
        if self._work.is_used_up():
            return None
        votes = self.votes(statement)
        needed = MATCH * statement.weight
        same, others, contradicted = 0, max(votes.values(), default=0), False
        if others >= needed:
            others = max((vote for vote in votes.values() if vote < needed), default=0)
            near = sorted(((-vote, number) for number, vote in votes.items() if vote >= needed))
            for vote, number in near:  # the first that agrees has the highest vote
                match = self.statement(number)
                self._work.spend(COMPARISON)
                if self._work.is_used_up():
                    return None
                if match is None:
                    continue
                if statement.text in match.text or not conflicts(statement, match):
                    same = -vote
                    break
                contradicted = True
        if same < statement.weight:
            same = max(same, self._vote_over_lines(statement, votes))
        return (
            None
            if self._work.is_used_up()
            else Closest(max(same, others) / statement.weight, same > 0, contradicted)
        )

    def _vote_over_lines(self, statement: Statement, votes: Counter[int]) -> int:
        """Return the vote of neighboring lines that together state *statement*; a formatter has wrapped it."""
        needed, best = MATCH * statement.weight, 0
        continuing = self._continuing & votes.keys()
        for second in sorted(continuing & self._near_rare_terms(statement)):
            start, end = second - 1, second
            vote = votes.get(start, 0)
            while vote and end - start < MAXIMUM_LINES and end in continuing:
                vote += votes[end]
                end += 1
                if vote < needed or min(vote, statement.weight) <= best:
                    continue
                self._work.spend(COMPARISON)
                if self._work.is_used_up():
                    return best
                joined = read_statement(" ".join(self._units[start:end]))
                if joined is None or not statement.matches(joined):
                    continue
                if not denies(statement, joined) and not differs(statement, joined):
                    best = max(best, statement.common(joined))
        return best

    def _near_rare_terms(self, statement: Statement) -> set[int]:
        """Return the second lines of all runs of lines with one of the rarest words of *statement*.

        Lines without any of these words have too little of its weight to be about the same.
        """
        weights = [(word, 1) for word in statement.words] + [(word, EXACT_WEIGHT) for word in statement.exact]
        weights.sort(key=lambda weighted: (len(self.having(weighted[0])), weighted[0]))
        seconds: set[int] = set()
        weight = 0
        for word, own in weights:
            numbers = self.having(word)
            self._work.spend(MAXIMUM_LINES * len(numbers))
            for number in numbers:
                seconds.update(range(number - MAXIMUM_LINES + 2, number + 2))
            weight += own
            if statement.weight - weight < MATCH * statement.weight:
                break
        return seconds


def conflicts(one: Statement, other: Statement) -> bool:
    """Return whether two statements about the same differ in a negation, or in a name or number."""
    return contradicts(one, other) or differs(one, other)


def differs(one: Statement, other: Statement) -> bool:
    """Return whether each of two statements has a name or number that the other does not have."""
    return bool(one.exact - other.exact and other.exact - one.exact)
