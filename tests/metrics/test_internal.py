"""Metrics about the exporter."""

from __future__ import annotations

from prometheus_client import generate_latest

from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.prometheus import registry_of


def recorder(*, newest: float | None = None) -> InternalMetrics:
    return InternalMetrics(
        version="1.2.3", clock=lambda: 1_000.0, last_event_at=lambda: newest, queue_events=lambda: 7
    )


def test_recorded_values_are_exposed() -> None:
    own = recorder(newest=940.0)
    own.record_hook("on_turn_start", 0.002)
    own.record_store_write(0.02)
    own.record_drop("queue", "full", events=3)
    own.record_notification("json", "delivered")
    text = generate_latest(registry_of(own)).decode()

    for line in (
        'windowpane_hook_seconds_bucket{hook="on_turn_start",le="0.001"} 0.0',
        'windowpane_hook_seconds_bucket{hook="on_turn_start",le="0.005"} 1.0',
        "windowpane_store_write_seconds_sum 0.02",
        'windowpane_dropped_events_total{reason="full",sink="queue"} 3.0',
        'windowpane_notifications_total{channel="json",outcome="delivered"} 1.0',
        "windowpane_queue_events 7.0",
        "windowpane_last_event_age_seconds 60.0",
        'version="1.2.3"',
    ):
        assert line in text
    assert own.dropped_events() == 3


def test_drops_start_at_zero_and_an_age_without_events_is_absent(value_of) -> None:
    families = recorder().collect()

    dropped = next(family for family in families if family.metric.name == "windowpane_dropped_events_total")
    assert {point.labels: point.value for point in dropped.points} == {
        ("observer", "full"): 0,
        ("queue", "full"): 0,
        ("queue", "invalid"): 0,
        ("store", "error"): 0,
        ("store", "unavailable"): 0,
        ("metrics", "error"): 0,
        ("alerts", "error"): 0,
        ("otlp", "error"): 0,
        ("otlp", "full"): 0,
    }
    assert value_of(families, "windowpane_last_event_age_seconds") is None


def test_names_beyond_the_cap_share_one_series(value_of) -> None:
    own = recorder()
    for index in range(1_000):
        own.record_hook(f"hook {index}", 0.1)
        own.record_notification(f"channel-{index}", "delivered")
    families = {family.metric.name: family for family in own.collect()}

    assert len(families["windowpane_hook_seconds"].histograms) == 17
    assert len(families["windowpane_notifications_total"].points) == 33
