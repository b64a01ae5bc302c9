"""Reads every gauge of the window at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from windowpane.core.events import PressureMeasured, Usage
from windowpane.core.records import record
from windowpane.core.tracking.forecast import forecast
from windowpane.core.tracking.token_account import apportion
from windowpane.core.vocabulary import Component, CountSource, Phase, Zone

if TYPE_CHECKING:
    from windowpane.core.limits import WindowLimits
    from windowpane.core.tracking.turns import Turns

_UNKNOWN: Final = (None, None, None)


@record
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


def measure(tracker: Turns, reading: Reading) -> PressureMeasured:
    """Every gauge of the catalog but compression ratio and fidelity, which come in events of their own.

    Constant time, whatever the window holds.
    """
    used = reading.used_tokens
    pace, window, limits, usage = tracker.pace, tracker.window, tracker.limits, reading.usage
    parts = apportion(used, reading.components)
    duplicate = stale = 0
    if window.duplicate_tokens or window.stale_tokens:
        scale = used / window.tokens
        duplicate = min(used, round(window.duplicate_tokens * scale))
        stale = min(used - duplicate, round(window.stale_tokens * scale))
    red = None if limits is None else limits.red_tokens
    median, early, late = _UNKNOWN if red is None else forecast(red - used, pace.growth) or _UNKNOWN
    burn = pace.burn_rate
    # Positional, in the order of the fields: keywords cost a tenth of a hook at the start of a turn.
    return PressureMeasured(
        used,
        parts,
        reading.count_source,
        limits.limit_tokens if limits else None,
        limits.source if limits else None,
        limits.usable_tokens if limits else None,
        used / limits.limit_tokens if limits else None,
        used / limits.usable_tokens if limits else None,
        reading.zone,
        red,
        reading.added_tokens,
        reading.added_by_component,
        pace.velocity,
        median,
        early,
        late,
        burn,
        _until(limits.overflow_tokens - used, burn) if limits else None,
        _budget(tracker.settings.budget, parts, limits) if limits else {},
        parts["tool_results"] / used if used else None,
        duplicate / used if used else None,
        stale / used if used else None,
        duplicate,
        stale,
        pace.eviction_rate(),
        reading.estimate_error,
        usage.cache_read_tokens / usage.input_total if usage and usage.input_total else None,
        len(window),
        phase=reading.phase,
    )


def _budget(
    shares: dict[Component, float], parts: dict[Component, int], limits: WindowLimits
) -> dict[Component, float]:
    limit = limits.limit_tokens
    return {component: parts[component] / (share * limit) for component, share in shares.items() if share > 0}


def _until(remaining_tokens: int, burn: float | None) -> float | None:
    if burn is None:
        return None
    if remaining_tokens <= 0:
        return 0.0
    return remaining_tokens / burn if burn > 0 else float("inf")
