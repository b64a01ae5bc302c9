"""One search of a text for all the literals that secrets contain, so that most texts are read only once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import ahocorasick

Occurrences = Mapping[str, Sequence[int]]
"""Literals in lower case that a text contains, each with its positions in ascending order."""


class LiteralSearch:
    """Finds many literals in one pass over a text."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._automaton = ahocorasick.Automaton()
        for literal in literals:
            self._automaton.add_word(literal, (literal, len(literal) - 1))
        self._automaton.make_automaton()

    def occurrences(self, folded: str) -> Occurrences:
        """Return the literals in *folded*, a text in lower case; also those that overlap."""
        positions: dict[str, list[int]] = {}
        for last, (literal, offset) in self._automaton.iter(folded):
            positions.setdefault(literal, []).append(last - offset)
        return positions


def positions_of(literals: Iterable[str], occurrences: Occurrences) -> Sequence[int]:
    """Return the positions of any of *literals*, in ascending order."""
    present = [occurrences[literal] for literal in literals if literal in occurrences]
    return (
        present[0] if len(present) == 1 else sorted(position for positions in present for position in positions)
    )
