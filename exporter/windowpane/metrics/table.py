"""The catalog as a Markdown table, for the README and the documentation."""

from __future__ import annotations

from windowpane.metrics.catalog import ALL_METRICS
from windowpane.metrics.metric import Metric

_HEADER = "| metric | kind | unit | labels | over sessions | meaning |\n| --- | --- | --- | --- | --- | --- |"


def markdown_table() -> str:
    """One row for each metric that Prometheus gets; ends without a line break."""
    return "\n".join([_HEADER, *(_row(metric) for metric in ALL_METRICS if metric.prometheus)])


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
    over = (metric.aggregate or "").replace("_", " ") or ("sum" if metric.kind != "gauge" else "")
    cells = (f"`{metric.name}`", metric.kind, f"`{metric.unit}`", labels, over, metric.help)
    return "| " + " | ".join(cells) + " |"
