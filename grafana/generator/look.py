"""How a metric looks in Grafana: its unit, its thresholds, its colours; from the catalog and the alerts."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Threshold

from windowpane.alerts.rules import RULES, Rule
from windowpane.core.vocabulary import Severity
from windowpane.metrics.catalog import Metric
from windowpane.text.palette import ACCENT, COMPONENT_TONES, SEVERITY_TONES, ZONE_TONES

OWN_PREFIX: Final = "windowpane_"

CALM: Final = ACCENT.dark
SEVERITY_COLOURS: Final[dict[Severity, str]] = {severity: tone.dark for severity, tone in SEVERITY_TONES.items()}
SERIES_COLOURS: Final[dict[str, str]] = {
    **{zone: tone.dark for zone, tone in ZONE_TONES.items()},
    **{component: tone.dark for component, tone in COMPONENT_TONES.items()},
    **SEVERITY_COLOURS,
    "unknown": COMPONENT_TONES["unattributed"].dark,
    "fresh": COMPONENT_TONES["message_history"].dark,
    "stale": ZONE_TONES["orange"].dark,
    "duplicate": ZONE_TONES["red"].dark,
}
"""Colour of a series by its name, where the name has a meaning of its own."""

_UNITS: Final = {"1": "percentunit", "s": "s", "{USD}": "currencyUSD"}
_NO_SHARES: Final = {"context_window_compression_ratio"}
"""Ratios that are factors: 3 means a third, not 300%."""


_NOTHING: Final = {
    "context_window_fidelity_ratio": "no compression judged",
    "context_window_compression_ratio": "no compression",
    "context_window_cache_hit_ratio": "no usage reported",
    "context_window_estimate_error_ratio": "no usage reported",
    "context_window_alerts_firing": "nothing fires",
    "windowpane_hook_seconds": "no managed agent",
    "windowpane_last_event_age_seconds": "no event yet",
    "windowpane_notifications_total": "no message yet",
}


def nothing_of(metric: Metric) -> str:
    """What a panel says where the metric has no value: why there is none."""
    if metric.name in _NOTHING:
        return _NOTHING[metric.name]
    if metric.name.startswith(OWN_PREFIX):
        return "no process scraped"
    return "no live session" if metric.kind == "gauge" else "none in this range"


def unit_of(metric: Metric) -> str:
    """Grafana's name of the metric's unit."""
    if metric.name in _NO_SHARES:
        return "none"
    return _UNITS.get(metric.unit, "short")


def thresholds_of(metric: Metric) -> list[Threshold]:
    """Steps at the thresholds of the alerts that judge this gauge, coloured by severity."""
    rules = [rule for rule in RULES if _judges(rule, metric)]
    return steps(rules) if rules else [Threshold(color=CALM)]


def _judges(rule: Rule, metric: Metric) -> bool:
    comparable = rule.unit in ("ratio", "times", "turns", "blocks_per_turn")
    return metric.kind == "gauge" and rule.metric == metric.name and comparable and rule.enabled


def steps(rules: list[Rule]) -> list[Threshold]:
    """Grafana's steps for rules that judge one quantity in one direction. Raises `ValueError` for other rules."""
    above = {rule.comparison in ("at_least", "above") for rule in rules}
    if len(above) != 1:
        raise ValueError(f"rules of one quantity look in two directions: {[rule.name for rule in rules]}")
    ordered = sorted(
        (rule.threshold, SEVERITY_COLOURS[rule.severity]) for rule in rules if rule.threshold is not None
    )
    values = [value for value, _ in ordered]
    colours = [colour for _, colour in ordered]
    colours = [CALM, *colours] if above.pop() else [*colours, CALM]
    return [Threshold(value=value, color=colour) for value, colour in zip([None, *values], colours, strict=True)]
