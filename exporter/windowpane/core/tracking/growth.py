"""How fast the window fills: additions and evictions by turn, over short fixed horizons."""

from __future__ import annotations

from collections import deque

from windowpane.core.limits import TrackerSettings
from windowpane.core.tracking.forecast import Growth, growth
from windowpane.core.vocabulary import COMPONENTS, Component


class Pace:
    """Tokens added and blocks evicted in the last turns.

    The first turn is the base the session starts from (system prompt, tools, the task), not growth, so it enters
    neither velocity nor forecast.
    """

    def __init__(self, settings: TrackerSettings) -> None:
        self._settings = settings
        self._added: deque[int] = deque(maxlen=settings.burn_turns)
        self._added_by_component: deque[dict[Component, int]] = deque(maxlen=settings.burn_turns)
        self._evicted: deque[int] = deque([0], maxlen=settings.velocity_turns)
        """Blocks evicted in each of the last 5 turns; the last entry is that of the open turn."""
        self.growth = Growth(0, 0.0, 0.0)
        """Of the last 20 counted turns."""
        self.velocity: float | None = None
        """Mean of added over the last 5 turns, tokens a turn; None before the second turn."""
        self.burn_rate: float | None = None
        """Mean of added over the last 20 turns, tokens a turn; None before the second turn."""
        self.total_added = 0
        """Since the first turn, for the trend report."""
        self.turns = 0
        """Turns that were counted."""

    @property
    def added(self) -> tuple[int, ...]:
        """Tokens added in each of the last 20 counted turns, oldest first."""
        return tuple(self._added)

    def close_turn(self, turn: int, added: int, by_component: dict[Component, int]) -> float | None:
        """Count a turn that ended; returns the baseline it spiked above, or None when it did not."""
        if turn <= 1:
            return None
        baseline = self.growth.mean
        settings = self._settings
        spiked = (
            len(self._added) >= settings.spike_minimum_turns
            and added >= settings.spike_minimum_tokens
            and added > settings.spike_multiple * baseline
        )
        self._added.append(added)
        self._added_by_component.append(by_component)
        self.growth = growth(self._added)
        recent = tuple(self._added)[-settings.velocity_turns :]
        self.velocity = sum(recent) / len(recent)
        self.burn_rate = sum(self._added) / len(self._added)
        self.total_added += added
        self.turns += 1
        return baseline if spiked else None

    def open_turn(self) -> None:
        """A turn begins."""
        self._evicted.append(0)

    def evicted(self, blocks: int) -> None:
        """Count blocks evicted in the open turn, or in the last where none is open."""
        self._evicted[-1] += blocks

    def burn_by_component(self) -> dict[Component, float]:
        """The burn rate of each component, tokens a turn; empty before the second turn."""
        turns = len(self._added_by_component)
        if not turns:
            return {}
        return {
            component: sum(added.get(component, 0) for added in self._added_by_component) / turns
            for component in COMPONENTS
        }

    def eviction_rate(self) -> float:
        """Blocks evicted a turn over the last 5 turns, the open one included."""
        return sum(self._evicted) / self._settings.velocity_turns
