"""The metric catalog: sources, conventions and documentation."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from windowpane.core.events import PAYLOADS, ContentCompressed, PressureMeasured
from windowpane.metrics.catalog import ALL_METRICS, IDENTITY, OWN_METRICS, SESSION_METRICS, Metric, markdown_table
from windowpane.metrics.counters import SeriesTable
from windowpane.metrics.gauges import GAUGE_COLUMNS
from windowpane.metrics.labels import LABELS
from windowpane.metrics.reducer import EventReducer, possible_series

NO_GAUGE = {
    "phase": "says when",
    "count_source": "says how",
    "limit_source": "says how",
    "compaction_evidence": "says how",
    "used_tokens": "is the sum of the components",
    "usable_tokens": "is used over usable utilization",
    "red_tokens": "follows from the limit",
    "added_tokens": "is the sum of a counter",
    "added_by_component": "feeds a counter",
    "duplicate_tokens": "feeds a counter",
    "stale_tokens": "feeds a counter",
    "blocks": "has no metric",
}
IN_EVENTS_OF_THEIR_OWN = {"compression_ratio", "fidelity_ratio", "summary_faults", "alerts_firing"}


def gauges() -> list[Metric]:
    return [metric for metric in SESSION_METRICS if metric.kind == "gauge" and not metric.opt_in]


def test_measured_fields_and_gauges_correspond() -> None:
    """`pressure.measured` has one field for every gauge, except gauges that separate events report."""
    carried = {name for metric in gauges() if metric.source == PressureMeasured.type for name in metric.fields}
    elsewhere = {metric.name for metric in gauges() if metric.source != PressureMeasured.type}

    assert carried == {field.name for field in fields(PressureMeasured)} - NO_GAUGE.keys()
    assert elsewhere == {f"context_window_{name}" for name in IN_EVENTS_OF_THEIR_OWN}


@pytest.mark.parametrize("metric", SESSION_METRICS, ids=lambda metric: metric.name)
def test_source_events_and_fields_of_metrics_exist(metric: Metric) -> None:
    """Every event and field that the catalog names as a source exists."""
    payload = PAYLOADS[metric.source]
    existing = {field.name for field in fields(payload)}
    if payload is ContentCompressed:
        existing.add("ratio")

    assert set(metric.fields) <= existing


def test_every_counted_event_is_the_source_of_a_metric() -> None:
    sources = {metric.source.partition(".")[0] for metric in SESSION_METRICS}

    assert {payload.type.partition(".")[0] for payload in EventReducer(SeriesTable()).by_event} <= sources


def test_every_session_gauge_is_stored_or_counted() -> None:
    stored = {column.metric.name for column in GAUGE_COLUMNS}
    counted = {metric.name for metric in gauges() if metric.name not in stored}

    assert counted == {"context_window_sessions", "context_window_alerts_firing"}
    assert all(metric.aggregate for metric in gauges())


@pytest.mark.parametrize("metric", ALL_METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"(context_window|windowpane|gen_ai)_[a-z0-9_]+", metric.name)
    assert metric.name.endswith("_total") is (metric.kind == "counter")
    assert metric.name.endswith("_ratio") <= (metric.unit == "1")
    assert metric.name.endswith("_seconds") is (metric.unit == "s")
    assert metric.help.endswith(".")
    assert bool(metric.buckets) is bool(metric.buckets_reason) is (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert set(metric.labels) <= LABELS.keys()
    assert (metric.labels[:2] == IDENTITY) is (metric in SESSION_METRICS)
    assert metric in OWN_METRICS or metric.source


@pytest.mark.parametrize("metric", ALL_METRICS, ids=lambda metric: metric.name)
def test_prometheus_names_follow_from_opentelemetry_names(metric: Metric) -> None:
    parts = [word for word in re.split(r"[._]", metric.otel_name) if word]
    unit = {"1": "ratio" if metric.kind == "gauge" else "", "s": "seconds"}.get(metric.unit, "")
    if unit:
        parts = [word for word in parts if word != unit] + [unit]
    if metric.kind == "counter":
        parts.append("total")

    assert "_".join(parts) == metric.name


def test_names_are_unique() -> None:
    assert len({metric.name for metric in ALL_METRICS}) == len(ALL_METRICS)
    assert len({metric.otel_name for metric in ALL_METRICS}) == len(ALL_METRICS)


def test_every_label_is_bounded() -> None:
    assert [name for name, label in LABELS.items() if not label.values and not label.cap] == ["session"]


def test_initial_series_use_declared_label_values() -> None:
    for metric, combinations in possible_series(alerts=[("a", "info")], policies=["hybrid"]):
        for labels in combinations:
            for label, value in zip(metric.own_labels, labels, strict=True):
                assert not LABELS[label].values or value in LABELS[label].values, (metric.name, label, value)


def test_the_markdown_table_has_one_row_per_metric() -> None:
    rows = markdown_table().splitlines()[2:]

    assert len(rows) == len([metric for metric in ALL_METRICS if metric.prometheus])
    for metric, row in zip([metric for metric in ALL_METRICS if metric.prometheus], rows, strict=True):
        assert row.startswith(f"| `{metric.name}` |")
        assert metric.help in row
        assert row.replace("\\|", "").count("|") == 7
