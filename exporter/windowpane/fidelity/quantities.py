"""Quantities: numbers with their units, so that `500 ms` is `0.5 s` and not `500 s`."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from windowpane.fidelity.languages import NUMBER_WORDS, lines_of
from windowpane.fidelity.passages import NUMBER, Passage, Term

ROUNDED: Final = 0.08
"""Relative difference up to which a quantity in another unit is the same: 1 GB is 1000 or 1024 MB."""
UNIT_CHARACTERS: Final = 16
_UNITS: Final = {
    unit: (dimension.strip("-"), float(factor))
    for lines in lines_of("units")
    for dimension, factor, *units in map(str.split, lines)
    for unit in units
}
_UNIT: Final = re.compile(
    rf"[.,'’]*([ \u00a0-]?)({'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![A-Za-z])"
)
_COUNTED: Final = re.compile(r"[vV]?(\d+(?:\.\d+)*)(?:-[a-z]{2,12})?")
"""A version, or a number with a word: `v2.3.1`, `10-fold`."""


class Quantity(NamedTuple):
    """A number, or a name, with its size where it has one."""

    spellings: tuple[str, ...]
    """Ways to write it, without its unit."""
    size: float | None = None
    dimension: str = ""
    """`time` or `bytes`; empty for a number without a unit."""
    unit: str = ""

    def is_same(self, other: Quantity) -> bool:
        """Return whether two are equal, as far as both have a unit."""
        if self.dimension and other.dimension and self.size is not None and other.size is not None:
            room = 0.0 if self.unit == other.unit else ROUNDED
            return self.dimension == other.dimension and math.isclose(self.size, other.size, rel_tol=room)
        is_equal = self.size is not None and self.size == other.size
        return is_equal or self.spellings[0].casefold() == other.spellings[0].casefold()


def is_number(term: Term) -> bool:
    """Return whether a term is a number, a version or a count."""
    return term.kind == "number" or (term.kind == "name" and _COUNTED.fullmatch(term.text) is not None)


def quantity_of(passage: Passage, position: int) -> Quantity:
    """Return the number or name at *position*, with the unit that follows it."""
    term = passage.terms[position]
    if term.kind != "number":
        counted = _COUNTED.fullmatch(term.text)
        return Quantity((term.text,)) if counted is None else Quantity((counted[1], term.text))
    written = passage.text[term.start : term.end + UNIT_CHARACTERS]
    number = NUMBER.match(written)
    digits = written[: term.end - term.start] if number is None else number[1].rstrip(".,'’")
    unit = _UNIT.match(written, len(digits) if number is None else number.start(1) + len(digits))
    dimension, factor = ("", 1.0) if unit is None else _UNITS[unit[2]]
    try:
        size = float(term.text.replace(",", ".")) * factor
    except ValueError:
        size = None
    words = (word for word, value in NUMBER_WORDS.items() if str(value) == term.text)
    spellings = (term.text, digits, *words)
    return Quantity(spellings, size, dimension, "" if unit is None else unit[2])
