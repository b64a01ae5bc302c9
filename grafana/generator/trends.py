"""Trends by day: cost, fill, losses and cache by agent and model, with links into the trends page."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from generator.board import Row, board, link
from generator.panels import Query, about, lines
from generator.queries import BY_DAY, daily
from windowpane.metrics import catalog as c
from windowpane.metrics.catalog import Metric

UID = "windowpane-trends"
BOTH = ("agent", "model")
WHO = "{{agent}} {{model}}"


def trends() -> models.Dashboard:
    """Return the dashboard of days."""
    return board(
        UID,
        "Windowpane / Trends",
        "Each point is the day before it. Choose a range of weeks; a click on a line opens the trends page.",
        [Row("By day", _days()), Row("Cache breaks by day", _cache())],
    )


def _chart(metric: Metric, title: str, text: str, *queries: Query, **style: Any) -> Any:
    page = link("Open the trends", "${dashboard_url}/trends?agent=${__field.labels.agent:percentencode}")
    return lines(about(metric, title, f"{text} Each point is the day before it.", **style), *queries).data_links(
        [page]
    )


def _days() -> list[Any]:
    cached = daily(c.MODEL_TOKENS, *BOTH, matching='type="cache_read"')
    sent = daily(c.MODEL_TOKENS, *BOTH, matching='type=~"input|cache_read|cache_write"')
    return [
        _chart(c.COST, "Cost", "Dollars of the calls.", Query(daily(c.COST, *BOTH), WHO)),
        _chart(
            c.UTILIZATION, "Peak utilization", "The highest of any live session.",
            Query(f"max by (agent, model) (max_over_time({c.UTILIZATION.name}{{{BY_DAY}}}[1d]))", WHO),
        ),
        _chart(
            c.COMPRESSIONS, "Compactions", "Accepted ones.",
            Query(daily(c.COMPRESSIONS, *BOTH, matching='strategy="compaction", outcome="accepted"'), WHO),
        ),
        _chart(
            c.FIDELITY, "Lowest fidelity", "Of the last compression of any live session.",
            Query(f"min by (agent, model) (min_over_time({c.FIDELITY.name}{{{BY_DAY}}}[1d]))", WHO),
        ),
        _chart(c.REGRETS, "Regrets", "By agent and model.", Query(daily(c.REGRETS, *BOTH), WHO)),
        _chart(
            c.MISSTEPS, "Missteps", "By agent and kind.",
            Query(daily(c.MISSTEPS, "agent", "misstep"), "{{agent}} {{misstep}}"),
        ),
        _chart(
            c.MODEL_TOKENS, "Cache share", "Here the share of the input that the prompt cache served.",
            Query(f"{cached} / ({sent} > 0)", WHO), unit="percentunit", maximum=1, no_value="no usage reported",
        ),
    ]  # fmt: skip


def _cache() -> list[Any]:
    by = ("agent", "cause")
    return [
        _chart(
            c.CACHE_BREAKS, "Cache breaks", "By cause.",
            Query(daily(c.CACHE_BREAKS, *by), "{{agent}} {{cause}}"),
        ),
        _chart(
            c.CACHE_REWRITTEN, "Tokens sent again", "By cause.",
            Query(daily(c.CACHE_REWRITTEN, *by), "{{agent}} {{cause}}"),
        ),
        _chart(
            c.CACHE_BREAK_COST, "Dollars of cache breaks", "By cause.",
            Query(daily(c.CACHE_BREAK_COST, *by), "{{agent}} {{cause}}"),
        ),
    ]  # fmt: skip
