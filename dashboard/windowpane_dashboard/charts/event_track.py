"""The event track below the window's chart: one row of dots for each kind of event, named at its end."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.text.labels import MARKS, EventMark
from windowpane_dashboard.charts.layout import axis, escape_label
from windowpane_dashboard.style.theme import Palette

ROW_PIXELS: Final = 19
TRACK_PIXELS: Final = 110
"""All rows together at most, so that the selected turn below the chart stays on the first screen."""
DOT_PIXELS: Final = 10
MAXIMUM_MARKS: Final = 2_000
"""Marks of a row, those that represent most events."""
MAXIMUM_LINKS: Final = 300
"""Lines from a removal to the turn in which its content was needed again; the largest ones."""


def event_kinds(marks: pd.DataFrame) -> tuple[EventMark, ...]:
    """Return the kinds of events that occurred, in the order of the track."""
    letters = set(marks["letter"])
    return tuple(mark for letter, mark in MARKS.items() if letter in letters)


def row_pixels(rows: int) -> int:
    """Return the height of each of this many rows."""
    return min(ROW_PIXELS, TRACK_PIXELS // rows)


def add_event_track(
    figure: go.Figure,
    marks: pd.DataFrame,
    kinds: tuple[EventMark, ...],
    palette: Palette,
    regrets: pd.DataFrame | None = None,
) -> None:
    """Add the rows of the track on the second vertical axis, the first kind on top.

    Each of the *regrets* is a line from the removal to the turn in which the content was needed again.
    """
    rows = len(kinds)
    if regrets is not None and len(regrets):
        _add_links(figure, regrets, {mark.letter: rows - 1 - index for index, mark in enumerate(kinds)}, palette)
    for index, mark in enumerate(kinds):
        of_kind = marks[marks["letter"] == mark.letter]
        of_kind = of_kind.loc[of_kind["number"].nlargest(MAXIMUM_MARKS).index].sort_values("turn")
        _add_row(figure, of_kind, mark, rows - 1 - index, palette)
    figure.update_layout(
        yaxis2=axis(
            palette,
            anchor="x",
            range=(-0.6, rows - 0.4),
            tickvals=list(range(rows)),
            ticktext=[mark.label for mark in reversed(kinds)],
            side="right",
            gridcolor=palette.grid,
            ticklabelstandoff=6,
            tickfont={"color": palette.muted, "size": min(11, row_pixels(rows) - 1)},
        )
    )


def _add_links(figure: go.Figure, regrets: pd.DataFrame, rows: dict[str, int], palette: Palette) -> None:
    largest = regrets.loc[regrets["tokens"].nlargest(MAXIMUM_LINKS).index]
    start = largest["cause"].map({"eviction": rows.get("R"), "compression": rows.get("C")}).astype("float64")
    gap = np.full(len(largest), np.nan)
    end = np.full(len(largest), float(rows["N"])) if "N" in rows else gap
    figure.add_scatter(
        x=np.column_stack([largest["turn_left"], largest["turn"], gap]).ravel(),
        y=np.column_stack([start, end, gap]).ravel(),
        yaxis="y2", mode="lines", name="removed, then needed again", hoverinfo="skip",
        line={"color": palette.accent, "width": 1.4},
    )  # fmt: skip


def _add_row(figure: go.Figure, of_kind: pd.DataFrame, mark: EventMark, row: int, palette: Palette) -> None:
    opaque = {"marker": {"opacity": 1}}
    figure.add_scatter(
        x=of_kind["turn"].to_numpy(),
        y=np.full(len(of_kind), row),
        yaxis="y2",
        name=mark.label,
        showlegend=False,
        cliponaxis=False,
        mode="markers",
        marker={
            "size": DOT_PIXELS,
            "color": palette.severities[mark.severity] if mark.severity else palette.event,
            "opacity": 1,
            "line": {"color": palette.background, "width": 1},  # marks that overlap stay apart
        },
        selected=opaque,
        unselected=opaque,
        hovertext=[
            escape_label(f"turn {turn}, {mark.label}:\n{text}")
            for turn, text in zip(of_kind["turn"], of_kind["text"], strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
