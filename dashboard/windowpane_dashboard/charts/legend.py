"""The legend of a window's chart as HTML, which needs no room of the plot and wraps on a narrow page."""

from __future__ import annotations

from html import escape
from typing import Any, Final

import plotly.graph_objects as go

_SWATCH: Final = "display:inline-block;width:14px;height:10px;margin-right:5px;"


def legend_html(figure: go.Figure) -> str:
    """Return the names of the areas and lines with their colors."""
    areas = [trace for trace in figure.data if trace.name and trace.showlegend is not False]
    items = [f'<i style="{_SWATCH}{_look(trace)}"></i>{escape(trace.name)}' for trace in areas]
    spans = "".join(f'<span style="white-space:nowrap">{item}</span>' for item in items)
    return f'<div style="display:flex;flex-wrap:wrap;gap:2px 16px;font-size:0.8rem">{spans}</div>'


def _look(trace: Any) -> str:
    if trace.fillpattern.shape:
        return "background:repeating-linear-gradient(135deg,currentColor 0 1px,transparent 1px 4px)"
    if trace.fillcolor:
        return f"background:{trace.fillcolor}"
    style = "dotted" if trace.line.dash else "solid"
    return f"height:0;vertical-align:middle;border-top:2px {style} {trace.line.color}"
