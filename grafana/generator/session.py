"""Session drill-down: the fullest sessions by name, with links into the session page.

Session ids are exported only behind an opt-in cap; without it this dashboard describes how to enable it.
"""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from generator.board import Row, board, choice, data_link, link
from generator.panels import PanelStyle, Query, about, bars, lines, rows, unit_override
from generator.queries import SESSIONS, TARGET, forecast, gauge, grown, per_minute, rate
from windowpane.metrics import catalog as c

UID = "windowpane-session"
CHOSEN = 'session=~"$session"'
OFF = "no session label: start with session_label=20, or serve --session-label 20"
OPT_IN = "Needs the opt-in session label; the N fullest live sessions have one."


def session() -> models.Dashboard:
    """Return the dashboard of single sessions."""
    by_session = f"label_values({c.SESSION_UTILIZATION.name}{{{TARGET}, {SESSIONS}}}, session)"
    return board(
        UID,
        "Windowpane / Sessions",
        "The fullest sessions one by one, and the agents they belong to. A click on a session opens its page in "
        f"the Windowpane dashboard. {OPT_IN}",
        [Row("Sessions", _sessions()), Row("Their agents", _agents()), Row("Their reductions", _health())],
        variables=[choice("session", by_session)],
    )


def _sessions() -> list[Any]:
    by = ("session", "agent", "model")
    page = data_link("Open the session", "${dashboard_url}/session?session=${__value.raw:percentencode}")
    column = about(c.SESSION_UTILIZATION, "Utilization", steps=about(c.UTILIZATION, "").steps)
    style = PanelStyle(
        "Sessions", f"{OPT_IN}\n\nA click on a session opens its page.", "short", width=24, no_value=OFF
    )
    panel = rows(
        style,
        Query(gauge(c.SESSION_UTILIZATION, *by, matching=CHOSEN), "Utilization"),
        Query(gauge(c.SESSION_USED_TOKENS, *by, matching=CHOSEN), "Used tokens"),
        links={"session": page},
    )
    unit_override(panel, "Utilization", column)
    wide: dict[str, Any] = {"width": 12, "height": 9, "no_value": OFF}
    series = link("Open the session", "${dashboard_url}/session?session=${__field.labels.session:percentencode}")
    charts = [
        lines(
            about(
                c.SESSION_UTILIZATION,
                "Utilization by session",
                OPT_IN,
                steps=about(c.UTILIZATION, "").steps,
                **wide,
            ),
            Query(gauge(c.SESSION_UTILIZATION, *by, matching=CHOSEN), "{{session}}"),
        ),
        lines(
            about(c.SESSION_USED_TOKENS, "Used tokens by session", OPT_IN, **wide),
            Query(gauge(c.SESSION_USED_TOKENS, *by, matching=CHOSEN), "{{session}}"),
        ),
    ]
    return [panel, *(chart.data_links([series]) for chart in charts)]


def _agents() -> list[Any]:
    both, who = ("agent", "model"), "{{agent}} {{model}}"
    return [
        lines(
            about(c.TURNS_UNTIL_RED, "Turns until red", "Early end, median and late end of the forecast."),
            Query(forecast(c.TURNS_UNTIL_RED, "bound"), "{{bound}}"),
        ),
        lines(about(c.VELOCITY, "Velocity"), Query(gauge(c.VELOCITY, *both), who)),
        lines(
            about(c.USED_TOKENS, "Used tokens by component", "Live sessions of the chosen agents."),
            Query(gauge(c.USED_TOKENS, "component"), "{{component}}"),
            stacked=True,
        ),
        lines(
            about(c.TOOL_TOKENS, "Tokens a second by tool", "Definitions, calls and results."),
            Query(rate(c.TOOL_TOKENS, "tool"), "{{tool}}"),
            stacked=True,
        ),
        lines(
            about(c.NAMED_TOKENS, "Tokens a second by MCP server, skill and memory file"),
            Query(rate(c.NAMED_TOKENS, "kind", "name"), "{{kind}} {{name}}"),
            stacked=True,
        ),
    ]


def _health() -> list[Any]:
    """Return what the session page shows beside utilization and velocity."""
    both, who = ("agent", "model"), "{{agent}} {{model}}"
    return [
        lines(about(c.EVICTION_RATE, "Eviction rate"), Query(gauge(c.EVICTION_RATE, *both), who)),
        lines(about(c.COMPRESSION_RATIO, "Compression ratio"), Query(gauge(c.COMPRESSION_RATIO, *both), who)),
        lines(
            about(c.FIDELITY, "Fidelity", "By agent and method."),
            Query(gauge(c.FIDELITY, "agent", "method"), "{{agent}} {{method}}"),
        ),
        lines(
            about(c.REGRETS, "Regrets a minute", "By why the content had left."),
            Query(per_minute(c.REGRETS, "cause"), "{{cause}}"),
        ),
        lines(
            about(c.CACHE_BREAKS, "Cache breaks a minute", "By cause."),
            Query(per_minute(c.CACHE_BREAKS, "cause") + " > 0", "{{cause}}"),
        ),
        bars(
            about(c.CACHE_BREAK_COST, "Dollars of cache breaks", "In this range, by cause."),
            Query(f"{grown(c.CACHE_BREAK_COST, 'cause')} > 0", "{{cause}}"),
        ),
        lines(
            about(c.ALERTS_FIRING, "Alerts firing", "Live sessions in which they fire."),
            Query(gauge(c.ALERTS_FIRING, "alert", "severity") + " > 0", "{{severity}}: {{alert}}"),
        ),
    ]
