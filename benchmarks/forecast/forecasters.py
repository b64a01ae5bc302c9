"""Forecasters of the benchmark: three simple baselines, and Windowpane's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from forecast.questions import Question
from windowpane.core.agents import documented_growth
from windowpane.core.tracking.forecast import GrowthPace
from windowpane.core.tracking.forecast import forecast as turns_until

QUANTILES: Final = (0.1, 0.5, 0.9)
RESAMPLED_PATHS: Final = 100
FLAT_TURNS: Final = 10_000.0

Band = tuple[float, float, float]
"""Turns at the quantiles 0.1, 0.5 and 0.9."""


def remaining_over_mean(question: Question) -> Band:
    """Forecast the remaining tokens at the mean growth of all calls."""
    return before_compaction(question.level, at_mean(question.growth, question.remaining))


def remaining_over_mean_of_five(question: Question) -> Band:
    """Forecast the remaining tokens at the mean growth of the last five calls."""
    return before_compaction(question.level, at_mean(question.growth[-5:], question.remaining))


def bootstrap_of_own_growth(question: Question) -> Band:
    """Forecast by paths drawn from the growth of the session's calls."""
    return before_compaction(question.level, resampled(question.growth, question.remaining))


def windowpane(question: Question) -> Band:
    """Forecast as Windowpane does, of the totals alone."""
    pace = GrowthPace(documented_growth(question.agent))
    for tokens in question.growth:
        pace.add(tokens)
    ahead = turns_until(
        question.remaining, pace, used_tokens=question.totals[-1], of_compaction=question.level == "own"
    )
    if ahead is None:
        return FLAT_TURNS, FLAT_TURNS, FLAT_TURNS
    return min(ahead.early, FLAT_TURNS), min(ahead.median, FLAT_TURNS), min(ahead.late, FLAT_TURNS)


def at_mean(growth: Sequence[int], remaining: int) -> Band:
    """Return the turns until *remaining* tokens at the mean of *growth*, three times the same."""
    pace = float(np.mean(growth)) if growth else 0.0
    turns = min(remaining / pace, FLAT_TURNS) if pace > 0 else FLAT_TURNS
    return turns, turns, turns


def resampled(growth: Sequence[int], remaining: int) -> Band:
    """Return the quantiles of the turns until *remaining* tokens on paths drawn from *growth*."""
    mean = float(np.mean(growth)) if growth else 0.0
    if mean <= 0:
        return FLAT_TURNS, FLAT_TURNS, FLAT_TURNS
    length = min(int(4 * remaining / mean) + 30, 600)
    random = np.random.default_rng([len(growth), remaining])
    paths = random.choice(growth, size=(RESAMPLED_PATHS, length)).cumsum(axis=1) >= remaining
    first = np.where(paths.any(axis=1), paths.argmax(axis=1) + 1, length)
    early, median, late = np.quantile(first, QUANTILES)
    return float(early), float(median), float(late)


def before_compaction(level: str, band: Band) -> Band:
    """Return *band* less one call at the level `own`: the agent compacts before the call that would pass it."""
    early, median, late = band if level != "own" else [max(0.0, turns - 1) for turns in band]
    return early, median, late
