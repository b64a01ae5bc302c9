"""What follows from the facts: pure functions over numbers, no state and no clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Final, NamedTuple

from windowpane.settings import WindowLimits
from windowpane.vocabulary import ZONES, Zone

BAND_Z: Final = 1.2816
"""Standard normal quantile of 90%: half the width of the 10–90 band."""
MINIMUM_FORECAST_TURNS: Final = 3
MAXIMUM_FORECAST_TURNS: Final = 10_000.0


class Forecast(NamedTuple):
    """Turns until a level is reached: median and the ends of the 10–90 band; infinite when flat."""

    median: float
    early: float
    late: float


def zone_of(used_tokens: int, limits: WindowLimits, *, previous: Zone | None = None) -> Zone:
    """The zone of *used_tokens*, named by the threshold that was entered.

    Going up, a zone is entered at its threshold. Going down from *previous*, one is left only when used falls
    below its threshold by the hysteresis share of the limit, so that a window at a threshold does not flap.
    """
    starts = zone_starts(limits)
    entered = _highest(used_tokens, starts)
    if previous is None or ZONES.index(entered) >= ZONES.index(previous):
        return entered
    slack = int(limits.thresholds.hysteresis * limits.limit_tokens)
    held = _highest(used_tokens + slack, starts)
    return min(held, previous, key=ZONES.index)


def zone_starts(limits: WindowLimits) -> dict[Zone, int]:
    """Tokens at which each zone begins; overflow begins above usable plus margin."""
    thresholds = limits.thresholds
    return {
        "green": 0,
        "yellow": limits.at(thresholds.yellow),
        "orange": limits.at(thresholds.orange),
        "red": limits.at(thresholds.red),
        "overflow": limits.overflow_tokens + 1,
    }


def _highest(used_tokens: int, starts: dict[Zone, int]) -> Zone:
    zone: Zone = "green"
    for candidate, start in starts.items():
        if used_tokens >= start:
            zone = candidate
    return zone


def forecast(remaining_tokens: float, added: Sequence[int]) -> Forecast | None:
    """Turns until *remaining_tokens* more have been added, from the recent additions; None before 3 turns.

    Additions are clipped at three times their median first, so that one burst does not carry the forecast. Their
    sum over n turns is close to normal with mean nμ and deviation σ√n; the q-quantile of the first n that reaches
    R solves nμ ∓ zσ√n = R, which is quadratic in √n.
    """
    if len(added) < MINIMUM_FORECAST_TURNS:
        return None
    if remaining_tokens <= 0:
        return Forecast(0.0, 0.0, 0.0)
    clipped = clip(added)
    mean = fmean(clipped)
    if mean < remaining_tokens / MAXIMUM_FORECAST_TURNS:
        return Forecast(math.inf, math.inf, math.inf)
    deviation = math.sqrt(fmean([(value - mean) ** 2 for value in clipped]))
    spread = BAND_Z * deviation
    root = math.sqrt(spread * spread + 4 * mean * remaining_tokens)
    return Forecast(
        median=remaining_tokens / mean,
        early=((root - spread) / (2 * mean)) ** 2,
        late=((root + spread) / (2 * mean)) ** 2,
    )


def clip(added: Sequence[int]) -> list[float]:
    """The additions, none above three times their median (a winsorised sample); unchanged when that is 0."""
    ceiling = 3 * median(added)
    return [min(value, ceiling) for value in added] if ceiling > 0 else [float(value) for value in added]


def spike_baseline(before: Sequence[int]) -> float:
    """Clipped mean of the turns before the one that is judged."""
    return fmean(clip(before)) if before else 0.0
