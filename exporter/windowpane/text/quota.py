"""The quota of a plan as text."""

from __future__ import annotations

from windowpane.core.times import live_since
from windowpane.text.formats import ago, count, percent

TYPE_CHECKING = False  # the status line of a coding agent, which uses this, must not wait for typing
if TYPE_CHECKING:
    from collections.abc import Container

    from windowpane.core.events import QuotaMeasured
    from windowpane.core.quota import QuotaForecast

_HOUR, _DAY = 60, 1_440
"""Minutes."""


def duration(minutes: float) -> str:
    """Return a time in its two largest units: `20 min`, `1 h 20 min`, `6 days 4 h`."""
    whole = max(0, round(minutes))
    if whole < _HOUR:
        return f"{whole} min"
    if whole < _DAY:
        hours, rest = divmod(whole, _HOUR)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(whole / _HOUR), 24)
    text = count(days, "day")
    return f"{text} {rest} h" if rest else text


def used_windows(quota: QuotaMeasured) -> str:
    """Return the used part of each window: `12% of 5 h, 40% of 7 days`."""
    return ", ".join(f"{percent(window.used_ratio)} of {duration(window.minutes)}" for window in quota.windows)


def quota_text(forecast: QuotaForecast, now: float, live: Container[str] = ()) -> str:
    """Return the state of a window: `codex used 56% of its limit for 5 h; it resets in 3 h`.

    When it runs out is forecast only after a recent reading, or while a session of the agent is *live*.
    """
    limit, reset = f"its limit for {duration(forecast.minutes)}", duration((forecast.resets_at - now) / 60)
    if forecast.runs_out_at is not None and forecast.runs_out_at <= now:
        return f"{forecast.agent} used up {limit}; it resets in {reset}"
    used = f"{forecast.agent} used {percent(forecast.used_ratio)} of {limit}"
    if forecast.read_at < live_since(now) and forecast.agent not in live:
        return f"{used}, measured {ago(forecast.read_at, now)}; it resets in {reset}"
    if forecast.runs_out_at is None:
        return f"{used}; it resets in {reset}"
    return f"{used}; it runs out in {duration((forecast.runs_out_at - now) / 60)} and resets in {reset}"
