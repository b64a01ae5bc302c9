"""Health of the exporter: scrapes, storage, delivery, and the time that agents waited."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from generator.board import Row, board
from generator.panels import PanelStyle, Query, about, lines, rows, single_value, total
from generator.queries import TARGET, gauge, grown, per_minute, quantile
from generator.style import CALM, SEVERITY_COLORS
from windowpane.alerts.prometheus import OLD_EVENT_SECONDS, TIMED_RULES
from windowpane.metrics import catalog as c

UID = "windowpane-exporter"
WHERE = "{{instance}}"


def exporter() -> models.Dashboard:
    """Return the dashboard of the exporter."""
    return board(
        UID,
        "Windowpane / Exporter",
        "Windowpane about itself: scrapes, hooks, the store, the queue, notifications.",
        [Row("Now", _now()), Row("Agents' time", _time()), Row("Events and messages", _events())],
        of_sessions=False,
    )


def _now() -> list[Any]:
    small: dict[str, Any] = {"width": 5, "height": 5}
    down = PanelStyle(
        "Targets down",
        "Targets that did not answer the last scrape, of those that Prometheus knows.\n\nMetric: up",
        "short",
        steps=[models.Threshold(color=CALM), models.Threshold(value=1, color=SEVERITY_COLORS["critical"])],
        no_value="no target",
        **small,
    )
    old = next(rule for rule in TIMED_RULES if rule.name == "events_old")
    age_steps = [
        models.Threshold(color=CALM),
        models.Threshold(value=OLD_EVENT_SECONDS, color=SEVERITY_COLORS[old.severity]),
    ]
    idle = [models.Threshold(color=CALM), models.Threshold(value=1, color=SEVERITY_COLORS["critical"])]
    lost = [models.Threshold(color=CALM), models.Threshold(value=1, color=SEVERITY_COLORS["warning"])]
    return [
        single_value(down, Query(f"sum (1 - up{{{TARGET}}})")),
        single_value(
            about(c.LAST_EVENT_AGE, "Last event age", "Of the quietest process.", steps=age_steps, **small),
            Query(gauge(c.LAST_EVENT_AGE)),
        ),
        total(
            about(c.DROPPED_EVENTS, "Dropped in this range", steps=lost, **small), Query(grown(c.DROPPED_EVENTS))
        ),
        single_value(
            about(c.STORE_AVAILABLE, "Stores not taking events", "Processes.", steps=idle, **small),
            Query(f"sum (1 - {c.STORE_AVAILABLE.name}{{{TARGET}}})"),
        ),
        rows(
            about(c.BUILD_INFO, "Releases", width=4, height=5),
            Query(gauge(c.BUILD_INFO, "version", "python", "instance"), "processes"),
        ),
    ]


def _time() -> list[Any]:
    return [
        lines(
            about(c.HOOK_SECONDS, "Hooks, 99th percentile", "By hook."),
            Query(quantile(0.99, c.HOOK_SECONDS, "hook"), "{{hook}}"),
        ),
        lines(
            about(c.STORE_WRITE_SECONDS, "Store writes"),
            Query(quantile(0.5, c.STORE_WRITE_SECONDS), "p50"),
            Query(quantile(0.99, c.STORE_WRITE_SECONDS), "p99"),
        ),
        lines(
            PanelStyle(
                "Duration of scrapes",
                "How long Prometheus waited for each target.\n\nMetric: scrape_duration_seconds",
                "s",
                no_value="no target",
            ),
            Query(f"max by (instance) (scrape_duration_seconds{{{TARGET}}})", WHERE),
        ),
    ]


def _events() -> list[Any]:
    small: dict[str, Any] = {"width": 5}
    return [
        lines(about(c.QUEUE_EVENTS, "Queued events", **small), Query(gauge(c.QUEUE_EVENTS, "instance"), WHERE)),
        lines(
            about(c.CLICKHOUSE_LAG, "Missing in ClickHouse", width=4),
            Query(gauge(c.CLICKHOUSE_LAG, "instance"), WHERE),
        ),
        lines(
            about(c.DROPPED_EVENTS, "Dropped events a minute", "By sink and reason.", **small),
            Query(per_minute(c.DROPPED_EVENTS, "sink", "reason"), "{{sink}} {{reason}}"),
        ),
        lines(
            about(
                c.NOTIFICATIONS,
                "Notifications a minute",
                "By channel and outcome.",
                **small,
            ),
            Query(per_minute(c.NOTIFICATIONS, "channel", "outcome"), "{{channel}} {{outcome}}"),
        ),
        lines(
            PanelStyle(
                "Series a scrape",
                "Samples each target gave.\n\nMetric: scrape_samples_scraped",
                "short",
                no_value="no target",
                **small,
            ),
            Query(f"max by (instance) (scrape_samples_scraped{{{TARGET}}})", WHERE),
        ),
    ]
