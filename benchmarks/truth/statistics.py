"""Intervals of a statistic by a bootstrap that draws whole sessions, whose turns are not independent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

RESAMPLES: Final = 400

Sample = TypeVar("Sample")


class Interval(NamedTuple):
    """A value with its 90% interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """Return the interval as `0.81 (0.77 to 0.85)`."""
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def interval(
    sessions: Sequence[Sequence[Sample]], statistic: Callable[[Sequence[Sample]], float], *, start: int = 12
) -> Interval:
    """Return *statistic* over the samples of all sessions, with the interval over resampled sessions."""
    drawn = np.random.default_rng(start).integers(len(sessions), size=(RESAMPLES, len(sessions)))
    values = [statistic([sample for n in row for sample in sessions[n]]) for row in drawn]
    low, high = np.quantile(values, [0.05, 0.95])
    return Interval(statistic([sample for own in sessions for sample in own]), float(low), float(high))
