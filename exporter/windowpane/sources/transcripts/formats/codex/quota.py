"""The plan's quota in a rollout: `rate_limits` of a `token_count`, with a window `primary` and `secondary`.

`{"primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1782494656}, "plan_type": "pro", …}`; the
first releases have `resets_in_seconds` instead of `resets_at`.
"""

from __future__ import annotations

from typing import Any, Final

from windowpane.core.events import QuotaMeasured, QuotaWindow
from windowpane.core.names import described_line
from windowpane.sources.transcripts.json_lines import count, mapping, text

PLAN_CHARACTERS: Final = 32


def quota_of(stated: dict[str, Any], at: float | None) -> QuotaMeasured | None:
    """Return the windows of a plan; None where none is stated."""
    windows = [_window(mapping(stated.get(name)), at) for name in ("primary", "secondary")]
    complete = tuple(window for window in windows if window is not None)
    plan = described_line(text(stated.get("plan_type")), PLAN_CHARACTERS)
    return QuotaMeasured(complete, plan) if complete else None


def _window(stated: dict[str, Any], at: float | None) -> QuotaWindow | None:
    minutes, used, resets_at = (
        count(stated.get("window_minutes")),
        stated.get("used_percent"),
        stated.get("resets_at"),
    )
    if not isinstance(resets_at, int | float) and at is not None and "resets_in_seconds" in stated:
        resets_at = at + count(stated["resets_in_seconds"])
    if isinstance(used, bool) or not isinstance(used, int | float) or not isinstance(resets_at, int | float):
        return None
    return QuotaWindow(minutes, float(used) / 100, float(resets_at)) if minutes and used >= 0 else None
