"""The layout that all charts share: fonts, grid, margins, and labels without markup."""

from __future__ import annotations

import html
import textwrap
from typing import Any, Final

import plotly.graph_objects as go

from windowpane_dashboard.style.sanitize import sanitized
from windowpane_dashboard.style.theme import FONT, Palette

CONFIG: Final[dict[str, Any]] = {
    "showSendToCloud": False,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "doubleClick": "reset",
}
"""Settings of Plotly's own buttons: nothing is sent from this machine."""


def escape_label(text: str, *, width: int = 90) -> str:
    """Return text for a label or a hover box: markup is escaped, long lines are wrapped."""
    return "<br>".join(
        html.escape(part) for line in sanitized(text).split("\n") for part in _wrapped(line, width)
    )


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width and line.isprintable():
        return [line]
    return textwrap.wrap(line, width) or [""]


def apply_layout(figure: go.Figure, palette: Palette, *, height: int, **layout: Any) -> go.Figure:
    """Apply the shared layout to *figure*.

    Without Plotly's template: it is half of a small figure's size, and its automatic margins lay out every chart
    twice. All that it would set is set here.
    """
    figure.update_layout(
        template="none",
        height=height,
        font={"family": FONT, "size": 12, "color": palette.text},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        colorway=list(palette.components.values()),
        hoverlabel={
            "bgcolor": palette.background,
            "bordercolor": palette.outline,
            "font": {"family": FONT, "size": 12, "color": palette.text},
            "align": "left",
        },
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": palette.muted, "activecolor": palette.text},
        **{
            "margin": {"l": 64, "r": 16, "t": 8, "b": 32},
            "showlegend": False,
            "hovermode": "x",
            "dragmode": "zoom",
            **layout,
        },
    )
    return figure


def axis(palette: Palette, **options: Any) -> dict[str, Any]:
    """Return an axis in the shared style; *options* override."""
    return {
        "gridcolor": palette.grid,
        "linecolor": palette.grid,
        "zeroline": False,
        "tickfont": {"color": palette.muted, "size": 11},
        "title": {"font": {"color": palette.muted, "size": 11}},
        "fixedrange": True,
        **options,
    }


def axis_title(text: str, palette: Palette) -> dict[str, Any]:
    """Return an axis title in the shared style."""
    return {"text": text, "font": {"color": palette.muted, "size": 11}}
