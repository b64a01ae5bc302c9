"""Downsampling of a chart's points that keeps every extreme."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MAXIMUM_POINTS: Final = 2_000
"""Points per trace; SVG stays fast below this."""


def downsampled_rows(series: NDArray[np.float64], limit: int = MAXIMUM_POINTS) -> NDArray[np.intp]:
    """Return the rows of *series* (points × columns) to draw as at most *limit* points, ascending.

    The rows are cut into buckets; of each, the row with the smallest and the row with the largest value of
    every column is kept, as are the first and the last row. So in every column every bucket keeps its extremes,
    and one set of rows serves traces that are stacked on each other. NaN is a gap, neither small nor large.

    Extremes of several columns often fall on one row, so there are as many buckets as *limit* allows for this
    series, and never fewer than if none did.
    """
    rows, columns = series.shape
    if rows <= limit:
        return np.arange(rows)
    low = np.where(np.isnan(series), np.inf, series)
    high = np.where(np.isnan(series), np.inf, -series)
    minimum = max(1, (limit - 2) // (2 * columns))
    buckets = max(minimum, limit // 2)
    while buckets > minimum:
        selected = _extremes(low, high, buckets)
        if len(selected) <= limit:
            return selected
        buckets = max(minimum, int(buckets * min(0.9, limit / len(selected))))
    return _extremes(low, high, minimum)


def _extremes(low: NDArray[np.float64], high: NDArray[np.float64], buckets: int) -> NDArray[np.intp]:
    rows = len(low)
    edges = np.linspace(0, rows, buckets + 1).astype(np.intp)
    starts, sizes = edges[:-1], np.diff(edges)
    numbers = np.arange(rows)[:, None]
    selected = [np.array([0, rows - 1])]
    for values in (low, high):
        least = np.repeat(np.minimum.reduceat(values, starts), sizes, axis=0)
        selected.append(np.minimum.reduceat(np.where(values == least, numbers, rows), starts).ravel())
    return np.unique(np.concatenate(selected))
