"""Growth of the window and what follows from it: velocity, burn rate, spikes, turns until a level."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from windowpane.core.limits import (
    BURN_TURNS,
    SPIKE_MINIMUM_TOKENS,
    SPIKE_MINIMUM_TURNS,
    SPIKE_MULTIPLE,
    TrackerSettings,
)
from windowpane.core.vocabulary import COMPONENTS, Component

MINIMUM_FORECAST_TURNS: Final = 3
"""Counted turns before a forecast for an agent without a documented growth."""
TENTH: Final = 10
MAXIMUM_FORECAST_TURNS: Final = 10_000.0

MEDIAN_SCALE: Final = 1.3
MEDIAN_EXPONENT: Final = 0.88
"""The median is `MEDIAN_SCALE × (remaining / pace) ** MEDIAN_EXPONENT`: bursts, which the pace does not count in
full, are the more likely the longer the wait."""
COMPACTION_DELAY: Final = 1.22
"""The agent's own compaction comes this much later than its level at the same pace: some clear tool results
first."""
SHAPE_TURNS: Final = 30
SHAPE_DIVISOR: Final = 17
TYPICAL_HELD_TURNS: Final = 50
MINIMUM_HELD_TURNS: Final = 10
"""The turns have a Weibull distribution of the squared shape `(median + SHAPE_TURNS) / SHAPE_DIVISOR`, times the
square root of the turns of typical growth that the window holds, over `TYPICAL_HELD_TURNS`: chance averages out
over a long wait, and what fills a window after its first files is steadier."""
MAXIMUM_SHAPE: Final = 100.0
BAND: Final = 0.80
"""Share of the outcomes that the band holds."""

RECENT_DECAY: Final = 0.9
"""Weight of a turn's growth in the recent mean, relative to that of the turn after it."""
RECENT_PRIOR_TURNS: Final = 2
"""Turns of typical growth that the recent mean starts from."""
RECENT_EXPONENT: Final = 0.55
"""Weight of the recent against the typical growth, on a logarithmic scale: pace returns to what is typical."""
BURST_MULTIPLE: Final = 3.0
"""Growth above this multiple of the typical counts as this multiple."""
DOCUMENTED_TURNS: Final = 100
"""Turns of the session's own growth that weigh as much as the documented one."""
USUAL_GROWTH: Final = 1_000.0
"""Tokens per turn that the session of another agent starts from: its first turns, in which files are read,
predict the later ones poorly. Recorded coding agents add 320 to 3,000 per turn in the long run."""
USUAL_TURNS: Final = 5
"""Turns of the session's own growth that weigh as much as the usual one; fewer where its own turns are alike."""
UNEVEN_VARIANCE: Final = 0.5
"""Squared deviation of the growth, relative to the typical growth, from which on a session is as uneven as coding
agents are; every recorded session is above it, and only steadier growth has a narrower band."""
UNEVEN_PRIOR_TURNS: Final = 4


class Forecast(NamedTuple):
    """Turns until a level is reached: median and the ends of the 10–90 band; infinite without growth."""

    median: float
    early: float
    late: float


class GrowthPace:
    """Growth per turn that a forecast counts on: typical for the session, drawn towards the recent turns.

    Constant in size and in time per turn. *documented_growth* is the agent's typical growth in tokens per turn
    where one is known; without it the session starts from that of coding agents, with less weight.
    """

    def __init__(self, documented_growth: float | None = None) -> None:
        self.turns = 0
        """Counted turns."""
        self.ready = documented_growth is not None
        """True if there is enough evidence for a forecast."""
        self.typical = documented_growth or USUAL_GROWTH
        """Typical tokens per turn of the session."""
        self.unevenness = 1.0
        """1 for growth as uneven as that of coding agents, towards 0 for steady growth."""
        self._documented = documented_growth
        self._total = 0.0
        self._last = self._last_but_one = 0
        self._recent = 0.0
        self._recent_weight = 0.0
        self._deviations = float(UNEVEN_PRIOR_TURNS)
        self.tokens_per_turn = documented_growth or 0.0
        """The pace in tokens per turn; 0 without growth."""

    def add(self, tokens: int) -> None:
        """Count the growth of a turn."""
        self.turns += 1
        documented, usual = self._documented, self.typical
        if documented is None:
            usual = max(usual, min(self._last, self._last_but_one))
            self._last_but_one, self._last = self._last, tokens
        counted = min(float(tokens), BURST_MULTIPLE * usual)
        self._total += counted
        mean = self._total / self.turns
        expected = mean if documented is None else usual
        if expected > 0:
            self._deviations += (counted / expected - 1) ** 2
        self._recent = RECENT_DECAY * self._recent + counted
        self._recent_weight = RECENT_DECAY * self._recent_weight + 1
        self.unevenness = min(1.0, self._deviations / (UNEVEN_PRIOR_TURNS + self.turns) / UNEVEN_VARIANCE)
        self.ready = self.ready or self.turns >= MINIMUM_FORECAST_TURNS
        if documented is not None:
            self.typical = (self._total + DOCUMENTED_TURNS * documented) / (self.turns + DOCUMENTED_TURNS)
            self.tokens_per_turn = self._drawn_pace()
        elif mean > 0:
            own = self._deviations - UNEVEN_PRIOR_TURNS
            weight = USUAL_TURNS * min(1.0, (own / UNEVEN_VARIANCE + 1) / (self.turns + 1))
            self.typical = mean * float((USUAL_GROWTH / mean) ** (weight / (self.turns + weight)))
            self.tokens_per_turn = self._drawn_pace()

    def _drawn_pace(self) -> float:
        typical = self.typical
        recent = (RECENT_PRIOR_TURNS * typical + self._recent) / (RECENT_PRIOR_TURNS + self._recent_weight)
        return typical * float((recent / typical) ** RECENT_EXPONENT)


