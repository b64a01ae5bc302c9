"""The labels of the levels next to a chart of the window: their text, and positions without overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.text.formats import tokens_short
from windowpane.text.zones import ZONE_SHAPES

_NAMES: Final = {
    "compaction": "compacts at",
    **{zone: f"{ZONE_SHAPES[zone]} {zone}" for zone in ("red", "orange", "yellow")},
}


def level_label(name: str, tokens: float) -> str:
    """Return the label of a level: `limit 200k`, `compacts at 155k`, `● red 180k`."""
    return f"{_NAMES.get(name, name)} {tokens_short(tokens)}"


def separated(heights: Sequence[float], distance: float, *, low: float, high: float) -> list[float]:
    """Return the *heights* in the same order, at least *distance* apart and within *low* and *high*.

    They move as little as possible, by the sum of squares. Without room for all, they are spread evenly.
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    distance = min(distance, (high - low) / max(1, len(heights) - 1))
    groups: list[tuple[float, int]] = []
    for rank, index in enumerate(order):
        height, size = heights[index] - rank * distance, 1
        while groups and groups[-1][0] > height:
            lower, members = groups.pop()
            height = (lower * members + height * size) / (members + size)
            size += members
        groups.append((height, size))
    lowest = (height for height, size in groups for _ in range(size))
    highest = high - (len(heights) - 1) * distance
    moved = [min(max(height, low), highest) + rank * distance for rank, height in enumerate(lowest)]
    return [moved[order.index(index)] for index in range(len(heights))]
