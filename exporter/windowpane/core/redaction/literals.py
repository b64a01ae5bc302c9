"""One search of a text for all the literals that secrets contain, so that most texts are read only once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence


def fold(text: str) -> str:
    """Return *text* in lower case; a character whose lower case is longer stays."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    folded = character.lower()
    return folded if len(folded) == 1 else character


try:
    import ahocorasick
except ImportError:  # it has no wheel for Windows on ARM
    ahocorasick = None

Occurrences = Mapping[str, Sequence[int]]
"""Literals in lower case that a text contains, each with its positions in ascending order."""


class LiteralSearch:
    """Finds many literals in one pass over a text; without pyahocorasick in one pass for each."""

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = frozenset(filter(None, literals))
        """The literals of the search."""
        self._automaton = None if ahocorasick is None else ahocorasick.Automaton()
        if self._automaton is not None:
            for literal in self.literals:
                self._automaton.add_word(literal, (literal, len(literal) - 1))
            self._automaton.make_automaton()

    def occurrences(self, folded: str) -> Occurrences:
        """Return the literals in *folded*, a text in lower case; also those that overlap."""
        if self._automaton is None:
            every = ((literal, list(_positions(literal, folded))) for literal in self.literals)
            return {literal: positions for literal, positions in every if positions}
        positions: dict[str, list[int]] = {}
        for last, (literal, offset) in self._automaton.iter(folded):
            positions.setdefault(literal, []).append(last - offset)
        return positions


def _positions(literal: str, text: str) -> Iterator[int]:
    position = text.find(literal)
    while position >= 0:
        yield position
        position = text.find(literal, position + 1)


def positions_of(literals: Iterable[str], occurrences: Occurrences) -> Sequence[int]:
    """Return the positions of any of *literals*, in ascending order."""
    present = [occurrences[literal] for literal in literals if literal in occurrences]
    return (
        present[0] if len(present) == 1 else sorted(position for positions in present for position in positions)
    )