def winsorized_mean(added: Sequence[int]) -> float:
    """Return the mean of *added*, of which the largest tenth counts as the largest of the rest.

    A single burst then does not raise the baseline that it is compared with, while repeated bursts count in full,
    as they do in the window.
    """
    turns = len(added)
    if not turns:
        return 0.0
    clipped = -(-turns // TENTH) if turns >= MINIMUM_FORECAST_TURNS else 0
    retained = sorted(added)[: turns - clipped]
    return (sum(retained) + clipped * retained[-1]) / turns


def forecast(
    remaining_tokens: float, pace: GrowthPace, *, used_tokens: float, of_compaction: bool = False
) -> Forecast | None:
    """Return the turns until *remaining_tokens* more have been added; None without enough evidence.

    The turns have a Weibull distribution around a power of remaining tokens over pace; `docs/forecast.md` has
    the formula and its measured quality. The band is the range of whole turns that holds closest to 80% of the
    outcomes. *of_compaction* counts the calls that the agent still makes before it compacts by itself: it does so
    before the call that would pass the level.
    """
    if not pace.ready:
        return None
    if remaining_tokens <= 0:
        return _NOW
    tokens_per_turn = pace.tokens_per_turn
    if tokens_per_turn * MAXIMUM_FORECAST_TURNS < remaining_tokens:
        return _NEVER
    uneven = pace.unevenness
    delay = COMPACTION_DELAY if of_compaction else 1.0
    scale, exponent = 1 + uneven * (delay * MEDIAN_SCALE - 1), 1 + uneven * (MEDIAN_EXPONENT - 1)
    median = scale * (remaining_tokens / tokens_per_turn) ** exponent
    held = max(used_tokens / pace.typical, MINIMUM_HELD_TURNS)
    squared = (median + SHAPE_TURNS) / SHAPE_DIVISOR * math.sqrt(held / TYPICAL_HELD_TURNS)
    shape = min(MAXIMUM_SHAPE, math.sqrt(squared / uneven))
    # Of a Weibull distribution of this median, 1 - 2 ** -((t / median) ** shape) is the probability of at most t
    # turns, and median * (-log2(1 - p)) ** (1 / shape) the turns that are enough with probability p.
    before = math.floor(median * _EARLY_POWER ** (1 / shape))
    share = 1 - 2.0 ** -((before / median) ** shape) + BAND
    last = math.floor(median * (-math.log2(1 - share)) ** (1 / shape))
    if share - (1 - 2.0 ** -((last / median) ** shape)) > 1 - 2.0 ** -(((last + 1) / median) ** shape) - share:
        last += 1
    unmade = 1 if of_compaction else 0
    early = before + 1.0 - unmade
    return Forecast(max(median - unmade, early), early, float(max(early, last - unmade)))


_NOW: Final = Forecast(0.0, 0.0, 0.0)
_NEVER: Final = Forecast(math.inf, math.inf, math.inf)
_EARLY_POWER: Final = -math.log2(1 - (1 - BAND) / 2)


class GrowthHistory:
    """Tokens added and blocks evicted in the last turns.

    The first turn is the base that a session starts from (system prompt, tools, task) and not growth, so it
    counts towards neither velocity nor forecast.
    """

    def __init__(self, settings: TrackerSettings, *, documented_growth: float | None = None) -> None:
        self._velocity_turns = settings.velocity_turns
        self._added: deque[int] = deque(maxlen=BURN_TURNS)
        self._added_by_component: deque[dict[Component, int]] = deque(maxlen=BURN_TURNS)
        self._evicted: deque[int] = deque([0], maxlen=settings.velocity_turns)
        """Blocks evicted in each of the last 5 turns; the last entry belongs to the open turn."""
        self.pace = GrowthPace(documented_growth)
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
        baseline = None
        if len(self._added) >= SPIKE_MINIMUM_TURNS and added >= SPIKE_MINIMUM_TOKENS:
            usual = winsorized_mean(self._added)
            baseline = usual if added > SPIKE_MULTIPLE * usual else None
        self._added.append(added)
        self._added_by_component.append(by_component)
        self.pace.add(added)
        last = tuple(self._added)[-self._velocity_turns :]
        self.velocity = sum(last) / len(last)
        self.burn_rate = sum(self._added) / len(self._added)
        self.total_added += added
        self.turns += 1
        return baseline

    def count_evicted(self, blocks: int) -> None:
        """Count evicted blocks towards the open turn, or towards the last one if none is open."""
        self._evicted[-1] += blocks

    def eviction_rate(self) -> float:
        """Return the blocks evicted per turn over the last 5 turns, the open one included."""
        return sum(self._evicted) / self._velocity_turns

    def turns_until(self, level_tokens: int, used_tokens: int, *, of_compaction: bool = False) -> Forecast | None:
        """Return the turns until a window of *used_tokens* reaches a level; None without enough evidence."""
        return forecast(
            level_tokens - used_tokens, self.pace, used_tokens=used_tokens, of_compaction=of_compaction
        )

    def turns_at_rate(self, remaining_tokens: int) -> float | None:
        """Return the turns that add *remaining_tokens* at the burn rate; infinite without growth."""
        burn = self.burn_rate
        if burn is None:
            return None
        if remaining_tokens <= 0:
            return 0.0
        return remaining_tokens / burn if burn > 0 else float("inf")

    def burn_by_component(self) -> dict[Component, float]:
        """Return the burn rate of each component in tokens per turn; empty before the second turn."""
        turns = len(self._added_by_component)
        if not turns:
            return {}
        return {
            component: sum(added.get(component, 0) for added in self._added_by_component) / turns
            for component in COMPONENTS
        }
