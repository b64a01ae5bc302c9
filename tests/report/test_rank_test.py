"""The rank test: what it calls a difference, and how often chance alone looks like one."""

from __future__ import annotations

import random
from statistics import NormalDist

import pytest

from windowpane.report.rank_test import rank_score


def test_the_score_is_that_of_mann_and_whitney() -> None:
    """U of the second is 90 of 100, and 13.2 is the standard deviation of U with ten on each side."""
    low, high = list(range(10)), [value + 6.5 for value in range(10)]
    above = sum(one > other for one in high for other in low)

    assert rank_score(high, low) == pytest.approx((above - 50 - 0.5) / (10 * 10 * 21 / 12) ** 0.5)
    assert rank_score(low, high) == -rank_score(high, low)


def test_equal_values_are_no_difference() -> None:
    assert rank_score([0.0] * 10, [0.0] * 200) == 0.0
    assert rank_score([1.0, 2.0], [1.0, 2.0]) == 0.0


@pytest.mark.parametrize(("one", "other"), [(10, 10), (10, 200), (60, 60)])
def test_chance_alone_is_rarely_a_difference(one: int, other: int) -> None:
    """Counts per session are mostly zeros: their mean may differ while the sessions do not."""
    chance = random.Random(7)
    limit = NormalDist().inv_cdf(0.975)

    def counts(number: int) -> list[float]:
        return [float(chance.random() < 0.3) * chance.randrange(1, 9) for _ in range(number)]

    evident = sum(abs(rank_score(counts(one), counts(other))) > limit for _ in range(1_000))
    assert evident <= 65, "5% and its own chance"
