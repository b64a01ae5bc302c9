"""The event lane below the window's picture: one row for each kind of event, a letter in every mark."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.core.vocabulary import Severity
from windowpane.text.labels import MARKS, Mark
from windowpane_dashboard.charts.layout import axis, plain
from windowpane_dashboard.style.theme import Palette

LANE_PIXELS: Final = 24
LETTERED: Final = 60
"""Marks of one row up to which each carries its letter; beyond, they would cover each other."""
MAXIMUM_MARKS: Final = 2_000
MAXIMUM_THREADS: Final = 300
"""Threads from a regret to its cause; the largest ones."""


def event_kinds(marks: pd.DataFrame) -> tuple[Mark, ...]:
    """The kinds of events that occurred, in the order of the lane."""
    found = set(marks["letter"])
    return tuple(mark for letter, mark in MARKS.items() if letter in found)


def add_event_track(
    figure: go.Figure,
    marks: pd.DataFrame,
    lanes: tuple[Mark, ...],
    palette: Palette,
    regrets: pd.DataFrame | None = None,
) -> None:
    """Add the rows of the lane on the second vertical axis, the first kind on top.

    Each of the *regrets* is a thread from the re-fetch to the eviction or compression that caused it.
    """
    rows = len(lanes)
    if regrets is not None and len(regrets):
        _add_threads(
            figure, regrets, {mark.letter: rows - 1 - place for place, mark in enumerate(lanes)}, palette
        )
    for place, mark in enumerate(lanes):
        of_kind = marks[marks["letter"] == mark.letter].sort_values("turn")
        _add_row(figure, _at_most(of_kind), mark, rows - 1 - place, palette)
    figure.update_layout(
        yaxis2=axis(
            palette,
            anchor="x",
            range=(-0.6, rows - 0.4),
            tickvals=list(range(rows)),
            ticktext=[f"{mark.letter} {mark.word}" for mark in reversed(lanes)],
            gridcolor=palette.grid,
        )
    )


def _add_threads(figure: go.Figure, regrets: pd.DataFrame, rows: dict[str, int], palette: Palette) -> None:
    shown = regrets.loc[regrets["tokens"].nlargest(MAXIMUM_THREADS).index]
    begin = shown["cause"].map({"eviction": rows.get("E"), "compression": rows.get("C")}).astype("float64")
    gap = np.full(len(shown), np.nan)
    end = np.full(len(shown), float(rows["R"])) if "R" in rows else gap
    figure.add_scatter(
        x=np.column_stack([shown["turn_left"], shown["turn"], gap]).ravel(),
        y=np.column_stack([begin, end, gap]).ravel(),
        yaxis="y2", mode="lines", name="needed again", showlegend=False, hoverinfo="skip",
        line={"color": palette.accent, "width": 1.4},
    )  # fmt: skip


def _at_most(of_kind: pd.DataFrame) -> pd.DataFrame:
    """Evenly fewer marks where there are too many to draw; those that stand for most stay."""
    if len(of_kind) <= MAXIMUM_MARKS:
        return of_kind
    return of_kind.loc[of_kind["number"].nlargest(MAXIMUM_MARKS).index].sort_values("turn")


def _add_row(figure: go.Figure, of_kind: pd.DataFrame, mark: Mark, row: int, palette: Palette) -> None:
    lettered = len(of_kind) <= LETTERED
    colors = [_color(severity, palette) for severity in of_kind["severity"]]
    seen = {"marker": {"opacity": 1}}
    rim = {"color": palette.background, "width": 1}  # marks that overlap stay apart
    figure.add_scatter(
        x=of_kind["turn"].to_numpy(),
        y=np.full(len(of_kind), row),
        yaxis="y2",
        name=mark.word,
        showlegend=False,
        mode="markers+text" if lettered else "markers",
        marker={"size": 17 if lettered else 8, "color": colors, "symbol": "circle", "opacity": 1, "line": rim},
        text=[mark.letter] * len(of_kind) if lettered else None,
        textfont={"color": palette.on_event, "size": 10, "weight": 700},
        selected={**seen, "textfont": {"color": palette.on_event}},
        unselected={**seen, "textfont": {"color": palette.on_event}},
        hovertext=[
            plain(f"turn {turn}, {mark.word}:\n{text}")
            for turn, text in zip(of_kind["turn"], of_kind["text"], strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _color(severity: str, palette: Palette) -> str:
    known: dict[str, Severity] = {"info": "info", "warning": "warning", "critical": "critical"}
    return palette.severities[known[severity]] if severity in known else palette.event
