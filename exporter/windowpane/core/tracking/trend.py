"""What a finished session's window looked like, collected as it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.core.events import PressureMeasured, TrendReport
from windowpane.core.vocabulary import Zone

if TYPE_CHECKING:
    from windowpane.core.tracking.growth import Pace


class Trend:
    """Counters for the trend report of one session."""

    def __init__(self) -> None:
        self.evicted_blocks = 0
        self.compressions = 0
        self.regrets = 0
        self._peak_used = 0
        self._peak_utilization: float | None = None
        self._final_used = 0
        self._cost: float | None = None
        self._zones: dict[Zone, int] = {}
        self._turns = 0

    def close_turn(self, measured: PressureMeasured, cost_dollars: float | None) -> None:
        """Take in the last measurement of a turn."""
        self._turns += 1
        self._final_used = measured.used_tokens
        self._peak_used = max(self._peak_used, measured.used_tokens)
        if measured.utilization is not None:
            self._peak_utilization = max(self._peak_utilization or 0.0, measured.utilization)
        if measured.zone is not None:
            self._zones[measured.zone] = self._zones.get(measured.zone, 0) + 1
        if cost_dollars is not None:
            self._cost = (self._cost or 0.0) + cost_dollars

    def report(self, pace: Pace) -> TrendReport:
        """The trend report."""
        return TrendReport(
            turns=self._turns,
            peak_used_tokens=self._peak_used,
            peak_utilization=self._peak_utilization,
            final_used_tokens=self._final_used,
            mean_added_tokens=pace.total_added / pace.turns if pace.turns else 0.0,
            evicted_blocks=self.evicted_blocks,
            compressions=self.compressions,
            regrets=self.regrets,
            cost_dollars=self._cost,
            zones=dict(self._zones),
        )
