"""Measures of forecasts: rows of the outcome, and of the forecast at the quantiles 0.1, 0.5 and 0.9."""

from __future__ import annotations

import numpy as np

from forecast.forecasters import QUANTILES


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
