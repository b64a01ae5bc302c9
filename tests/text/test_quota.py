"""The quota of a plan as text."""

from __future__ import annotations

from windowpane.core.quota import QuotaForecast
from windowpane.text.quota import quota_text

NOW = 1_770_000_000.0


def test_the_end_of_a_quota_is_forecast_only_while_its_agent_works() -> None:
    read, old = NOW - 60, NOW - 5 * 3_600
    recent, stale = (
        QuotaForecast("codex", 10_080, 0.99, NOW + 86_400, runs_out_at=NOW + 3_600, read_at=at)
        for at in (read, old)
    )

    forecast = "codex used 99% of its limit for 7 days; it runs out in 1 h and resets in 1 day"
    assert quota_text(recent, NOW) == forecast
    assert quota_text(stale, NOW, {"codex"}) == forecast
    assert quota_text(stale, NOW, {"other"}) == (
        "codex used 99% of its limit for 7 days, measured 5 h ago; it resets in 1 day"
    )
