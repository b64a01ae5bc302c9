"""A session, a measured turn, and timelines of such turns."""

from __future__ import annotations

from windowpane.report.forecast_record import NO_FORECASTS
from windowpane.store.records import SessionRow, TurnRow
from windowpane_dashboard.queries.timeline import Timeline, marks_frame, regrets_frame, turns_frame

SESSION = SessionRow(
    session_id="s", revision=1, agent="a", model="m", source="live", parent_session_id=None, started_at=0.0,
    last_at=1_000.0, ended=False, incomplete=False, turns=40, exchanges=1, events=10, windows=1,
    limit_tokens=100_000, limit_source="given", used_tokens=50_000, peak_used_tokens=93_000, utilization=0.5,
    peak_utilization=0.93, zone="yellow", worst_zone="red", velocity=100.0, turns_until_red=9.0, cost_dollars=1.0,
    input_tokens=100, output_tokens=1, cache_read_tokens=40, evicted_blocks=0, evicted_tokens=0, compressions=0,
    regrets=0, overflows=0, fidelity=None, firing=0, worst_severity=None, last_event="turn.ended",
)  # fmt: skip
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
