"""The names that dashboards and rules of other people are written against: changing one is a breaking change.

Written out a second time on purpose; the catalog is compared with it, and so is a real scrape.
"""

from __future__ import annotations

import re

from prometheus_client import generate_latest

from windowpane.core.events import (
    AlertFired,
    BlockAdded,
    CacheBroken,
    ContentCompressed,
    FidelityEvaluated,
    MisstepObserved,
    OverflowDetected,
    RulesFollowed,
)
from windowpane.core.quota import QuotaForecast
from windowpane.core.window.blocks import Block
from windowpane.metrics.catalog import ALL_METRICS, BY_NAME
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.prometheus import registry_of
from windowpane.metrics.quota import QuotaMetrics

GAUGES = """
    limit_tokens sum
    used_tokens sum component
    utilization_ratio max
    usable_utilization_ratio max
    sessions count zone
    velocity_tokens_per_turn max
    turns_until_red min bound
    burn_rate_tokens_per_turn max
    turns_until_exhausted min
    turns_until_compaction min bound
    compaction_tokens min
    budget_utilization_ratio weighted_mean component
    tool_result_ratio max
    duplicate_ratio max
    stale_ratio max
    eviction_rate_blocks_per_turn max
    compression_ratio min
    fidelity_ratio min method
    summary_faults max
    estimate_error_ratio max_abs
    cache_hit_ratio weighted_mean
    alerts_firing sum alert,severity
    session_utilization_ratio max session
    session_used_tokens max session
"""
COUNTERS = """
    turns_total
    added_tokens_total component
    tool_tokens_total component,tool
    named_tokens_total kind,name
    carried_tokens_total state
    evicted_blocks_total policy,content_type
    evicted_tokens_total policy,content_type
    compressions_total strategy,outcome
    compression_input_tokens_total
    compression_output_tokens_total
    regrets_total cause
    missteps_total misstep,fill
    rules_followed_total fate,rule_source
    zone_transitions_total from,to
    velocity_spikes_total
    budget_events_total component,outcome
    overflows_total outcome
    checkpoints_total outcome
    model_tokens_total type
    cost_dollars_total
    cache_breaks_total cause
    cache_rewritten_tokens_total cause
    cache_break_dollars_total cause
    alert_transitions_total alert,severity,state
"""
HISTOGRAMS = """
    turn_utilization_ratio
    block_tokens content_type
    compression_seconds strategy
"""
OWN = """
    windowpane_hook_seconds histogram hook
    windowpane_store_write_seconds histogram
    windowpane_dropped_events_total counter sink,reason
    windowpane_queue_events gauge
    windowpane_store_available gauge
    windowpane_clickhouse_lag_events gauge
    windowpane_notifications_total counter channel,outcome
    windowpane_last_event_age_seconds gauge
    windowpane_build_info gauge version,python
    context_window_quota_used_ratio gauge agent,window
    context_window_quota_remaining_seconds gauge agent,window
"""


def lines(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def written_out() -> dict[str, tuple[str, tuple[str, ...], str | None]]:
    """Kind, labels and aggregate by full name."""
    declared: dict[str, tuple[str, tuple[str, ...], str | None]] = {}
    for name, aggregate, *labels in lines(GAUGES):
        declared[f"context_window_{name}"] = ("gauge", ("agent", "model", *_split(labels)), aggregate)
    for kind, table in (("counter", COUNTERS), ("histogram", HISTOGRAMS)):
        for name, *labels in lines(table):
            declared[f"context_window_{name}"] = (kind, ("agent", "model", *_split(labels)), None)
    for name, kind, *labels in lines(OWN):
        declared[name] = (kind, tuple(_split(labels)), None)
    return declared


def _split(labels: list[str]) -> list[str]:
    return labels[0].split(",") if labels else []


def test_the_catalog_has_exactly_these_metrics() -> None:
    declared = {
        metric.name: (metric.kind, metric.labels, metric.aggregate if metric.kind == "gauge" else None)
        for metric in ALL_METRICS
        if metric.prometheus
    }

    assert declared == written_out()


def test_a_scrape_has_exactly_the_declared_metrics(scripted_state: MetricState, make_event, measured) -> None:
    for data in (
        measured(),
        BlockAdded(Block("b9", "tool_result", 9, 1, "b9", 1, "", 0, "exact", tool_name="mcp__db__read")),
        CacheBroken(8_000, 10_000, "edited", dollars=0.1),
        AlertFired("overflow", "critical", 1, None, None),
        OverflowDetected("proactive", "reduced", 9, 8),
        FidelityEvaluated("probe", score=0.8, coverage=1.0, facts_total=1, facts_contradicted=1),
        ContentCompressed("compaction", "threshold", "accepted", 900, 100, duration_seconds=1.5),
        RulesFollowed("of", 1, user={"kept": 2, "lost": 1}),
        MisstepObserved("error", "b9", 1, 0.75),
    ):
        scripted_state.apply(make_event(data, session="more"))
    own = InternalMetrics(
        version="1",
        clock=lambda: 1_000.0,
        last_event_at=lambda: 9.0,
        queue_events=lambda: 3,
        store_available=lambda: True,
        clickhouse_lag_events=lambda: 7,
    )
    own.record_hook("on_turn_end", 0.01)
    own.record_notification("json", "delivered")
    source = StateSource(scripted_state, clock=lambda: 1_000.0, top_sessions=1)
    quotas = QuotaMetrics(clock=lambda: 1_000.0, agent=str)
    quotas.update([QuotaForecast("codex", 300, 0.6, 9_000.0, 4_600.0)])
    text = generate_latest(registry_of(source, quotas, own)).decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE))

    assert kinds == {name: kind for name, (kind, _, _) in written_out().items()}
    assert helps == {name: BY_NAME[name].help for name in written_out()}
    for name, (kind, labels, _) in written_out().items():
        sample = rf"^{name}{'_bucket' if kind == 'histogram' else ''}(?:\{{(.*)\}})? \S+$"
        samples = re.findall(sample, text, re.MULTILINE)
        assert samples, name
        wanted = {*labels, *(("le",) if kind == "histogram" else ())}
        assert all(set(re.findall(r'(\w+)="', one)) == wanted for one in samples), name
