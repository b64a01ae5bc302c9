"""One small chart per measure of the trends, a line per agent, model or release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape
from itertools import chain
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from windowpane_dashboard.charts.layout import apply_layout, axis, escape_label
from windowpane_dashboard.queries.trends import OTHERS, TrendMeasure, Trends
from windowpane_dashboard.style.sanitize import sanitized
from windowpane_dashboard.style.theme import Palette

DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
MARGIN: Final = timedelta(days=2)
DAY: Final = timedelta(days=1)
TICKS: Final = 5
"""Dates that fit below a narrow chart. Each is another day: the browser would repeat one every twelve hours."""
LISTED_RELEASES: Final = 4
SYMBOLS: Final = {
    "circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "cross": "✚", "x": "✖", "circle-open": "○",
}  # fmt: skip
"""Markers and their characters. A line differs from the others by its dash and marker too, never by its color
alone."""


def _around(periods: pd.Series) -> tuple[datetime, datetime]:
    """Return the range of the periods with a margin of at least two days."""
    first, last = periods.min(), periods.max()
    margin = max((last - first) * 0.02, MARGIN)
    return first - margin, last + margin


def line_colors(palette: Palette) -> list[str]:
    """Return the colors of lines; that of unattributed content has too little contrast for one."""
    components = [color for name, color in palette.components.items() if name != "unattributed"]
    return [palette.accent, *(color for color in components if color != palette.accent), palette.text]


def line_looks(ranged: Trends, palette: Palette) -> dict[str, tuple[str, str, str]]:
    """Return the color, the dash and the marker of each line."""
    colors, symbols = line_colors(palette), list(SYMBOLS)
    return {
        line: (
            palette.muted if line == OTHERS else colors[number % len(colors)],
            DASHES[number % len(DASHES)],
            symbols[number % len(symbols)],
        )
        for number, line in enumerate(ranged.frame["line"].unique())
    }


def trend_legend(ranged: Trends, palette: Palette) -> str:
    """Return the names of the lines with their markers as HTML, once for all charts."""
    items: Iterable[str] = (
        f'<span style="white-space:nowrap"><span aria-hidden="true" style="color:{color}">'
        f"{SYMBOLS[symbol]}</span> {escape(sanitized(line))}</span>"
        for line, (color, _, symbol) in line_looks(ranged, palette).items()
    )
    if ranged.releases:
        items = chain(items, ["<span>┊ a new release</span>"])
    return f'<div style="display:flex;flex-wrap:wrap;gap:2px 16px;font-size:0.8rem">{"".join(items)}</div>'


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED_RELEASES} more" if len(names) > LISTED_RELEASES else ""
    return f"{', '.join(names[:LISTED_RELEASES])}{more}"


def trend_chart(ranged: Trends, measure: TrendMeasure, palette: Palette) -> go.Figure | None:
    """Draw one measure; None where no period has a value."""
    looks = line_looks(ranged, palette)
    figure = go.Figure()
    for line, frame in ranged.frame.groupby("line", sort=False):
        values = frame[measure.name]
        if values.isna().all():
            continue
        color, dash, symbol = looks[str(line)]
        texts = [
            escape_label(f"{line}\n{period:%Y-%m-%d}: {measure.text(value)}, {sessions:,} sessions")
            for period, value, sessions in zip(frame["period"], values, frame["sessions"], strict=True)
        ]
        figure.add_scatter(
            x=frame["period"], y=values, name=escape_label(str(line)), mode="lines+markers", hovertext=texts,
            hovertemplate="%{hovertext}<extra></extra>", connectgaps=False,
            line={"color": color, "width": 2, "dash": dash},
            marker={"size": 6, "symbol": symbol}, cliponaxis=False,
        )  # fmt: skip
    if not figure.data:
        return None
    new = [f"{period:%Y-%m-%d}, new: {_listed(names)}" for period, names in ranged.releases.items()]
    figure.add_scatter(
        x=list(ranged.releases), y=[0] * len(new), mode="markers", showlegend=False,
        hovertext=[escape_label(text) for text in new],
        hovertemplate="%{hovertext}<extra></extra>", cliponaxis=False,
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 0}},
    )  # fmt: skip
    for period in ranged.releases:
        figure.add_shape(
            type="line", x0=period, x1=period, y0=0, y1=1, yref="y domain", layer="below",
            line={"width": 1, "dash": "dot", "color": palette.outline},
        )  # fmt: skip
    first, last = _around(ranged.frame["period"])
    apply_layout(figure, palette, height=180, margin={"l": 52, "r": 20, "t": 8, "b": 26}, hovermode="closest")
    figure.update_layout(
        xaxis=axis(
            palette,
            showgrid=False,
            showspikes=True,
            spikemode="across",
            spikethickness=1,
            spikedash="dot",
            spikecolor=palette.outline,
            type="date",
            range=(first, last),
            tickformat="%b %-d",
            ticklabelstandoff=6,
            dtick=math.ceil((last - first) / DAY / TICKS) * DAY / timedelta(milliseconds=1),
        ),
        yaxis=axis(
            palette,
            rangemode="tozero",
            tickprefix="$" if measure.unit == "$" else "",
            tickformat=".0%" if measure.unit == "%" else "",
        ),
    )
    return figure
