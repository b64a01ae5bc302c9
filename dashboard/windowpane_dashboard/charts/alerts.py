"""Alerts as bars from firing to end: one row per session, the worst severity on top."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.core.vocabulary import Severity
from windowpane.text.labels import severity_label
from windowpane_dashboard.charts.layout import apply_layout, axis, axis_title, escape_label
from windowpane_dashboard.queries.events import moments
from windowpane_dashboard.queries.filters import Along
from windowpane_dashboard.style.theme import Palette

ROW_PIXELS: Final = 40
_HEIGHTS: Final[dict[Severity, float]] = {"critical": 0.26, "warning": 0.0, "info": -0.26}
"""Vertical position of each severity within its row."""
NAME_LENGTH: Final = 32
READABLE_SPAN_SECONDS: Final = 3 * 86_400.0
"""Beyond, minutes of firing would be too thin to see on a time axis."""


class _Ends(NamedTuple):
    """Starts and ends of bars: turns, or moments."""

    start: np.ndarray
    end: np.ndarray


def natural_axis(bars: pd.DataFrame) -> Along:
    """Return time where every firing has one and all are within some days, else turns."""
    if bars.empty or bars["start"].isna().any():
        return "turn"
    span = bars["end"].max() - bars["start"].min()
    return "time" if span <= READABLE_SPAN_SECONDS else "turn"


def alert_chart(
    bars: pd.DataFrame,
    palette: Palette,
    *,
    along: Along,
    chosen: int | None = None,
    zone: tzinfo = UTC,
    reader_zone_label: str = "UTC",
) -> go.Figure:
    """Draw the bars of `alert_bars`; *chosen* is the index of the ringed firing, *zone* that of the times.

    The customdata of each mark is its firing's index in the list.
    """
    titles = dict(zip(bars["session"], bars["title"], strict=True))
    sessions = list(titles)
    figure = go.Figure()
    for severity in _HEIGHTS:
        of_severity = bars[bars["severity"] == severity]
        if along == "time":
            of_severity = of_severity[of_severity["start"].notna()]
        if len(of_severity):
            _add_severity(
                figure,
                of_severity,
                severity,
                sessions,
                palette,
                ends=_ends(of_severity, along, zone),
                chosen=chosen,
            )
    rows = len(sessions)
    apply_layout(
        figure, palette, height=ROW_PIXELS * rows + 78, showlegend=True, hovermode="closest",
        margin={"l": 230, "r": 16, "t": 30, "b": 40}, clickmode="event+select",
        legend={
            "orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 11},
            "itemsizing": "constant",
        },
    )  # fmt: skip
    title = "turn of the session" if along == "turn" else f"time ({reader_zone_label})"
    figure.update_layout(
        xaxis=axis(
            palette, title=axis_title(title, palette), fixedrange=False,
            **({"type": "date"} if along == "time" else {"tickformat": ",d", "rangemode": "tozero"}),
        ),
        yaxis=axis(
            palette, range=(-0.6, rows - 0.4), tickvals=list(range(rows)), showgrid=True,
            ticktext=[_short(titles[name]) for name in reversed(sessions)],
        ),
    )  # fmt: skip
    return figure


def _short(name: str) -> str:
    return escape_label(name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…", width=80)


def _add_severity(
    figure: go.Figure,
    of_severity: pd.DataFrame,
    severity: Severity,
    sessions: list[str],
    palette: Palette,
    *,
    ends: _Ends,
    chosen: int | None,
) -> None:
    height = np.array(
        [len(sessions) - 1 - sessions.index(name) + _HEIGHTS[severity] for name in of_severity["session"]]
    )
    start, end = ends
    color = palette.severities[severity]
    gap = np.full(len(start), np.nan)
    heights = np.column_stack([height, height, gap]).ravel()
    between = np.column_stack([start, end, end]).ravel()
    figure.add_scatter(
        x=between, y=heights, mode="lines", hoverinfo="skip", showlegend=False, legendgroup=severity,
        line={"width": 7, "color": color}, opacity=0.55,
    )  # fmt: skip
    ringed = [position == chosen for position in of_severity["index"]]
    figure.add_scatter(
        x=start, y=height, mode="markers", name=severity_label(severity), legendgroup=severity,
        customdata=of_severity["index"].to_numpy(),
        marker={
            "size": [15 if ring else 10 for ring in ringed], "color": color,
            "line": {"color": [palette.text if ring else palette.background for ring in ringed],
                     "width": [2.2 if ring else 1 for ring in ringed]},
        },
        selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
        hovertext=[escape_label(text) for text in of_severity["text"]],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    still = of_severity["open"].to_numpy(dtype=bool)
    if still.any():
        figure.add_scatter(
            x=end[still], y=height[still], mode="markers", showlegend=False, hoverinfo="skip",
            marker={"size": 10, "symbol": "triangle-right", "color": color}, legendgroup=severity,
        )  # fmt: skip


def _ends(of_severity: pd.DataFrame, along: Along, zone: tzinfo) -> _Ends:
    if along == "turn":
        return _Ends(
            of_severity["first_turn"].to_numpy(dtype=float), of_severity["last_turn"].to_numpy(dtype=float)
        )
    return _Ends(_clock(of_severity["start"], zone), _clock(of_severity["end"], zone))


def _clock(at: pd.Series, zone: tzinfo) -> np.ndarray:
    """Return local times without a zone, which the browser draws as they are."""
    clock: np.ndarray = moments(at.astype("float64")).dt.tz_convert(zone).dt.tz_localize(None).to_numpy()
    return clock
