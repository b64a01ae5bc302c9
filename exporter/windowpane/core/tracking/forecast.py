"""What follows from the facts: pure functions over numbers, no state and no clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import ZONES, Zone

BAND_Z: Final = 1.2816
"""Standard normal quantile of 90%: half the width of the 10–90 band."""
MINIMUM_FORECAST_TURNS: Final = 3
TENTH: Final = 10
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
    entered = _highest(used_tokens, limits)
    if previous is None or ZONES.index(entered) >= ZONES.index(previous):
        return entered
    slack = int(limits.thresholds.hysteresis * limits.limit_tokens)
    return min(_highest(used_tokens + slack, limits), previous, key=ZONES.index)


def _highest(used_tokens: int, limits: WindowLimits) -> Zone:
    if used_tokens < limits.yellow_tokens:
        return "green"
    if used_tokens < limits.orange_tokens:
        return "yellow"
    if used_tokens < limits.red_tokens:
        return "orange"
    return "red" if used_tokens <= limits.overflow_tokens else "overflow"


class Growth(NamedTuple):
    """What recent additions say about the next ones, tokens a turn."""

    turns: int
    mean: float
    deviation: float


def growth(added: Sequence[int]) -> Growth:
    """Winsorised mean and deviation of the additions: the largest tenth counts as the largest of the rest.

    One burst then carries neither the baseline it is judged by nor the forecast, while bursts that keep coming
    count in full, as they do in the window.
    """
    turns = len(added)
    if not turns:
        return Growth(0, 0.0, 0.0)
    ordered = sorted(added)
    clipped = -(-turns // TENTH) if turns >= MINIMUM_FORECAST_TURNS else 0
    kept = ordered[: turns - clipped]
    values = [*kept, *[kept[-1]] * clipped]
    mean = sum(values) / turns
    return Growth(turns, mean, math.sqrt(sum([(value - mean) ** 2 for value in values]) / turns))


def forecast(remaining_tokens: float, recent: Growth) -> Forecast | None:
    """Turns until *remaining_tokens* more have been added; None before 3 turns.

    The sum of n additions is close to normal with mean nμ and deviation σ√n; the q-quantile of the first n that
    reaches R solves nμ ∓ zσ√n = R, which is quadratic in √n.
    """
    if recent.turns < MINIMUM_FORECAST_TURNS:
        return None
    if remaining_tokens <= 0:
        return _NOW
    mean = recent.mean
    if mean * MAXIMUM_FORECAST_TURNS < remaining_tokens:
        return _NEVER
    spread = BAND_Z * recent.deviation
    root = math.sqrt(spread * spread + 4 * mean * remaining_tokens)
    return Forecast(
        median=remaining_tokens / mean,
        early=((root - spread) / (2 * mean)) ** 2,
        late=((root + spread) / (2 * mean)) ** 2,
    )


_NOW: Final = Forecast(0.0, 0.0, 0.0)
_NEVER: Final = Forecast(math.inf, math.inf, math.inf)
