"""First passages with the forecasts of them, by the product and by two baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from forecast.forecasters import at_mean, before_compaction, resampled

from truth.passages import Level, Passage

LEVELS: Final[tuple[Level, ...]] = ("50k", "100k", "200k", "own")
HORIZONS: Final = ((0, 3), (4, 12), (13, 50))


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


def judge(passage: Passage) -> Judged:
    """Return *passage* with the baselines' forecasts."""
    five = at_mean(passage.growth[-5:], passage.remaining)
    bootstrap = resampled(passage.growth, passage.remaining)
    return Judged(
        passage, before_compaction(passage.level, five), before_compaction(passage.level, bootstrap)
    )  # fmt: skip


def at_level(judged: Sequence[Sequence[Judged]], level: Level) -> list[list[Judged]]:
    """Return the forecasts of one level of each session that has any."""
    return [kept for own in judged if (kept := [one for one in own if one.passage.level == level])]
