"""Panels: a metric of the catalog, one or more queries, and a way of drawing them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from generator.style import CALM, SERIES_COLORS, SEVERITY_COLORS, no_value_text, thresholds_of, unit_of
from windowpane.metrics.catalog import Metric
from windowpane.metrics.labels import LABELS

DATASOURCE: Final = options.DataSourceRef(type_val="prometheus", uid="${datasource}")
FLAT: Final = models.RangeMap(
    models.DashboardRangeMapOptions(from_val=1e300, result=models.ValueMappingResult(text="flat", index=0))
)
"""A forecast that never comes true is infinite."""
LETTERS: Final = "ABCDEFGHIJKLMNOP"


@dataclass(frozen=True)
class Query:
    """One expression and the name of its series."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class PanelStyle:
    """The properties of a panel besides its data."""

    title: str
    description: str
    unit: str
    width: int = 8
    height: int = 7
    steps: list[models.Threshold] = field(default_factory=lambda: [models.Threshold(color=CALM)])
    maximum: float | None = None
    no_value: str = "no data"
    turns: bool = False
    """The values are forecasts in turns: shown with one decimal, and infinity as text."""


def about(metric: Metric, title: str, note: str = "", **changed: Any) -> PanelStyle:
    """Return the style of a panel for *metric*, by its catalog entry and its alerts."""
    text = f"{metric.help} {note}".strip()
    share = unit_of(metric) == "percentunit" and metric.kind == "gauge"
    given: dict[str, Any] = {
        "unit": unit_of(metric),
        "steps": thresholds_of(metric),
        "maximum": 1 if share else None,
        "no_value": no_value_text(metric),
        "turns": metric.unit == "{turn}" and metric.kind == "gauge",
    }
    return PanelStyle(title, f"{text}\n\nMetric: {metric.name}", **(given | changed))


def lines(style: PanelStyle, *drawn: Query, stacked: bool = False) -> timeseries.Panel:
    """Return a chart of series over time, with the alert's thresholds as dashed lines."""
    panel = _common(timeseries.Panel(), style, drawn)
    panel.fill_opacity(60 if stacked else 8).line_width(1).show_points(options.VisibilityMode.NEVER)
    panel.legend(_legend(drawn)).tooltip(_tooltip()).min(0)
    if style.maximum is not None:
        panel.axis_soft_max(style.maximum)
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    if stacked:
        panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))
    if len(style.steps) > 1:
        dashed = common.GraphThresholdsStyleConfig().mode(options.GraphThresholdsStyleMode.DASHED)
        panel.thresholds_style(dashed)
    return _colored(panel, drawn)


def single_value(style: PanelStyle, query: Query, *, spark: bool = True) -> stat.Panel:
    """Return a panel with one number, colored by the alert's thresholds."""
    panel = _common(stat.Panel(), style, (query,))
    panel.graph_mode(options.BigValueGraphMode.AREA if spark else options.BigValueGraphMode.NONE)
    panel.color_mode(options.BigValueColorMode.VALUE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel


def total(style: PanelStyle, query: Query) -> stat.Panel:
    """Return a panel with one number for the selected range."""
    panel = single_value(style, query, spark=False)
    panel.targets([_target(0, query, instant=True)])
    return panel


def bars(style: PanelStyle, query: Query) -> bargauge.Panel:
    """Return a panel with one bar per series, at the end of the range."""
    panel = _common(bargauge.Panel(), style, (query,), instant=True)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).min(0)
    panel.orientation(options.VizOrientation.HORIZONTAL)
    return _colored(panel, (query,))


