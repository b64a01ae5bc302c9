"""The rank test of Mann and Whitney: do the values of two groups of sessions differ by more than chance?

Costs and counts per session are far from normal: most are small or zero, and a few are large. Ranks suit them,
where an interval of the mean would take ten zeros for certain.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence


def rank_score(one: Sequence[float], other: Sequence[float]) -> float:
    """Return by how many standard errors the values of *one* rank above those of *other*; 0 if all are the same.

    By chance alone it is about normal from ten values on each side on. Corrected for ties and for continuity.
    """
    ordered, total = sorted(other), len(one) + len(other)
    above = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in one) / 2
    difference = above - len(one) * len(other) / 2
    ties = sum(number**3 - number for number in Counter([*one, *other]).values())
    variance = len(one) * len(other) / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 0.0
    return math.copysign(max(0.0, abs(difference) - 0.5), difference) / math.sqrt(variance)
