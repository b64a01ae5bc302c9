"""Fleet overview: agents that need attention, utilization, cost."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from generator.board import Row, board, data_link
from generator.panels import (
    PanelStyle,
    Query,
    about,
    bars,
    lines,
    rows,
    single_value,
    states,
    total,
    unit_override,
)
from generator.queries import forecast, gauge, grown, per_minute, rate
from generator.style import SEVERITY_COLORS
from windowpane.metrics import catalog as c

UID = "windowpane-fleet"
WHO = "{{agent}} {{model}}"


def fleet() -> models.Dashboard:
    """Return the dashboard of all agents."""
    return board(
        UID,
        "Windowpane / Fleet",
        "Context windows of all agents: what needs a person first, then how it came to that.",
        [
            Row("Now", _now()),
            Row("Agents", [_agents()]),
            Row("Windows", _windows()),
            Row("Alerts", _alerts()),
            Row("Tokens and cost", _cost()),
        ],
    )


def _now() -> list[Any]:
    median = 'bound="p50"'
    firing = about(
        c.ALERTS_FIRING, "Alerts firing", "Warnings and critical ones.", width=4, height=5, no_value="0"
    )
    firing.steps.append(models.Threshold(value=1, color=SEVERITY_COLORS["warning"]))
    small = {"width": 4, "height": 5}
    return [
        single_value(about(c.UTILIZATION, "Fullest window", **small), Query(gauge(c.UTILIZATION))),
        single_value(
            about(c.TURNS_UNTIL_RED, "Turns until red", "The nearest of all; infinite when flat.", **small),
            Query(gauge(c.TURNS_UNTIL_RED, matching=median)),
        ),
        single_value(firing, Query(gauge(c.ALERTS_FIRING, matching='severity=~"warning|critical"'))),
        single_value(about(c.SESSIONS, "Live sessions", no_value="0", **small), Query(gauge(c.SESSIONS))),
        single_value(about(c.CACHE_HIT, "Prompt cache", **small), Query(gauge(c.CACHE_HIT))),
        total(about(c.COST, "Cost in this range", **small), Query(grown(c.COST))),
    ]


def _agents() -> Any:
    utilization, forecast = about(c.UTILIZATION, "Utilization"), about(c.TURNS_UNTIL_RED, "Turns until red")
    page = data_link("Sessions of this agent", "${dashboard_url}/?agent=${__data.fields.agent}")
    drill = data_link(
        "Session drill-down", "/d/windowpane-session?var-agent=${__data.fields.agent}&${__url_time_range}"
    )
    style = PanelStyle(
        "Agents",
        "One row an agent and model: the fullest window, the nearest red, sessions and alerts. A click on the "
        "agent opens its sessions in the Windowpane dashboard.",
        "short",
        width=24,
        height=9,
        no_value="no live session",
    )
    both = ("agent", "model")
    panel = rows(
        style,
        Query(gauge(c.UTILIZATION, *both), "Utilization"),
        Query(gauge(c.TURNS_UNTIL_RED, *both, matching='bound="p50"'), "Turns until red"),
        Query(gauge(c.VELOCITY, *both), "Tokens a turn"),
        Query(gauge(c.SESSIONS, *both), "Live sessions"),
        Query(gauge(c.ALERTS_FIRING, *both), "Alerts firing"),
        links={"agent": page, "model": drill},
    )
    unit_override(panel, "Utilization", utilization)
    unit_override(panel, "Turns until red", forecast)
    return panel


def _windows() -> list[Any]:
    both = ("agent", "model")
    return [
        lines(
            about(c.UTILIZATION, "Utilization", "The fullest window of each agent."),
            Query(gauge(c.UTILIZATION, *both), WHO),
        ),
        lines(
            about(c.TURNS_UNTIL_RED, "Turns until red, median", "No line where nothing grows."),
            Query(forecast(c.TURNS_UNTIL_RED, *both, matching='bound="p50"'), WHO),
        ),
        lines(
            about(
                c.TURNS_UNTIL_RED, "Turns until red, band of the nearest", "The 10 to 90 band: narrow is steady."
            ),
            Query(forecast(c.TURNS_UNTIL_RED, "bound"), "{{bound}}"),
        ),
        lines(
            about(
                c.TURNS_UNTIL_COMPACTION,
                "Turns until compaction, band of the nearest",
                "The 10 to 90 band until an agent compacts by itself; no line without evidence of the level.",
            ),
            Query(forecast(c.TURNS_UNTIL_COMPACTION, "bound"), "{{bound}}"),
        ),
        lines(
            about(c.COMPACTION_TOKENS, "Compaction level", "Used tokens at which each agent compacts by itself."),
            Query(gauge(c.COMPACTION_TOKENS, *both), WHO),
        ),
        lines(about(c.SESSIONS, "Sessions by zone"), Query(gauge(c.SESSIONS, "zone"), "{{zone}}"), stacked=True),
        lines(
            about(c.USED_TOKENS, "Used tokens by component", "All live sessions together."),
            Query(gauge(c.USED_TOKENS, "component"), "{{component}}"),
            stacked=True,
        ),
        lines(
            about(c.LIMIT_TOKENS, "Used and limit", "The distance is what is free in all windows together."),
            Query(gauge(c.LIMIT_TOKENS), "limit"),
            Query(gauge(c.USED_TOKENS), "used"),
        ),
        lines(
            about(c.USABLE_UTILIZATION, "Utilization of what is usable"),
            Query(gauge(c.USABLE_UTILIZATION, *both), WHO),
        ),
        lines(
            about(c.VELOCITY, "Velocity and burn rate", "Velocity is the mean of 5 turns, burn rate of 20."),
            Query(gauge(c.VELOCITY), "velocity"),
            Query(gauge(c.BURN_RATE), "burn rate"),
        ),
        lines(
            about(c.TURNS_UNTIL_EXHAUSTED, "Turns until exhausted"),
            Query(forecast(c.TURNS_UNTIL_EXHAUSTED, *both), WHO),
        ),
    ]


def _alerts() -> list[Any]:
    guide = data_link("Runbook", "${runbook_url}#${__data.fields.alert}")
    style = about(c.ALERTS_FIRING, "Firing now", "A click on the alert opens its section of the runbook.")
    panel = rows(
        style,
        Query(f"{gauge(c.ALERTS_FIRING, 'alert', 'severity', 'agent', 'model')} > 0", "sessions"),
        links={"alert": guide},
    )
    return [
        panel,
        states(
            about(c.ALERTS_FIRING, "When alerts fired", no_value="nothing fired"),
            Query(f"{gauge(c.ALERTS_FIRING, 'alert', 'severity')} > 0", "{{severity}} {{alert}}"),
        ),
        lines(
            about(c.ALERT_TRANSITIONS, "Alerts a minute", "By severity, at their start."),
            Query(per_minute(c.ALERT_TRANSITIONS, "severity", matching='state="firing"'), "{{severity}}"),
        ),
    ]


def _cost() -> list[Any]:
    return [
        lines(
            about(c.COST, "Cost an hour", "By agent."),
            Query(f"3600 * {rate(c.COST, 'agent')}", "{{agent}}"),
            stacked=True,
        ),
        lines(
            about(c.QUOTA_USED, "Quota of the plan", "By agent and window."),
            Query(gauge(c.QUOTA_USED, "agent", "window"), "{{agent}} {{window}}"),
        ),
        lines(
            about(c.QUOTA_REMAINING, "Time until the quota is used up", "No line where it lasts."),
            Query(gauge(c.QUOTA_REMAINING, "agent", "window"), "{{agent}} {{window}}"),
        ),
        lines(
            about(c.MODEL_TOKENS, "Billed tokens a second", "By kind."),
            Query(rate(c.MODEL_TOKENS, "type"), "{{type}}"),
            stacked=True,
        ),
        lines(
            about(c.CARRIED_TOKENS, "Carried tokens a second", "Stale and duplicate ones are paid for in vain."),
            Query(rate(c.CARRIED_TOKENS, "state"), "{{state}}"),
            stacked=True,
        ),
        lines(about(c.TURNS, "Turns a minute"), Query(per_minute(c.TURNS, "agent"), "{{agent}}")),
        lines(
            about(c.ADDED_TOKENS, "Added tokens a second", "By component."),
            Query(rate(c.ADDED_TOKENS, "component"), "{{component}}"),
            stacked=True,
        ),
        bars(
            about(c.ZONE_TRANSITIONS, "Zones entered in this range"),
            Query(grown(c.ZONE_TRANSITIONS, "to"), "{{to}}"),
        ),
    ]
