"""Sets of the numbers of a stream's events, as ranges: a stream without gaps is one range, however long it is."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

MAXIMUM_RANGES: Final = 1_000
"""Ranges of one stream; beyond them the lowest two become one, with the numbers between them."""


class NumberRanges:
    """A set of numbers, written as text such as `0-41,43-90`."""

    def __init__(self, text: str = "") -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for part in filter(None, text.split(",")):
            start, _, end = part.partition("-")
            self._starts.append(int(start))
            self._ends.append(int(end or start))

    def __str__(self) -> str:
        pairs = zip(self._starts, self._ends, strict=True)
        return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in pairs)

    def add(self, number: int) -> bool:
        """Add a number, which must not be negative; return False if the set holds it already."""
        starts, ends = self._starts, self._ends
        after = bisect_right(starts, number)  # the first range that starts behind it
        if after and number <= ends[after - 1]:
            return False
        extends = bool(after) and number == ends[after - 1] + 1
        reaches = after < len(starts) and number + 1 == starts[after]
        if extends and reaches:
            ends[after - 1] = ends[after]
            del starts[after], ends[after]
        elif extends:
            ends[after - 1] = number
        elif reaches:
            starts[after] = number
        else:
            starts.insert(after, number)
            ends.insert(after, number)
            self._limit()
        return True

    def _limit(self) -> None:
        if len(self._starts) > MAXIMUM_RANGES:
            del self._starts[1], self._ends[0]