def states(style: PanelStyle, query: Query) -> statetimeline.Panel:
    """Return a timeline of the spans in which each series was above zero."""
    panel = _common(statetimeline.Panel(), style, (query,))
    panel.show_value(options.VisibilityMode.NEVER).legend(_legend(()))
    for severity, color in SEVERITY_COLORS.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        panel.override_by_regexp(f"^{severity} .*", [models.DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def heat(style: PanelStyle, query: Query) -> heatmap.Panel:
    """Return a heat map of a histogram over time."""
    panel = _common(heatmap.Panel(), style, ())
    panel.targets([_target(0, query, form=PromQueryFormat.HEATMAP)])
    panel.calculate(False).y_axis(heatmap.YAxisConfig().unit(style.unit))
    return panel


def rows(style: PanelStyle, *columns: Query, links: dict[str, models.DashboardLink] | None = None) -> table.Panel:
    """Return a table of instant queries joined by their labels; the legend of a query is its heading.

    The first column's largest values come first.
    """
    panel = _common(table.Panel(), style, ())
    panel.sort_by([common.TableSortByFieldState().display_name(columns[0].legend).desc(True)])
    panel.targets([_target(i, one, instant=True, form=PromQueryFormat.TABLE) for i, one in enumerate(columns)])
    panel.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    # Grafana numbers the value columns only where there are several.
    several = len(columns) > 1
    names = {f"Value #{LETTERS[i]}" if several else "Value": one.legend for i, one in enumerate(columns)}
    organised = {"excludeByName": {"Time": True}, "renameByName": names}
    panel.with_transformation(models.DataTransformerConfig(id_val="organize", options=organised))
    for column, link in (links or {}).items():
        panel.override_by_name(column, [models.DynamicConfigValue(id_val="links", value=[link])])
    return panel


def unit_override(panel: Any, column: str, style: PanelStyle) -> None:
    """Give a column of a table its own unit and thresholds, as *look* has them."""
    panel.override_by_name(
        column,
        [
            models.DynamicConfigValue(id_val="unit", value=style.unit),
            models.DynamicConfigValue(
                id_val="thresholds", value=models.ThresholdsConfig(models.ThresholdsMode.ABSOLUTE, style.steps)
            ),
            models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
            *(
                [
                    models.DynamicConfigValue(id_val="decimals", value=1),
                    models.DynamicConfigValue(id_val="mappings", value=[FLAT]),
                ]
                if style.turns
                else []
            ),
        ],
    )


def _common(panel: Any, style: PanelStyle, drawn: tuple[Query, ...], *, instant: bool = False) -> Any:
    panel.title(style.title).description(style.description).unit(style.unit).datasource(DATASOURCE)
    panel.span(style.width).height(style.height).no_value(style.no_value)
    panel.thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(style.steps))
    if style.maximum is not None and not isinstance(panel, timeseries.Panel):
        panel.max(style.maximum)
    if style.turns:
        panel.decimals(1).mappings([FLAT])
    if drawn:
        panel.targets([_target(i, one, instant=instant) for i, one in enumerate(drawn)])
    return panel


def _target(
    index: int, query: Query, *, instant: bool = False, form: PromQueryFormat = PromQueryFormat.TIME_SERIES
) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(query.expression).ref_id(LETTERS[index]).datasource(DATASOURCE)
    target.format(form)
    if query.legend:
        target.legend_format(query.legend)
    return target.instant() if instant else target.range()


def _colored(panel: Any, drawn: tuple[Query, ...]) -> Any:
    """Give series their colour where a panel draws them by one label whose values have one."""
    for label in ("zone", "component", "severity", "state"):
        if any(one.legend == f"{{{{{label}}}}}" for one in drawn):
            for name in LABELS[label].values:
                if name in SERIES_COLORS:
                    fixed = {"mode": "fixed", "fixedColor": SERIES_COLORS[name]}
                    panel.override_by_name(name, [models.DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def _legend(drawn: tuple[Query, ...]) -> common.VizLegendOptions:
    """Names below the chart; where there may be one line an agent, a table with the last value, largest first."""
    legend = common.VizLegendOptions().placement(options.LegendPlacement.BOTTOM).show_legend(True)
    if not any(label in one.legend for one in drawn for label in ("{{agent}}", "{{session}}", "{{instance}}")):
        return legend.display_mode(options.LegendDisplayMode.LIST)
    legend.display_mode(options.LegendDisplayMode.TABLE).calcs(["lastNotNull", "max"])
    return legend.sort_by("Last *").sort_desc(True)


def _tooltip() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING)
