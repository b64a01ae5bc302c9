"""Missteps per 100 calls by tenth of the window."""

from __future__ import annotations

from typing import Final

import plotly.graph_objects as go

from windowpane.core.vocabulary import MISSTEPS
from windowpane.report.context_health import NOUNS, ContextHealth
from windowpane_dashboard.charts.layout import apply_layout, axis, axis_title
from windowpane_dashboard.charts.trends import DASHES, SYMBOLS, line_colors
from windowpane_dashboard.style.theme import Palette

MINIMUM_CALLS: Final = 50
"""Calls of a tenth without which a rate per 100 is noise, and not drawn."""


def health_chart(health: ContextHealth, palette: Palette) -> go.Figure:
    """Draw a line per kind of misstep over the tenths of the window."""
    figure = go.Figure()
    rows = [row for row in health.by_tenth if row.calls >= MINIMUM_CALLS]
    for number, (misstep, color) in enumerate(zip(MISSTEPS, line_colors(palette), strict=False)):
        figure.add_scatter(
            x=[row.label for row in rows], y=[row.pooled[misstep] for row in rows], name=NOUNS[misstep],
            customdata=[row.calls for row in rows], mode="lines+markers", cliponaxis=False,
            hovertemplate="%{x}: %{y:.1f} per 100 calls, %{customdata:,} calls<extra></extra>",
            line={"color": color, "width": 2, "dash": DASHES[number]},
            marker={"size": 6, "symbol": list(SYMBOLS)[number]},
        )  # fmt: skip
    apply_layout(
        figure, palette, height=230, margin={"l": 44, "r": 8, "t": 8, "b": 64}, hovermode="closest",
        showlegend=True, legend={"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top", "font": {"size": 11}},
    )  # fmt: skip
    figure.update_layout(
        xaxis=axis(
            palette,
            showgrid=False,
            type="category",
            tickvals=[row.label for row in rows],
            ticktext=[f"{row.label.partition('–')[0]}%" for row in rows],
        ),
        yaxis=axis(palette, rangemode="tozero", title=axis_title("per 100 calls, by fill", palette)),
    )
    return figure
