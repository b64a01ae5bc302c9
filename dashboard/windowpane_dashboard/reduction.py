"""Fewer points for a drawing, without hiding a spike."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAXIMUM_POINTS: Final = 2_000
"""Points a trace; SVG stays quick below this."""


def kept_rows(series: NDArray[np.float64], limit: int = MAXIMUM_POINTS) -> NDArray[np.intp]:
    """Rows of *series* (points × columns) that at most *limit* points should keep, ascending.

    The rows are cut into buckets; of each, the row with the smallest and the row with the largest value of
    every column stays, as do the first and the last row. So in every column every bucket keeps its extremes,
    and one set of rows serves traces that are stacked on each other. NaN is a gap, neither small nor large.
    """
    rows, columns = series.shape
    if rows <= limit:
        return np.arange(rows)
    per_bucket = 2 * columns
    buckets = max(1, (limit - 2) // per_bucket)
    edges = np.linspace(0, rows, buckets + 1).astype(np.intp)
    low = np.where(np.isnan(series), np.inf, series)
    high = np.where(np.isnan(series), -np.inf, series)
    kept = {0, rows - 1}
    for start, end in pairwise(edges.tolist()):
        kept.update((start + low[start:end].argmin(axis=0)).tolist())
        kept.update((start + high[start:end].argmax(axis=0)).tolist())
    return np.array(sorted(kept), dtype=np.intp)
