"""Fewer points for a drawing, without hiding a spike."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MAXIMUM_POINTS: Final = 2_000
"""Points a trace; SVG stays quick below this."""


def downsampled_rows(series: NDArray[np.float64], limit: int = MAXIMUM_POINTS) -> NDArray[np.intp]:
    """Rows of *series* (points × columns) that at most *limit* points should keep, ascending.

    The rows are cut into buckets; of each, the row with the smallest and the row with the largest value of
    every column stays, as do the first and the last row. So in every column every bucket keeps its extremes,
    and one set of rows serves traces that are stacked on each other. NaN is a gap, neither small nor large.

    Extremes of several columns often fall on one row, so there are as many buckets as *limit* allows for this
    series, and never fewer than if none did.
    """
    rows, columns = series.shape
    if rows <= limit:
        return np.arange(rows)
    low = np.where(np.isnan(series), np.inf, series)
    high = np.where(np.isnan(series), np.inf, -series)
    sure = max(1, (limit - 2) // (2 * columns))
    buckets = max(sure, limit // 2)
    while buckets > sure:
        kept = _extremes(low, high, buckets)
        if len(kept) <= limit:
            return kept
        buckets = max(sure, int(buckets * min(0.9, limit / len(kept))))
    return _extremes(low, high, sure)


def _extremes(low: NDArray[np.float64], high: NDArray[np.float64], buckets: int) -> NDArray[np.intp]:
    rows = len(low)
    edges = np.linspace(0, rows, buckets + 1).astype(np.intp)
    starts, sizes = edges[:-1], np.diff(edges)
    places = np.arange(rows)[:, None]
    found = [np.array([0, rows - 1])]
    for values in (low, high):
        least = np.repeat(np.minimum.reduceat(values, starts), sizes, axis=0)
        found.append(np.minimum.reduceat(np.where(values == least, places, rows), starts).ravel())
    return np.unique(np.concatenate(found))
