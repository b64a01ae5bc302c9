"""First passages with the forecasts of them, by the product and by two baselines, and measures of quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from truth.passages import Level, Passage

LEVELS: Final[tuple[Level, ...]] = ("50k", "100k", "200k", "own")
QUANTILES: Final = (0.1, 0.5, 0.9)
HORIZONS: Final = ((0, 3), (4, 12), (13, 50))
RESAMPLED_PATHS: Final = 100
FLAT_TURNS: Final = 10_000.0


@dataclass(frozen=True)
class Judged:
    """A first passage with the three forecasts of it: early end, median and late end of each."""

    passage: Passage
    mean_of_five: tuple[float, float, float]
    bootstrap: tuple[float, float, float]

    @property
    def own(self) -> tuple[float, float, float]:
        """The product's forecast."""
        return self.passage.early, self.passage.median, self.passage.late


Forecast = Callable[[Judged], tuple[float, float, float]]
FORECASTS: Final[dict[str, Forecast]] = {
    "Windowpane": lambda one: one.own,
    "remaining / mean of the last 5": lambda one: one.mean_of_five,
    "bootstrap of own growth": lambda one: one.bootstrap,
}


@cache
def _random() -> np.random.Generator:
    return np.random.default_rng(12)


def judge(passage: Passage) -> Judged:
    """Return *passage* with the baselines' forecasts."""
    growth = np.array(passage.growth, dtype=float)
    pace = float(growth[-5:].mean())
    turns = min(passage.remaining / pace, FLAT_TURNS) if pace > 0 else FLAT_TURNS
    early, median, late = _bootstrap(growth, passage.remaining)
    if passage.level == "own":  # the agent compacts before the call that would pass the level
        turns, early, median, late = (max(0.0, one - 1) for one in (turns, early, median, late))
    return Judged(passage, (turns, turns, turns), (early, median, late))


def _bootstrap(growth: np.ndarray, remaining: int) -> tuple[float, float, float]:
    """Return the quantiles of first passages of paths drawn from the session's own growth."""
    mean = float(growth.mean())
    if mean <= 0:
        return FLAT_TURNS, FLAT_TURNS, FLAT_TURNS
    length = min(int(4 * remaining / mean) + 30, 600)
    paths = _random().choice(growth, size=(RESAMPLED_PATHS, length)).cumsum(axis=1) >= remaining
    first = np.where(paths.any(axis=1), paths.argmax(axis=1) + 1, length)
    early, median, late = np.quantile(first, QUANTILES)
    return float(early), float(median), float(late)


def at_level(judged: Sequence[Sequence[Judged]], level: Level) -> list[list[Judged]]:
    """Return the forecasts of one level of each session that has any."""
    return [kept for own in judged if (kept := [one for one in own if one.passage.level == level])]


def loss(rows: np.ndarray) -> float:
    """Return the mean pinball loss of rows of outcome, early end, median and late end, summed over these."""
    errors, shares = rows[:, :1] - rows[:, 1:], np.array(QUANTILES)
    return float(np.maximum(shares * errors, (shares - 1) * errors).mean(axis=0).sum())


def error(rows: np.ndarray) -> float:
    """Return the median absolute error of the median."""
    return float(np.median(np.abs(rows[:, 0] - rows[:, 2])))


def coverage(rows: np.ndarray) -> float:
    """Return the share of outcomes that the band holds."""
    return float(((rows[:, 1] <= rows[:, 0]) & (rows[:, 0] <= rows[:, 3])).mean())


def width(rows: np.ndarray) -> float:
    """Return the median width of the band."""
    return float(np.median(rows[:, 3] - rows[:, 1]))
