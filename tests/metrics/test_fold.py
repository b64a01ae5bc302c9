"""The metric fold: counted events, gauges, and live sessions."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlocksEvicted,
    BudgetWarned,
    CallsCopied,
    CheckpointSaved,
    CompactionMeasured,
    ContentCompressed,
    ContentRegretted,
    EvictedBlock,
    FidelityEvaluated,
    NotificationDelivered,
    OverflowDetected,
    PressureMeasured,
    SessionContinued,
    SessionEnded,
    SessionStarted,
    TurnEnded,
    Usage,
    VelocitySpiked,
    ZoneChanged,
)
from windowpane.core.times import LIVE_SECONDS
from windowpane.metrics.catalog import TURN_UTILIZATION
from windowpane.metrics.families import session_label
from windowpane.metrics.fold import AlertKey, MetricState

NOW = 1_000.0


def test_a_turn_counts_its_usage_and_price(make_event, value_of) -> None:
    state = MetricState()
    usage = Usage(100, 20, cache_read_tokens=300, cache_write_tokens=40, reasoning_tokens=5)
    state.apply(make_event(TurnEnded(usage, "usage", cost_dollars=0.5)))
    state.apply(make_event(TurnEnded(None, "estimate")))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_turns_total") == 2
    assert [
        value_of(families, "context_window_model_tokens_total", type=kind)
        for kind in ("input", "output", "cache_read", "cache_write", "reasoning")
    ] == [100, 20, 300, 40, 5]
    assert value_of(families, "context_window_cost_dollars_total") == 0.5


def test_only_the_final_measurement_of_a_turn_counts(make_event, measured, value_of) -> None:
    """Added and carried tokens are counted once a turn, however often it was measured."""
    state = MetricState()
    for phase in ("before", "after", "final"):
        state.apply(
            make_event(
                measured(
                    phase=phase,
                    added_by_component={"tool_results": 70},
                    stale_tokens=200,
                    duplicate_tokens=100,
                )
            )
        )
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_added_tokens_total", component="tool_results") == 70
    assert [
        value_of(families, "context_window_carried_tokens_total", state=worth)
        for worth in ("fresh", "stale", "duplicate")
    ] == [700, 200, 100]


def test_compressions_add_to_the_cost(make_event, value_of) -> None:
    state = MetricState()
    state.apply(make_event(TurnEnded(Usage(100, 20), "usage", cost_dollars=0.5)))
    state.apply(
        make_event(ContentCompressed("compaction", "threshold", "rejected", 9_000, 9_500, cost_dollars=0.25))
    )

    assert value_of(state.collect(now=NOW), "context_window_cost_dollars_total") == 0.75


def test_a_value_equal_to_a_bound_counts_in_its_bucket(make_event, measured) -> None:
    state = MetricState()
    bound = TURN_UTILIZATION.buckets[2]
    state.apply(make_event(measured(phase="final", utilization=bound)))
    (family,) = (one for one in state.collect(now=NOW) if one.metric is TURN_UTILIZATION)

    assert family.histograms[0].counts.index(1) == 2


def test_reductions_count_by_policy_type_strategy_and_outcome(make_event, value_of) -> None:
    state = MetricState()
    blocks = (
        EvictedBlock("b1", "tool_result", 500, "mask", "old"),
        EvictedBlock("b2", "thinking", 80, "drop", "x"),
    )
    state.apply(make_event(BlocksEvicted("hybrid", blocks, 580, 540)))
    state.apply(make_event(BlocksEvicted("unknown", (), 53_000, 53_000)))
    state.apply(make_event(ContentCompressed("compaction", "threshold", "accepted", 9_000, 1_000)))
    state.apply(make_event(ContentCompressed("compaction", "threshold", "rejected", 9_000, 9_500)))
    state.apply(make_event(ContentCompressed("truncation", "agent", "accepted", 50_000, 20_000, scope="window")))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_evicted_tokens_total", content_type="tool_result") == 500
    assert value_of(families, "context_window_evicted_tokens_total", content_type="unattributed") == 53_000
    assert value_of(families, "context_window_evicted_blocks_total", content_type="thinking") == 1
    assert value_of(families, "context_window_compressions_total", strategy="compaction", outcome="rejected") == 1
    assert value_of(families, "context_window_compressions_total", strategy="truncation", outcome="accepted") == 1
    assert value_of(families, "context_window_compression_input_tokens_total") == 9_000
    assert value_of(families, "context_window_compression_output_tokens_total") == 1_000


def test_every_other_counted_event_increases_its_counter(make_event, value_of) -> None:
    state = MetricState()
    for data in (
        ContentRegretted("eviction", "same_call", "b1", "b9", 500, 3, "id"),
        ZoneChanged("green", "yellow", 5_000, 0.5),
        VelocitySpiked(9_000, 1_000),
        BudgetWarned("tool_results", 900, 1_000),
        OverflowDetected("provider", "retried", 9_000, 8_192),
        CheckpointSaved(1, "threshold", 100, "d"),
    ):
        state.apply(make_event(data))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_regrets_total", cause="eviction") == 1
    assert value_of(families, "context_window_zone_transitions_total", **{"from": "green", "to": "yellow"}) == 1
    assert value_of(families, "context_window_velocity_spikes_total") == 1
    assert (
        value_of(families, "context_window_budget_events_total", component="tool_results", outcome="warned") == 1
    )
    assert value_of(families, "context_window_overflows_total", outcome="retried") == 1
    assert value_of(families, "context_window_checkpoints_total", outcome="saved") == 1


def test_counters_start_at_zero(make_event, value_of) -> None:
    state = MetricState(alerts=[AlertKey("utilization", "critical")])
    state.apply(make_event(SessionStarted()))
    families = state.collect(now=NOW)

    for name, labels in (
        ("turns_total", {}),
        ("zone_transitions_total", {"from": "orange", "to": "red"}),
        ("evicted_blocks_total", {"policy": "hybrid", "content_type": "tool_result"}),
        ("compressions_total", {"strategy": "compaction", "outcome": "accepted"}),
        ("overflows_total", {"outcome": "failed"}),
        ("alert_transitions_total", {"alert": "utilization", "state": "firing"}),
    ):
        assert value_of(families, f"context_window_{name}", **labels) == 0, name


def test_a_repeated_prefix_moves_gauges_but_not_counters(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(TurnEnded(None, "estimate")), counted=False)
    state.apply(make_event(measured(utilization=0.4)), counted=False)
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_turns_total") == 0
    assert value_of(families, "context_window_utilization_ratio") == 0.4


def test_calls_that_another_session_counts_move_gauges_but_not_counters(make_event, measured, value_of) -> None:
    state = MetricState()
    usage = Usage(1_000, output_tokens=10)
    state.write([
        make_event(SessionStarted()),
        make_event(CallsCopied("original", 1, 2)),
        *(make_event(TurnEnded(usage, "usage", cost_dollars=0.5), turn=turn) for turn in (1, 2, 3)),
        make_event(measured(utilization=0.4), turn=2),
        make_event(TurnEnded(usage, "usage", cost_dollars=0.5), session="other"),
    ])  # fmt: skip
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_turns_total") == 2
    assert value_of(families, "context_window_cost_dollars_total") == 1.0
    assert value_of(families, "context_window_utilization_ratio") == 0.4


def test_a_new_revision_clears_gauges_and_keeps_counters(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(SessionStarted()))
    state.apply(make_event(measured(utilization=0.95)))
    state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9)))
    state.apply(make_event(SessionStarted()), counted=False)
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_utilization_ratio") is None
    assert value_of(families, "context_window_alerts_firing", alert="utilization") == 0
    assert value_of(families, "context_window_alert_transitions_total", state="firing") == 1
    assert value_of(families, "context_window_sessions", zone="unknown") == 1


def test_unknown_gauges_are_absent_and_a_flat_forecast_is_infinite(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured(turns_until_red=math.inf)))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_turns_until_red", bound="p50") == math.inf
    assert value_of(families, "context_window_turns_until_red", bound="p10") is None
    for name in ("utilization_ratio", "limit_tokens", "fidelity_ratio", "compression_ratio", "cache_hit_ratio"):
        assert value_of(families, f"context_window_{name}") is None, name
    assert value_of(families, "context_window_sessions", zone="unknown") == 1


def test_a_measurement_without_a_limit_removes_the_utilization(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured(utilization=0.9, limit_tokens=8_192)))
    state.apply(make_event(measured(phase="before")))

    assert value_of(state.collect(now=NOW), "context_window_utilization_ratio") is None


@pytest.mark.parametrize(
    ("field", "name", "values", "expected"),
    [
        ("utilization", "utilization_ratio", (0.2, 0.9, None), 0.9),
        ("turns_until_exhausted", "turns_until_exhausted", (4.0, 2.0, math.inf), 2.0),
        ("limit_tokens", "limit_tokens", (8_192, 128_000, None), 136_192),
        ("estimate_error", "estimate_error_ratio", (0.1, -0.4, 0.2), -0.4),
        ("cache_hit_ratio", "cache_hit_ratio", (1.0, 0.0, None), 0.25),
    ],
)
def test_sessions_aggregate_as_declared(
    *, make_event, measured, value_of, field: str, name: str, values: tuple[float | None, ...], expected: float
) -> None:
    state = MetricState()
    for index, value in enumerate(values):
        used = 1_000 * (2 * index + 1)
        state.apply(make_event(measured(used_tokens=used, **{field: value}), session=f"s{index}"))

    assert value_of(state.collect(now=NOW), f"context_window_{name}") == pytest.approx(expected)


def test_compression_ratio_and_fidelity_come_from_separate_events(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured()))
    state.apply(make_event(ContentCompressed("compaction", "threshold", "accepted", 9_000, 3_000)))
    state.apply(make_event(ContentCompressed("compaction", "agent", "accepted", 9_000, 10, scope="window")))
    state.apply(make_event(CompactionMeasured("e1", 36_000, 36_015)))
    state.apply(
        make_event(FidelityEvaluated("probe", 0.8, 1.0, facts_contradicted=1, form=("it ends with a heading",)))
    )
    state.apply(make_event(FidelityEvaluated("probe", None, 0.2, reason="coverage")))
    state.apply(make_event(measured(phase="before")))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_compression_ratio") == 3.0
    assert value_of(families, "context_window_fidelity_ratio", method="probe") == 0.8
    assert value_of(families, "context_window_summary_faults") == 2


def test_the_estimate_error_stays_until_the_next_final_measurement(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured(estimate_error=-0.2)))
    state.apply(make_event(measured(phase="before")))

    assert value_of(state.collect(now=NOW), "context_window_estimate_error_ratio") == -0.2


def test_alerts_fire_until_resolved(make_event, measured, value_of) -> None:
    state = MetricState()
    for session in ("s1", "s2"):
        state.apply(make_event(measured(), session=session))
        state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9), session=session))
    firing = value_of(state.collect(now=NOW), "context_window_alerts_firing", alert="utilization")
    for session in ("s1", "s2"):
        state.apply(make_event(AlertResolved("utilization", "critical", 3, 0.5, 0.9), session=session))
    families = state.collect(now=NOW)

    assert firing == 2
    assert value_of(families, "context_window_alerts_firing", alert="utilization") == 0
    assert value_of(families, "context_window_alert_transitions_total", state="resolved") == 2


@pytest.mark.parametrize(("interleaved", "firing"), [(False, 0), (True, 1)])
def test_alerts_of_a_run_that_crashed_end_where_the_next_continues(
    make_event, measured, value_of, *, interleaved: bool, firing: int
) -> None:
    state = MetricState()
    state.apply(make_event(measured(utilization=0.95)))
    state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9)))
    continued = SessionContinued("s1/next", 2, 0, 3, 1, 3, interleaved)
    state.apply(make_event(continued))
    state.apply(make_event(measured(utilization=0.1)))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_alerts_firing", alert="utilization") == firing
    assert value_of(families, "context_window_utilization_ratio") == 0.1


@pytest.mark.parametrize(("silent_seconds", "live"), [(LIVE_SECONDS, True), (LIVE_SECONDS + 1, False)])
def test_a_session_is_live_for_fifteen_minutes(
    make_event, measured, value_of, silent_seconds: float, live: bool
) -> None:
    state = MetricState()
    state.apply(make_event(measured(utilization=0.5)))
    state.apply(make_event(TurnEnded(None, "usage")))
    families = state.collect(now=NOW + silent_seconds)

    assert (value_of(families, "context_window_utilization_ratio") == 0.5) is live
    assert value_of(families, "context_window_turns_total") == 1


def test_as_of_last_includes_every_session_that_has_not_ended(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured(utilization=0.5), session="old"))
    state.apply(make_event(measured(utilization=0.7), session="timeless", at=None))

    assert value_of(state.collect(now=1e9), "context_window_utilization_ratio") is None
    assert value_of(state.collect(now=1e9, as_of="last"), "context_window_utilization_ratio") == 0.7


def test_an_ended_session_releases_its_slot(make_event, measured, value_of) -> None:
    state = MetricState()
    for index in range(10_000):
        state.apply(make_event(measured(utilization=0.5), session=f"s{index}"))
        state.apply(make_event(TurnEnded(None, "usage"), session=f"s{index}"))
        state.apply(make_event(SessionEnded("done"), session=f"s{index}"))
    families = state.collect(now=NOW, as_of="last")

    assert state.open_sessions == 0
    assert value_of(families, "context_window_utilization_ratio") is None
    assert value_of(families, "context_window_turns_total") == 10_000


def test_a_reused_slot_starts_empty(make_event, measured, value_of) -> None:
    state = MetricState(maximum_sessions=1)
    state.apply(make_event(measured(utilization=0.9, zone="red"), session="s1"))
    state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9), session="s1"))
    state.apply(make_event(FidelityEvaluated("probe", 0.3, 1.0), session="s1"))
    state.apply(make_event(SessionEnded("done"), session="s1"))
    state.apply(make_event(SessionStarted(), session="s2"))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_alerts_firing", alert="utilization") == 0
    assert value_of(families, "context_window_fidelity_ratio") is None
    assert value_of(families, "context_window_utilization_ratio") is None
    assert value_of(families, "context_window_sessions", zone="red") == 0


def test_a_late_alert_does_not_reopen_an_ended_session(make_event, measured) -> None:
    state = MetricState()
    state.apply(make_event(measured()))
    state.apply(make_event(SessionEnded("done")))
    state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9)))
    state.apply(make_event(FidelityEvaluated("judge", 0.8, 1.0)))

    assert state.open_sessions == 0


def test_sessions_that_never_end_are_bounded(make_event, measured, value_of) -> None:
    state = MetricState(maximum_sessions=100)
    for index in range(1_000):
        state.apply(make_event(measured(utilization=index / 1_000), session=f"s{index}", at=float(index)))
    families = state.collect(now=1_000, as_of="last")

    assert state.open_sessions <= 100
    assert value_of(families, "context_window_utilization_ratio") == 0.999


def test_sessions_without_times_are_released_first(make_event, measured, value_of) -> None:
    state = MetricState(maximum_sessions=16)
    state.apply(make_event(measured(utilization=0.7), session="heard", at=5.0))
    for index in range(30):
        state.apply(make_event(measured(utilization=0.1), session=f"timeless{index}", at=None))

    assert value_of(state.collect(now=1_000, as_of="last"), "context_window_utilization_ratio") == 0.7


def test_a_change_of_model_moves_the_session(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured(utilization=0.5), model="gpt-5"))
    state.apply(make_event(measured(utilization=0.6), model="o3"))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_utilization_ratio", model="gpt-5") is None
    assert value_of(families, "context_window_utilization_ratio", model="o3") == 0.6


def test_a_firing_alert_moves_with_its_session_to_another_model(make_event, measured, value_of) -> None:
    state = MetricState()
    state.apply(make_event(measured(), model="gpt-5"))
    state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9), model="gpt-5"))
    state.apply(make_event(measured(), model="o3"))
    families = state.collect(now=NOW)

    assert value_of(families, "context_window_alerts_firing", model="o3") == 1
    assert value_of(families, "context_window_alerts_firing", model="gpt-5") is None


def test_top_sessions_are_the_fullest_live_ones(
    make_event, measured: Callable[..., PressureMeasured], value_of
) -> None:
    state = MetricState()
    for index, utilization in enumerate((0.2, 0.9, None, 0.7)):
        state.apply(make_event(measured(utilization=utilization), session=f"s{index}"))
    silent = state.collect(now=NOW)
    exported = state.collect(now=NOW, top_sessions=2)
    state.apply(make_event(SessionEnded("done"), session="s1"))
    after = state.collect(now=NOW, top_sessions=1)

    name = "context_window_session_utilization_ratio"
    assert value_of(silent, name) is None
    assert [value_of(exported, name, session=f"s{index}") for index in range(4)] == [None, 0.9, None, 0.7]
    assert value_of(after, name, session="s1") is None
    assert value_of(after, name, session="s3") == 0.7


def test_a_session_label_is_the_id_or_a_printable_short_form() -> None:
    hostile = ["line\nbreak", "half \ud800", "half \ud801", "x" * 500, "x" * 501, "\x00", ""]
    labels = [session_label(session) for session in hostile]

    assert session_label("claude_code:0a1b-2c3d") == "claude_code:0a1b-2c3d"
    assert session_label("Straße 7 ☕") == "Straße 7 ☕"
    assert len(set(labels)) == len(hostile)
    assert all(label.isprintable() and len(label) <= 128 and label.encode() is not None for label in labels)


def test_a_notification_for_another_process_adds_no_series(make_event, measured, value_of) -> None:
    delivered = NotificationDelivered("utilization", 3, "json", "firing", 1)
    state = MetricState()
    state.apply(make_event(measured(), session="own", agent="ours"))
    state.apply(make_event(delivered, session="theirs", agent="theirs"))
    state.apply(make_event(delivered, session="own", agent="ours"))
    families = state.collect(now=1_000.0)

    assert value_of(families, "context_window_turns_total", agent="ours") == 0
    assert {point.labels[0] for family in families for point in family.points} == {"ours"}
