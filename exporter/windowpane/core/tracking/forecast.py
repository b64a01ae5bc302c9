"""Growth of the window and what follows from it: velocity, burn rate, spikes, turns until red."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from windowpane.core.limits import TrackerSettings
from windowpane.core.vocabulary import COMPONENTS, Component

BAND_Z: Final = 1.2816
"""Standard normal quantile of 90%: half the width of the 10–90 band."""
MINIMUM_FORECAST_TURNS: Final = 3
TENTH: Final = 10
MAXIMUM_FORECAST_TURNS: Final = 10_000.0


class Forecast(NamedTuple):
    """Turns until a level is reached: median and the ends of the 10–90 band; infinite without growth."""

    median: float
    early: float
    late: float


class Growth(NamedTuple):
    """Clipped mean and deviation of the tokens added per turn."""

    turns: int
    mean: float
    deviation: float


def growth(added: Sequence[int]) -> Growth:
    """Return the winsorized mean and deviation: the largest tenth counts as the largest of the rest.

    A single burst then raises neither the baseline that it is compared with nor the forecast, while repeated
    bursts count in full, as they do in the window.
    """
    turns = len(added)
    if not turns:
        return Growth(0, 0.0, 0.0)
    ordered = sorted(added)
    clipped = -(-turns // TENTH) if turns >= MINIMUM_FORECAST_TURNS else 0
    retained = ordered[: turns - clipped]
    values = [*retained, *[retained[-1]] * clipped]
    mean = sum(values) / turns
    return Growth(turns, mean, math.sqrt(sum([(value - mean) ** 2 for value in values]) / turns))


def forecast(remaining_tokens: float, recent: Growth) -> Forecast | None:
    """Return the turns until *remaining_tokens* more have been added; None before 3 turns.

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


class GrowthHistory:
    """Tokens added and blocks evicted in the last turns.

    The first turn is the base that a session starts from (system prompt, tools, task) and not growth, so it
    counts towards neither velocity nor forecast.
    """

    def __init__(self, settings: TrackerSettings) -> None:
        self._settings = settings
        self._added: deque[int] = deque(maxlen=settings.burn_turns)
        self._added_by_component: deque[dict[Component, int]] = deque(maxlen=settings.burn_turns)
        self._evicted: deque[int] = deque([0], maxlen=settings.velocity_turns)
        """Blocks evicted in each of the last 5 turns; the last entry belongs to the open turn."""
        self.recent = Growth(0, 0.0, 0.0)
        """Growth over the last 20 counted turns."""
        self.velocity: float | None = None
        """Tokens per turn, mean of the last 5 turns; None before the second turn."""
        self.burn_rate: float | None = None
        """Tokens per turn, mean of the last 20 turns; None before the second turn."""
        self.total_added = 0
        """Tokens added since the first turn, for the trend report."""
        self.turns = 0
        """Counted turns."""

    @property
    def added(self) -> tuple[int, ...]:
        """Tokens added in each of the last 20 counted turns, oldest first."""
        return tuple(self._added)

    def open_turn(self) -> None:
        """Start counting the evictions of another turn."""
        self._evicted.append(0)

    def close_turn(self, turn: int, added: int, by_component: dict[Component, int]) -> float | None:
        """Count the additions of a turn that ended; return the baseline that they spiked above, else None."""
        if turn <= 1:
            return None
        baseline = self.recent.mean
        settings = self._settings
        spiked = (
            len(self._added) >= settings.spike_minimum_turns
            and added >= settings.spike_minimum_tokens
            and added > settings.spike_multiple * baseline
        )
        self._added.append(added)
        self._added_by_component.append(by_component)
        self.recent = growth(self._added)
        last = tuple(self._added)[-settings.velocity_turns :]
        self.velocity = sum(last) / len(last)
        self.burn_rate = sum(self._added) / len(self._added)
        self.total_added += added
        self.turns += 1
        return baseline if spiked else None

    def count_evicted(self, blocks: int) -> None:
        """Count evicted blocks towards the open turn, or towards the last one if none is open."""
        self._evicted[-1] += blocks

    def eviction_rate(self) -> float:
        """Return the blocks evicted per turn over the last 5 turns, the open one included."""
        return sum(self._evicted) / self._settings.velocity_turns

    def burn_by_component(self) -> dict[Component, float]:
        """Return the burn rate of each component in tokens per turn; empty before the second turn."""
        turns = len(self._added_by_component)
        if not turns:
            return {}
        return {
            component: sum(added.get(component, 0) for added in self._added_by_component) / turns
            for component in COMPONENTS
        }
