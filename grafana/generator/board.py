"""The frame of all dashboards: variables, annotations, links, identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.models import dashboard as models

from generator.panels import DATASOURCE
from generator.queries import grown
from generator.style import SEVERITY_COLORS
from windowpane.alerts.prometheus import DEFAULT_DASHBOARD
from windowpane.metrics import catalog
from windowpane.text.palette import COMPONENT_TONES

TAG: Final = "windowpane"
RUNBOOK: Final = "http://127.0.0.1:9090/user/runbook.html"
"""Default of the variable `runbook_url`: the runbook as served by the Prometheus of the compose file."""
RECENT: Final = "$__rate_interval"


@dataclass(frozen=True)
class Row:
    """A heading and the panels below it."""

    title: str
    panels: Sequence[Any]


def board(
    uid: str,
    title: str,
    description: str,
    rows: Sequence[Row],
    *,
    variables: Sequence[Any] = (),
    of_sessions: bool = True,
) -> models.Dashboard:
    """Return a dashboard with the frame and these rows."""
    built = builders.Dashboard(title).uid(uid).description(description).tags([TAG])
    built.readonly().refresh("30s").time("now-6h", "now").timezone("browser")
    built.tooltip(models.DashboardCursorSync.CROSSHAIR)
    for variable in (*_targets(), *(_sessions() if of_sessions else ()), *variables, *_addresses()):
        built.with_variable(variable)
    for annotation in _annotations() if of_sessions else (_alerts(),):
        built.annotation(annotation)
    for link in _links():
        built.link(link)
    for row in rows:
        built.with_row(builders.Row(row.title))
        for panel in row.panels:
            built.with_panel(panel)
    finished = built.build()
    for item in (*(finished.links or ()), *(finished.annotations.list_val or ())):
        item.placement = None  # the SDK would hide them in a menu that older releases do not have
    for number, panel in enumerate(finished.panels or [], 1):
        panel.id_val = number
    return finished


def choice(name: str, query: str) -> builders.QueryVariable:
    """Return a variable with the values of a label; several can be selected, by default all."""
    everything = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    variable = builders.QueryVariable(name).label(name.capitalize()).query(query).datasource(DATASOURCE)
    variable.multi(True).include_all(True).all_value(".+").current(everything)
    variable.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return variable.sort(models.VariableSort.ALPHABETICAL_ASC)


def _targets() -> list[Any]:
    source = builders.DatasourceVariable("datasource").label("Data source").type("prometheus")
    build = catalog.BUILD_INFO.name
    return [
        source,
        choice("job", f"label_values({build}, job)"),
        choice("instance", f'label_values({build}{{job=~"$job"}}, instance)'),
    ]


def _sessions() -> list[Any]:
    turns, target = catalog.TURNS.name, 'job=~"$job", instance=~"$instance"'
    return [
        choice("agent", f"label_values({turns}{{{target}}}, agent)"),
        choice("model", f'label_values({turns}{{{target}, agent=~"$agent"}}, model)'),
    ]


def _addresses() -> list[Any]:
    """Targets of links; set them in the dashboard's settings, or as `var-dashboard_url` in its address."""
    variables = []
    for name, label, default in (
        ("dashboard_url", "Windowpane dashboard", DEFAULT_DASHBOARD),
        ("runbook_url", "Runbook", RUNBOOK),
    ):
        variable = builders.TextBoxVariable(name).label(label).default_value(default)
        variable.current(models.VariableOption(selected=True, text=default, value=default))
        variables.append(variable.hide(models.VariableHide.HIDE_VARIABLE))
    return variables


def _alerts() -> builders.AnnotationQuery:
    happened = grown(catalog.ALERT_TRANSITIONS, "alert", "severity", matching='state="firing"', window=RECENT)
    if_shown = happened.replace(', agent=~"$agent", model=~"$model"', "")
    return _annotation("Alerts", f"{if_shown} > 0", "{{severity}}: {{alert}}", SEVERITY_COLORS["critical"])


def _annotations() -> list[builders.AnnotationQuery]:
    alerts = grown(
        catalog.ALERT_TRANSITIONS, "agent", "alert", "severity", matching='state="firing"', window=RECENT
    )
    compactions = grown(
        catalog.COMPRESSIONS,
        "agent",
        "strategy",
        matching='strategy="compaction", outcome="accepted"',
        window=RECENT,
    )
    rolls = grown(
        catalog.ALERT_TRANSITIONS, "agent", matching='alert="window_rolled", state="firing"', window=RECENT
    )
    blue, violet = COMPONENT_TONES["message_history"].dark, COMPONENT_TONES["memory_injection"].dark
    return [
        _annotation(
            "Alerts", f"{alerts} > 0", "{{severity}}: {{alert}} ({{agent}})", SEVERITY_COLORS["critical"]
        ),
        _annotation("Compactions", f"{compactions} > 0", "C compaction ({{agent}})", blue),
        _annotation("Window rolls", f"{rolls} > 0", "W window rolled ({{agent}})", violet),
    ]


def _annotation(name: str, expression: str, text: str, color: str) -> builders.AnnotationQuery:
    target = (
        prometheus.Dataquery().expr(expression).ref_id("A").datasource(DATASOURCE).range().legend_format(text)
    )
    annotation = builders.AnnotationQuery().name(name).datasource(DATASOURCE).enable(True).icon_color(color)
    return annotation.target(target).expr(expression).title_format(text).step("30s")


def _links() -> list[builders.DashboardLink]:
    boards = builders.DashboardLink("Windowpane").type(models.DashboardLinkType.DASHBOARDS).tags([TAG])
    boards.as_dropdown(True).include_vars(True).keep_time(True).icon("dashboard")
    return [boards, link("Sessions in the browser", "${dashboard_url}"), link("Runbook", "${runbook_url}")]


def data_link(title: str, url: str) -> models.DashboardLink:
    """Return a link from a value; unlike a dashboard's it is not part of a menu."""
    built = link(title, url).build()
    built.placement = None
    return built


def link(title: str, url: str) -> builders.DashboardLink:
    """Return a link to another page, in a new tab."""
    built = builders.DashboardLink(title).type(models.DashboardLinkType.LINK).url(url).icon("external link")
    return built.target_blank(True).tooltip(title)
