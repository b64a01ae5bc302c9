"""One measured turn, and timelines of such turns."""

from __future__ import annotations

from windowpane.report.forecast_record import NO_FORECASTS
from windowpane.store.records import TurnRow
from windowpane_dashboard.queries.timeline import Timeline, marks_frame, regrets_frame, turns_frame

TURN = TurnRow(
    turn=1, window_id=1, at=None, model="m", used_before=900, used_after=700, used_final=800,
    count_source="usage",
    components={"tool_results": 500}, limit_tokens=10_000, usable_tokens=9_000, red_tokens=9_000, zone="green",
    utilization=0.08, velocity=100.0, added_tokens=200, turns_until_red=5.0, turns_until_red_p10=3.0,
    turns_until_red_p90=8.0, burn_rate=90.0, stale_tokens=80, duplicate_tokens=40, input_tokens=800,
    output_tokens=50, cache_read_tokens=500, cache_write_tokens=100, cost_dollars=0.10, latency_seconds=1.0,
    estimate_error=None,
)  # fmt: skip


def timeline(*turns: TurnRow) -> Timeline:
    return Timeline(
        turns_frame(turns),
        (),
        marks_frame([]),
        marks_cut=False,
        facts=None,
        lost_rules=0,
        forecasts=NO_FORECASTS,
        regrets=regrets_frame([]),
    )
