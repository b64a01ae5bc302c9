"""Metrics with their values at one moment: what every exporter turns into its own format."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from windowpane.metrics.metric import Metric


class Point(NamedTuple):
    """One series of a gauge or counter."""

    labels: tuple[str, ...]
    """Values of the metric's labels, in its order."""
    value: float


class HistogramPoint(NamedTuple):
    """One series of a histogram."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    """Observations in each bucket, not cumulative; the last is above every bound."""
    total: float
    """Sum of the observations."""


class Family(NamedTuple):
    """A metric and its series; only the kind of points that the metric's kind calls for is filled."""

    metric: Metric
    points: list[Point]
    histograms: list[HistogramPoint]


class FamilySource(Protocol):
    """Something that can say its metrics now."""

    def collect(self) -> list[Family]:
        """Every metric that has a value."""
        ...
