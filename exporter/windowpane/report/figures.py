"""How numbers are written, everywhere the same: tokens, ratios, money, times, and an honest dash for unknown."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

UNKNOWN: Final = "–"


def tokens(value: float | None, *, short: bool = False) -> str:
    """`12,345`, or `12.3k` where space is tight."""
    if value is None:
        return UNKNOWN
    if not short or abs(value) < 1_000:
        return f"{value:,.0f}"
    for divisor, suffix in ((1_000_000, "M"), (1_000, "k")):
        if abs(value) >= divisor:
            scaled = value / divisor
            return f"{scaled:.0f}{suffix}" if abs(scaled) >= 100 else f"{scaled:.1f}{suffix}"
    return f"{value:,.0f}"


def ratio(value: float | None) -> str:
    """`0.87`."""
    return UNKNOWN if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """`87%`."""
    return UNKNOWN if value is None else f"{value:.0%}"


def dollars(value: float | None) -> str:
    """`$0.42`."""
    return UNKNOWN if value is None else f"${value:,.2f}"


def turns(value: float | None) -> str:
    """`4`, `now`, or `never` when flat."""
    if value is None:
        return UNKNOWN
    if math.isinf(value):
        return "never"
    return "now" if value <= 0 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def moment(at: float | None) -> str:
    """Local time to the second."""
    if at is None:
        return UNKNOWN
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def moment_utc(at: float | None) -> str:
    """The same in UTC, with the zone named."""
    return UNKNOWN if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float | None) -> str:
    """`3.2 s`, `14 min`, `2.5 h`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
