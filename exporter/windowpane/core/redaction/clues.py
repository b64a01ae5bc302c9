"""The clues in a text: which recognizers have to search it, by the parts between its blanks.

Most parts give nothing away, and most of them occur in many texts: so the clues of a part are remembered, under
its hash, because a part may be a secret. A clue is a text in lower case that the finds of a recognizer contain, a
name that starts with `@`, or the literal of a token after `token:`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Final

from windowpane.core.redaction import cards, locations, names
from windowpane.core.redaction.encodings import encoding_clues
from windowpane.core.redaction.folded import fold
from windowpane.core.redaction.shapes import searched_part, token_candidates, token_clues

MAXIMUM_PARTS: Final = 200_000
"""Parts remembered; of more, all are read again."""

Finder = Callable[[str, int], int]
"""Returns a position inside the first part with a clue, from a position in a folded text; else -1."""


def _text_finder(clue: str) -> Finder:
    return lambda folded, start: folded.find(clue, start)


def _pattern_finder(pattern: re.Pattern[str]) -> Finder:
    def find(folded: str, start: int) -> int:
        match = pattern.search(folded, start)
        return -1 if match is None else match.end() - 1

    return find


_FINDERS: Final = {
    **{clue: _text_finder(clue) for clue in (*names.CLUES, *locations.CLUES, *cards.CLUES)},
    **{clue: _pattern_finder(pattern) for clue, pattern in locations.CLUE_PATTERNS.items()},
}


class ClueMemory:
    """The clues of parts, remembered from text to text."""

    def __init__(self, *, maximum_parts: int = MAXIMUM_PARTS) -> None:
        self._maximum_parts = maximum_parts
        self._plain: set[int] = set()
        """Parts without a clue, by hash."""
        self._clues: dict[int, frozenset[str]] = {}
        """The clues of the others."""

    def __len__(self) -> int:
        """Return the number of remembered parts."""
        return len(self._plain) + len(self._clues)

    def clues(self, text: str) -> set[str]:
        """Return all clues in *text*."""
        parts = text.split()
        relevant = set(map(hash, parts)) - self._plain
        remembered = self._clues  # another thread may start a new one
        unknown = relevant.difference(remembered)
        clues: set[str] = set()
        clues.update(*map(remembered.__getitem__, relevant - unknown))
        if unknown:
            by_hash = dict(zip(map(hash, parts), parts, strict=True))
            clues.update(*self._read([by_hash[number] for number in unknown]))
        return clues

    def _read(self, parts: Collection[str]) -> Collection[frozenset[str]]:
        read = {hash(part): frozenset(clues) for part, clues in _clues_by_part(parts).items()}
        if len(self) + len(parts) > self._maximum_parts:
            self._plain, self._clues = set(), {}
        if len(parts) <= self._maximum_parts:
            self._clues.update(read)
            self._plain.update(number for number in map(hash, parts) if number not in read)
        return read.values()


def _clues_by_part(parts: Collection[str]) -> dict[str, set[str]]:
    """Return the clues of those of *parts* that have any; all are searched at once."""
    clues: defaultdict[str, set[str]] = defaultdict(set)
    joined = f" {' '.join(parts)} "
    folded = fold(joined)
    for clue, find in _FINDERS.items():
        end = 0
        while (position := find(folded, end)) >= 0:
            start, end = joined.rfind(" ", end, position + 1) + 1, joined.index(" ", position)
            clues[joined[start:end]].add(clue)
    for number in filter(str.isdigit, parts):
        clues[number].update(cards.number_clues(number))
    for candidate in token_candidates(parts):
        searched = searched_part(candidate)
        if own := {*token_clues(searched), *cards.number_clues(searched), *encoding_clues(searched)}:
            clues[candidate] |= own
    return clues
