"""PromQL from the metric catalog: selection of a metric, and aggregation over processes."""

from __future__ import annotations

from typing import Final

from windowpane.metrics.catalog import IDENTITY, USED_TOKENS, Metric

TARGET: Final = 'job=~"$job", instance=~"$instance"'
SESSIONS: Final = 'agent=~"$agent", model=~"$model"'

_OPERATORS: Final = {"max": "max", "min": "min", "sum": "sum", "count": "sum", "max_abs": "max"}


def select(metric: Metric, matching: str = "", *, suffix: str = "", window: str = "") -> str:
    """Return the metric's series that the dashboard's variables select."""
    chosen = [TARGET]
    if metric.labels[: len(IDENTITY)] == IDENTITY:
        chosen.append(SESSIONS)
    if matching:
        chosen.append(matching)
    return f"{metric.name}{suffix}{{{', '.join(chosen)}}}" + (f"[{window}]" if window else "")


def gauge(metric: Metric, *by: str, matching: str = "") -> str:
    """Return a gauge over all selected processes, aggregated as the catalog aggregates sessions."""
    series = select(metric, matching)
    if metric.aggregate == "weighted_mean":
        return _weighted(by, series)
    if metric.aggregate == "max_abs":
        series = f"abs({series})"
    return _over(_OPERATORS[metric.aggregate or "max"], by, series)


def forecast(metric: Metric, *by: str, matching: str = "") -> str:
    """Return a forecast in turns for a chart; a flat one, which is infinite, is not drawn."""
    return f"{gauge(metric, *by, matching=matching)} < Inf"


def _weighted(by: tuple[str, ...], series: str) -> str:
    """Return the mean over processes, weighted by their tokens in use."""
    on = ", ".join(("job", "instance", *IDENTITY))
    weight = f"sum by ({on}) ({select(USED_TOKENS)})"
    return (
        f"{_over('sum', by, f'{series} * on ({on}) group_left () {weight}')}\n"
        f"/ {_over('sum', by, f'{series} * 0 + on ({on}) group_left () {weight}')}"
    )


def rate(metric: Metric, *by: str, matching: str = "", suffix: str = "") -> str:
    """Return the growth per second."""
    return _over("sum", by, f"rate({select(metric, matching, suffix=suffix, window='$__rate_interval')})")


def per_minute(metric: Metric, *by: str, matching: str = "") -> str:
    """Return the growth per minute, for rare events."""
    return f"60 * {rate(metric, *by, matching=matching)}"


def grown(metric: Metric, *by: str, matching: str = "", window: str = "$__range") -> str:
    """Return the growth over the selected range."""
    return _over("sum", by, f"increase({select(metric, matching, window=window)})")


BY_DAY: Final = f"{TARGET}, {SESSIONS}"


def daily(metric: Metric, *by: str, matching: str = "") -> str:
    """Return the growth in the day before each point."""
    return grown(metric, *by, matching=matching, window="1d")


def quantile(at: float, metric: Metric, *by: str) -> str:
    """Return a quantile of a histogram's recent observations."""
    return f"histogram_quantile({at}, {rate(metric, 'le', *by, suffix='_bucket')})"


def buckets(metric: Metric) -> str:
    """Return a histogram's observations by bucket, for a heat map."""
    return _over("sum", ("le",), f"increase({select(metric, suffix='_bucket', window='$__rate_interval')})")


def _over(operator: str, by: tuple[str, ...], expression: str) -> str:
    grouping = f" by ({', '.join(by)})" if by else ""
    return f"{operator}{grouping} ({expression})"
