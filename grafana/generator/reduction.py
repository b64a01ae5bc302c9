"""Evictions and compression: removed content, its value, and content that was fetched again."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from generator.board import Row, board
from generator.panels import PanelStyle, Query, about, bars, heat, lines, single_value, total
from generator.queries import buckets, gauge, grown, per_minute, quantile, rate
from generator.style import steps
from windowpane.alerts.rules import RULES_BY_NAME
from windowpane.metrics import catalog as c

UID = "windowpane-reduction"
WHO = "{{agent}} {{model}}"
BOTH = ("agent", "model")


def reduction() -> models.Dashboard:
    """Return the dashboard of evictions and compression."""
    return board(
        UID,
        "Windowpane / Evictions and compression",
        "Content removed from context windows, facts kept and lost by compressions, and content needed again.",
        [
            Row("In this range", _summary()),
            Row("Evictions", _evictions()),
            Row("Compressions", _compressions()),
            Row("What fills the windows", _contents()),
            Row("Near misses", _misses()),
        ],
    )


def _summary() -> list[Any]:
    rule = RULES_BY_NAME["regret"]
    small: dict[str, Any] = {"width": 4, "height": 5}
    regret = PanelStyle(
        "Regret",
        f"Share of the evicted blocks that were needed again in this range. {rule.todo}\n\n"
        f"Metrics: {c.REGRETS.name}, {c.EVICTED_BLOCKS.name}",
        "percentunit", steps=steps([rule]), maximum=1, no_value="nothing evicted", **small,
    )  # fmt: skip
    evictions = grown(c.REGRETS, matching='cause="eviction"')
    return [
        total(about(c.EVICTED_TOKENS, "Evicted tokens", **small), Query(grown(c.EVICTED_TOKENS))),
        total(
            about(c.COMPRESSIONS, "Compressions", "Accepted ones.", **small),
            Query(grown(c.COMPRESSIONS, matching='outcome="accepted"')),
        ),
        total(regret, Query(f"{evictions} / ({grown(c.EVICTED_BLOCKS)} > 0)")),
        single_value(about(c.FIDELITY, "Lowest fidelity", **small), Query(gauge(c.FIDELITY))),
        single_value(
            about(c.COMPRESSION_RATIO, "Lowest compression ratio", **small), Query(gauge(c.COMPRESSION_RATIO))
        ),
        total(about(c.OVERFLOWS, "Overflows", **small), Query(grown(c.OVERFLOWS))),
    ]


def _evictions() -> list[Any]:
    return [
        lines(about(c.EVICTION_RATE, "Eviction rate"), Query(gauge(c.EVICTION_RATE, *BOTH), WHO)),
        lines(
            about(c.EVICTED_BLOCKS, "Evicted blocks a minute", "By policy."),
            Query(per_minute(c.EVICTED_BLOCKS, "policy"), "{{policy}}"),
            stacked=True,
        ),
        bars(
            about(c.EVICTED_TOKENS, "Evicted tokens by content type", "In this range."),
            Query(f"{grown(c.EVICTED_TOKENS, 'content_type')} > 0", "{{content_type}}"),
        ),
        lines(
            about(c.REGRETS, "Regrets a minute", "By why the content had left."),
            Query(per_minute(c.REGRETS, "cause"), "{{cause}}"),
        ),
        lines(about(c.STALE, "Stale tokens"), Query(gauge(c.STALE, *BOTH), WHO)),
        lines(about(c.DUPLICATE, "Duplicate tokens"), Query(gauge(c.DUPLICATE, *BOTH), WHO)),
    ]


def _compressions() -> list[Any]:
    saved = f"{rate(c.COMPRESSION_INPUT)} / ({rate(c.COMPRESSION_OUTPUT)} > 0)"
    return [
        lines(
            about(c.FIDELITY, "Fidelity", "By agent and method."),
            Query(gauge(c.FIDELITY, "agent", "method"), "{{agent}} {{method}}"),
        ),
        lines(
            about(c.SUMMARY_FAULTS, "Faults of the last summary", "The last of each session, the highest shown."),
            Query(gauge(c.SUMMARY_FAULTS, *BOTH), WHO),
        ),
        lines(
            about(c.COMPRESSION_RATIO, "Compression ratio", "The last of each session, the lowest shown."),
            Query(gauge(c.COMPRESSION_RATIO, *BOTH), WHO),
        ),
        lines(
            PanelStyle(
                "Compression ratio, all tokens",
                "Tokens that accepted compressions replaced, over what they put in their place.\n\n"
                f"Metrics: {c.COMPRESSION_INPUT.name}, {c.COMPRESSION_OUTPUT.name}",
                "none",
                steps=about(c.COMPRESSION_RATIO, "").steps,
                no_value="no compression lately",
            ),
            Query(saved, "original over result"),
        ),
        lines(
            about(c.COMPRESSIONS, "Compressions a minute", "By strategy and outcome."),
            Query(per_minute(c.COMPRESSIONS, "strategy", "outcome") + " > 0", "{{strategy}} {{outcome}}"),
        ),
        lines(
            about(
                c.COMPRESSION_SECONDS,
                "Duration of compressions",
                "Median and 95th percentile.",
                no_value="no compression lately",
            ),
            Query(quantile(0.5, c.COMPRESSION_SECONDS), "p50"),
            Query(quantile(0.95, c.COMPRESSION_SECONDS), "p95"),
        ),
        bars(
            about(c.CHECKPOINTS, "Checkpoints in this range"),
            Query(grown(c.CHECKPOINTS, "outcome"), "{{outcome}}"),
        ),
    ]


def _contents() -> list[Any]:
    return [
        lines(
            about(c.TOOL_RESULT, "Tool results", "The alert looks at windows from yellow up."),
            Query(gauge(c.TOOL_RESULT, *BOTH), WHO),
        ),
        bars(
            about(c.BUDGET_UTILIZATION, "Budget by component", "Weighted by used tokens."),
            Query(gauge(c.BUDGET_UTILIZATION, "component"), "{{component}}"),
        ),
        heat(about(c.BLOCK_TOKENS, "Size of blocks that came in"), Query(buckets(c.BLOCK_TOKENS), "{{le}}")),
        heat(
            about(c.TURN_UTILIZATION, "Utilization at the end of turns"),
            Query(buckets(c.TURN_UTILIZATION), "{{le}}"),
        ),
        lines(
            about(c.ZONE_TRANSITIONS, "Zone changes a minute", "By zone entered."),
            Query(per_minute(c.ZONE_TRANSITIONS, "from", "to") + " > 0", "{{from}} to {{to}}"),
        ),
        lines(
            about(c.ESTIMATE_ERROR, "Estimate error", "Without its sign.", maximum=None),
            Query(gauge(c.ESTIMATE_ERROR, *BOTH), WHO),
        ),
    ]


def _misses() -> list[Any]:
    return [
        lines(
            about(c.VELOCITY_SPIKES, "Velocity spikes a minute"),
            Query(per_minute(c.VELOCITY_SPIKES, "agent"), "{{agent}}"),
        ),
        lines(
            about(c.BUDGET_EVENTS, "Budget events a minute", "By component and outcome."),
            Query(per_minute(c.BUDGET_EVENTS, "component", "outcome"), "{{component}} {{outcome}}"),
        ),
        lines(
            about(c.OVERFLOWS, "Overflows a minute", "By what was done."),
            Query(per_minute(c.OVERFLOWS, "outcome"), "{{outcome}}"),
        ),
        lines(
            about(c.RULES_FOLLOWED, "Rules through compactions a minute", "By what became of them."),
            Query(per_minute(c.RULES_FOLLOWED, "fate"), "{{fate}}"),
        ),
    ]
