"""The quota of a plan: how much of each window is used, and when it runs out at the present pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

MINUTE: Final = 60
RECENT_SHARE: Final = 0.2
"""Part of a window over which the pace is measured: the last hour of five, the last 34 hours of seven days."""
MINIMUM_SECONDS: Final = 900
"""Shortest time over which a pace is measured; over less, that of the whole window counts."""
SAME_WINDOW_SECONDS: Final = 300
"""Ends of a window that providers state at most so far apart are the same; accounts differ by more."""


@dataclass(frozen=True, slots=True)
class QuotaReading:
    """The moment at which a part of a window was first seen used."""

    agent: str
    minutes: int
    """Length of the window."""
    resets_at: float
    """End of the window, in seconds since the epoch."""
    used_ratio: float
    at: float


@dataclass(frozen=True, slots=True)
class QuotaForecast:
    """The state of one window now."""

    agent: str
    minutes: int
    used_ratio: float
    resets_at: float
    runs_out_at: float | None
    """Time at which the quota is used up at the pace of the last fifth of the window; None if it lasts."""
    read_at: float = 0.0
    """Time of the last reading."""


def quota_forecasts(readings: Iterable[QuotaReading], *, now: float) -> list[QuotaForecast]:
    """Return the state of each window that has not ended: the first to run out first, then by used part."""
    ordered = sorted(
        (one for one in readings if one.resets_at > now and one.at <= now),
        key=lambda one: (one.agent, one.minutes, one.resets_at),
    )
    forecasts = []
    for _, group in groupby(ordered, key=lambda one: (one.agent, one.minutes)):
        window: list[QuotaReading] = []
        for reading in group:
            if window and reading.resets_at - window[-1].resets_at > SAME_WINDOW_SECONDS:
                forecasts.append(_forecast(window, now))
                window = []
            window.append(reading)
        forecasts.append(_forecast(window, now))
    return sorted(forecasts, key=lambda one: (one.runs_out_at or float("inf"), -one.used_ratio))


def _forecast(window: list[QuotaReading], now: float) -> QuotaForecast:
    last = max(window, key=lambda one: (one.used_ratio, one.at))
    runs_out = last.at if last.used_ratio >= 1 else _runs_out_at(window, last, now)
    if runs_out is not None and runs_out >= last.resets_at:
        runs_out = None
    read_at = max(one.at for one in window)
    return QuotaForecast(last.agent, last.minutes, last.used_ratio, last.resets_at, runs_out, read_at)


def _runs_out_at(window: list[QuotaReading], last: QuotaReading, now: float) -> float | None:
    start, used = last.resets_at - last.minutes * MINUTE, 0.0
    since = now - RECENT_SHARE * last.minutes * MINUTE
    before = [one for one in window if one.at <= since]
    if before:  # what was used at the start of the recent part
        start, used = since, max(one.used_ratio for one in before)
    elif (
        now - start > RECENT_SHARE * last.minutes * MINUTE
        and now - min(one.at for one in window) >= MINIMUM_SECONDS
    ):
        first = min(window, key=lambda one: one.at)
        start, used = first.at, first.used_ratio
    seconds = now - start
    if seconds < MINIMUM_SECONDS or last.used_ratio <= used:
        return None
    return now + (1 - last.used_ratio) * seconds / (last.used_ratio - used)
