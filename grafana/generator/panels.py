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

from generator.look import CALM, SERIES_COLOURS, SEVERITY_COLOURS, nothing_of, thresholds_of, unit_of
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
class Look:
    """What a panel shows besides its data."""

    title: str
    description: str
    unit: str
    width: int = 8
    height: int = 7
    steps: list[models.Threshold] = field(default_factory=lambda: [models.Threshold(color=CALM)])
    maximum: float | None = None
    no_value: str = "no data"
    turns: bool = False
    """Whether the values are forecasts in turns: one decimal, and infinity is a word."""


def about(metric: Metric, title: str, note: str = "", **changed: Any) -> Look:
    """How *metric* looks, by its catalog entry and the alerts that judge it."""
    text = f"{metric.help} {note}".strip()
    share = unit_of(metric) == "percentunit" and metric.kind == "gauge"
    given: dict[str, Any] = {
        "unit": unit_of(metric),
        "steps": thresholds_of(metric),
        "maximum": 1 if share else None,
        "no_value": nothing_of(metric),
        "turns": metric.unit == "{turn}" and metric.kind == "gauge",
    }
    return Look(title, f"{text}\n\nMetric: {metric.name}", **(given | changed))


def lines(look: Look, *drawn: Query, stacked: bool = False) -> timeseries.Panel:
    """Series over time; the alert's thresholds as dashed lines."""
    panel = _common(timeseries.Panel(), look, drawn)
    panel.fill_opacity(60 if stacked else 8).line_width(1).show_points(options.VisibilityMode.NEVER)
    panel.legend(_legend(drawn)).tooltip(_tooltip()).min(0)
    if look.maximum is not None:
        panel.axis_soft_max(look.maximum)
    panel.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    if stacked:
        panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))
    if len(look.steps) > 1:
        dashed = common.GraphThresholdsStyleConfig().mode(options.GraphThresholdsStyleMode.DASHED)
        panel.thresholds_style(dashed)
    return _coloured(panel, drawn)


def figure(look: Look, query: Query, *, spark: bool = True) -> stat.Panel:
    """One number, coloured by the alert's thresholds."""
    panel = _common(stat.Panel(), look, (query,))
    panel.graph_mode(options.BigValueGraphMode.AREA if spark else options.BigValueGraphMode.NONE)
    panel.color_mode(options.BigValueColorMode.VALUE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel


def total(look: Look, query: Query) -> stat.Panel:
    """One number for the range that is shown."""
    panel = figure(look, query, spark=False)
    panel.targets([_target(0, query, instant=True)])
    return panel


def bars(look: Look, query: Query) -> bargauge.Panel:
    """One bar a series, at the end of the range."""
    panel = _common(bargauge.Panel(), look, (query,), instant=True)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).min(0)
    panel.orientation(options.VizOrientation.HORIZONTAL)
    return _coloured(panel, (query,))


def states(look: Look, query: Query) -> statetimeline.Panel:
    """When each series was above zero."""
    panel = _common(statetimeline.Panel(), look, (query,))
    panel.show_value(options.VisibilityMode.NEVER).legend(_legend(()))
    for severity, colour in SEVERITY_COLOURS.items():
        fixed = {"mode": "fixed", "fixedColor": colour}
        panel.override_by_regexp(f"^{severity} .*", [models.DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def heat(look: Look, query: Query) -> heatmap.Panel:
    """A histogram over time."""
    panel = _common(heatmap.Panel(), look, ())
    panel.targets([_target(0, query, form=PromQueryFormat.HEATMAP)])
    panel.calculate(False).y_axis(heatmap.YAxisConfig().unit(look.unit))
    return panel


def rows(look: Look, *columns: Query, links: dict[str, models.DashboardLink] | None = None) -> table.Panel:
    """A table: instant queries joined by their labels; a query's legend is its column's heading.

    The first column's largest values come first.
    """
    panel = _common(table.Panel(), look, ())
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


def unit_override(panel: Any, column: str, look: Look) -> None:
    """Give a column of a table its own unit and thresholds, as *look* has them."""
    panel.override_by_name(
        column,
        [
            models.DynamicConfigValue(id_val="unit", value=look.unit),
            models.DynamicConfigValue(
                id_val="thresholds", value=models.ThresholdsConfig(models.ThresholdsMode.ABSOLUTE, look.steps)
            ),
            models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
            *(
                [
                    models.DynamicConfigValue(id_val="decimals", value=1),
                    models.DynamicConfigValue(id_val="mappings", value=[FLAT]),
                ]
                if look.turns
                else []
            ),
        ],
    )


def _common(panel: Any, look: Look, drawn: tuple[Query, ...], *, instant: bool = False) -> Any:
    panel.title(look.title).description(look.description).unit(look.unit).datasource(DATASOURCE)
    panel.span(look.width).height(look.height).no_value(look.no_value)
    panel.thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(look.steps))
    if look.maximum is not None and not isinstance(panel, timeseries.Panel):
        panel.max(look.maximum)
    if look.turns:
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


def _coloured(panel: Any, drawn: tuple[Query, ...]) -> Any:
    """Give series their colour where a panel draws them by one label whose values have one."""
    for label in ("zone", "component", "severity", "state"):
        if any(one.legend == f"{{{{{label}}}}}" for one in drawn):
            for name in LABELS[label].values:
                if name in SERIES_COLOURS:
                    fixed = {"mode": "fixed", "fixedColor": SERIES_COLOURS[name]}
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
