"""Reads every gauge of the window at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowpane.events import PressureMeasured, Usage
from windowpane.protocols import CountSource
from windowpane.tracking.accounts import apportion
from windowpane.tracking.derive import Forecast, forecast
from windowpane.vocabulary import Component, Phase, Zone

if TYPE_CHECKING:
    from windowpane.tracking.tracker import SessionTracker


@dataclass(frozen=True, slots=True)
class Reading:
    """What the tracker knows at the moment of a measurement; tokens."""

    phase: Phase
    used_tokens: int
    components: dict[Component, int]
    """Uncorrected counts of what the call sends."""
    count_source: CountSource
    zone: Zone | None
    added_tokens: int
    added_by_component: dict[Component, int]
    estimate_error: float | None
    usage: Usage | None
    """Of the last call."""


class PressureGauge:
    """Turns a reading into `pressure.measured`; constant time, whatever the window holds."""

    def __init__(self, tracker: SessionTracker) -> None:
        self._tracker = tracker

    def measure(self, reading: Reading) -> PressureMeasured:
        """Every gauge of the catalogue but compression ratio and fidelity, which come in events of their own."""
        tracker, used = self._tracker, reading.used_tokens
        pace, window, limits = tracker.pace, tracker.window, tracker.limits
        parts = apportion(used, reading.components)
        scale = used / window.tokens if window.tokens else 0.0
        duplicate = min(used, round(window.duplicate_tokens * scale))
        stale = min(used - duplicate, round(window.stale_tokens * scale))
        usage = reading.usage
        burn = pace.burn_rate()
        common = {
            "phase": reading.phase,
            "used_tokens": used,
            "used_by_component": parts,
            "count_source": reading.count_source,
            "added_tokens": reading.added_tokens,
            "added_by_component": reading.added_by_component,
            "velocity": pace.velocity(),
            "burn_rate": burn,
            "tool_result_ratio": parts["tool_results"] / used if used else None,
            "duplicate_ratio": duplicate / used if used else None,
            "stale_ratio": stale / used if used else None,
            "duplicate_tokens": duplicate,
            "stale_tokens": stale,
            "eviction_rate": pace.eviction_rate(),
            "estimate_error": reading.estimate_error,
            "cache_hit_ratio": usage.cache_read_tokens / usage.input_total
            if usage and usage.input_total
            else None,
            "blocks": len(window),
        }
        if limits is None:
            return PressureMeasured(**common)  # type: ignore[arg-type]  # one dict for both shapes
        red = limits.at(limits.thresholds.red)
        ahead = forecast(red - used, pace.added) or Forecast(*([None] * 3))  # type: ignore[arg-type]
        return PressureMeasured(
            **common,  # type: ignore[arg-type]
            limit_tokens=limits.limit_tokens,
            limit_source=limits.source,
            usable_tokens=limits.usable_tokens,
            utilization=used / limits.limit_tokens,
            usable_utilization=used / limits.usable_tokens,
            zone=reading.zone,
            red_tokens=red,
            turns_until_red=ahead.median,
            turns_until_red_p10=ahead.early,
            turns_until_red_p90=ahead.late,
            turns_until_exhausted=_until(limits.overflow_tokens - used, burn),
            budget_utilization=self._budget(parts, limits.limit_tokens),
        )

    def _budget(self, parts: dict[Component, int], limit_tokens: int) -> dict[Component, float]:
        return {
            component: parts[component] / (share * limit_tokens)
            for component, share in self._tracker.settings.budget.items()
            if share > 0
        }


def _until(remaining_tokens: int, burn: float | None) -> float | None:
    if burn is None:
        return None
    if remaining_tokens <= 0:
        return 0.0
    return remaining_tokens / burn if burn > 0 else float("inf")
