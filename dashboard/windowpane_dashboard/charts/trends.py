"""One small chart per measure of the trends, a line per agent, model or release."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from windowpane.text.formats import dollars, percent, ratio
from windowpane_dashboard.charts.layout import apply_layout, axis, escape_label
from windowpane_dashboard.queries.trends import OTHERS, TrendMeasure, Trends, values_of
from windowpane_dashboard.style.theme import Palette

DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
MARGIN: Final = timedelta(days=2)
DAY: Final = timedelta(days=1)
DAYS_WITH_TICKS: Final = 10
"""Days of a range up to which each has a tick: the browser would label every twelve hours with the same day."""
SYMBOLS: Final = ("circle", "square", "diamond", "triangle-up", "cross", "x", "circle-open")
"""A line differs from the others by its dash and marker too, never by its color alone."""


def value_text(value: float, unit: str) -> str:
    """Return a value of a measure."""
    if unit == "$":
        return dollars(value)
    return percent(value) if unit == "%" else ratio(value)


def _around(periods: pd.Series) -> tuple[datetime, datetime]:
    """Return the range of the periods with a margin of at least two days."""
    first, last = periods.min(), periods.max()
    margin = max((last - first) * 0.02, MARGIN)
    return first - margin, last + margin


def line_colors(palette: Palette) -> list[str]:
    """Return the colors of lines; that of unattributed content has too little contrast for one."""
    components = [color for name, color in palette.components.items() if name != "unattributed"]
    return [palette.accent, *(color for color in components if color != palette.accent), palette.text]


def trend_chart(ranged: Trends, measure: TrendMeasure, palette: Palette) -> go.Figure | None:
    """Draw one measure; None where no period has a value."""
    colors = line_colors(palette)
    figure = go.Figure()
    for number, (line, frame) in enumerate(ranged.frame.groupby("line", sort=False)):
        values = values_of(frame, measure.name)
        if values.isna().all():
            continue
        color = palette.muted if line == OTHERS else colors[number % len(colors)]
        texts = [
            escape_label(f"{line}\n{period:%Y-%m-%d}: {value_text(value, measure.unit)}, {sessions:,} sessions")
            for period, value, sessions in zip(frame["period"], values, frame["sessions"], strict=True)
        ]
        figure.add_scatter(
            x=frame["period"], y=values, name=escape_label(str(line)), mode="lines+markers", hovertext=texts,
            hovertemplate="%{hovertext}<extra></extra>", connectgaps=False,
            line={"color": color, "width": 2, "dash": DASHES[number % len(DASHES)]},
            marker={"size": 6, "symbol": SYMBOLS[number % len(SYMBOLS)]}, cliponaxis=False,
        )  # fmt: skip
    if not figure.data:
        return None
    top = max(float(trace.y.max()) for trace in figure.data)
    for mark in ranged.marks:
        if mark.measure == measure.name:
            figure.add_vline(x=mark.period, line={"color": palette.outline, "width": 1, "dash": "dot"})
            change = " to ".join(value_text(value, measure.unit) for value in (mark.before, mark.after))
            figure.add_scatter(
                x=[mark.period], y=[top], mode="markers", showlegend=False, hoverinfo="text",
                hovertext=[escape_label(f"{mark.agent} {mark.release}\nper session: {change}")],
                marker={"symbol": "triangle-down", "size": 9, "color": palette.outline}, cliponaxis=False,
            )  # fmt: skip
    first, last = _around(ranged.frame["period"])
    apply_layout(
        figure, palette, height=210, margin={"l": 52, "r": 8, "t": 8, "b": 52}, hovermode="closest",
        showlegend=True, legend={"orientation": "h", "x": 0, "y": -0.18, "yanchor": "top", "font": {"size": 11}},
    )  # fmt: skip
    figure.update_layout(
        xaxis=axis(
            palette,
            showgrid=False,
            type="date",
            range=(first, last),
            tickformat="%b %-d",
            dtick=DAY / timedelta(milliseconds=1) if last - first <= DAYS_WITH_TICKS * DAY else None,
        ),
        yaxis=axis(
            palette,
            rangemode="tozero",
            tickprefix="$" if measure.unit == "$" else "",
            tickformat=".0%" if measure.unit == "%" else "",
        ),
    )
    return figure
