"""The style of a metric in Grafana: unit, thresholds and colors, from the catalog and the alert rules."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Threshold

from windowpane.alerts.rules import RULES, Rule
from windowpane.core.vocabulary import Severity
from windowpane.metrics.catalog import Metric
from windowpane.text.palette import ACCENT, COMPONENT_TONES, SEVERITY_TONES, ZONE_TONES

OWN_PREFIX: Final = "windowpane_"

CALM: Final = ACCENT.dark
SEVERITY_COLORS: Final[dict[Severity, str]] = {severity: tone.dark for severity, tone in SEVERITY_TONES.items()}
SERIES_COLORS: Final[dict[str, str]] = {
    **{zone: tone.dark for zone, tone in ZONE_TONES.items()},
    **{component: tone.dark for component, tone in COMPONENT_TONES.items()},
    **SEVERITY_COLORS,
    "unknown": COMPONENT_TONES["unattributed"].dark,
    "fresh": COMPONENT_TONES["message_history"].dark,
    "stale": ZONE_TONES["orange"].dark,
    "duplicate": ZONE_TONES["red"].dark,
}
"""Colors of series whose name has a meaning."""

_UNITS: Final = {"1": "percentunit", "s": "s", "{USD}": "currencyUSD"}
_FACTORS: Final = {"context_window_compression_ratio"}
"""Ratios that are factors: 3 means a third, not 300%."""


_NO_VALUE_TEXTS: Final = {
    "context_window_fidelity_ratio": "no compression judged",
    "context_window_summary_faults": "no compression judged",
    "context_window_compression_ratio": "no compression",
    "context_window_cache_hit_ratio": "no usage reported",
    "context_window_estimate_error_ratio": "no usage reported",
    "context_window_alerts_firing": "nothing fires",
    "windowpane_clickhouse_lag_events": "no copy configured",
    "windowpane_hook_seconds": "no managed agent",
    "windowpane_store_write_seconds": "no write in this range",
    "windowpane_last_event_age_seconds": "no event yet",
    "windowpane_queue_events": "no process records",
    "windowpane_store_available": "no process records",
    "windowpane_notifications_total": "no message yet",
}


def no_value_text(metric: Metric) -> str:
    """Return the text of a panel without a value: the reason for it."""
    if metric.name in _NO_VALUE_TEXTS:
        return _NO_VALUE_TEXTS[metric.name]
    if metric.name == f"{OWN_PREFIX}build_info":
        return "no process scraped"
    return "no live session" if metric.kind == "gauge" else "none in this range"


def unit_of(metric: Metric) -> str:
    """Return Grafana's name of the metric's unit."""
    if metric.name in _FACTORS:
        return "none"
    return _UNITS.get(metric.unit, "short")


def thresholds_of(metric: Metric) -> list[Threshold]:
    """Return steps at the thresholds of the alerts on this gauge, colored by severity."""
    rules = [rule for rule in RULES if _applies(rule, metric)]
    return steps(rules) if rules else [Threshold(color=CALM)]


def _applies(rule: Rule, metric: Metric) -> bool:
    comparable = rule.unit in ("ratio", "times", "turns", "blocks_per_turn")
    return metric.kind == "gauge" and rule.metric == metric.name and comparable and rule.enabled


def steps(rules: list[Rule]) -> list[Threshold]:
    """Return Grafana's steps for rules on one signal. Raises `ValueError` if they differ in direction."""
    above = {rule.comparison in ("at_least", "above") for rule in rules}
    if len(above) != 1:
        raise ValueError(f"rules of one signal compare in two directions: {[rule.name for rule in rules]}")
    ordered = sorted(
        (rule.threshold, SEVERITY_COLORS[rule.severity]) for rule in rules if rule.threshold is not None
    )
    values = [value for value, _ in ordered]
    colors = [color for _, color in ordered]
    colors = [CALM, *colors] if above.pop() else [*colors, CALM]
    return [Threshold(value=value, color=color) for value, color in zip([None, *values], colors, strict=True)]
