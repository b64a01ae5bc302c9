"""The facts of a compression by their fate, as one bar."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from windowpane.core.vocabulary import Fate
from windowpane.text.formats import count
from windowpane_dashboard.charts.layout import apply_layout, axis
from windowpane_dashboard.style.theme import Palette


def facts_bar(counts: dict[Fate, int], palette: Palette) -> go.Figure:
    """Draw one bar of kept, recoverable, lost and contradicted facts with a legend."""
    figure = go.Figure()
    for outcome, number in counts.items():
        if number:
            figure.add_bar(
                x=np.array([number]), y=np.array([0]), orientation="h", name=f"{outcome} {number:,}",
                marker={"color": palette.facts[outcome], "line": {"color": palette.background, "width": 1}},
                hovertemplate=f"{count(number, 'fact')} {outcome}<extra></extra>",
            )  # fmt: skip
    apply_layout(
        figure, palette, height=84, barmode="stack", hovermode="closest", showlegend=True, bargap=0.1,
        margin={"l": 4, "r": 4, "t": 30, "b": 4},
        legend={"orientation": "h", "x": 0, "y": 1.05, "yanchor": "bottom", "traceorder": "normal"},
    )  # fmt: skip
    figure.update_layout(
        xaxis=axis(palette, visible=False, range=(0, max(1, sum(counts.values())))),
        yaxis=axis(palette, visible=False),
    )
    return figure
