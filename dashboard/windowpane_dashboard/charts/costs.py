"""Input of each call by cache state, and its cost."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.text.formats import dollars, percent, tokens
from windowpane_dashboard.charts.downsample import downsampled_rows
from windowpane_dashboard.charts.layout import apply_layout, axis, axis_title, escape_label
from windowpane_dashboard.style.theme import Palette, translucent

_PARTS: Final = (
    ("cache_read_tokens", "read from the cache", 0.25),
    ("cache_write_tokens", "written to the cache", 0.55),
    ("fresh_tokens", "uncached", 0.95),
)
"""Column, label and opacity: the more expensive, the stronger."""


SMALL_POINTS: Final = 600
"""Points per trace: these charts are half as wide as the window's."""
MAXIMUM_BARS: Final = 300
"""Turns drawn as bars; beyond, where a bar would be thinner than a pixel or two, as an area."""


def cache_chart(turns: pd.DataFrame, palette: Palette) -> go.Figure | None:
    """Draw the input tokens of each call by cache state; None where no call reported its usage."""
    names = [name for name, _, _ in _PARTS]
    reported = turns[turns["input_tokens"].notna()]
    if reported.empty:
        return None
    sampled = reported.iloc[downsampled_rows(reported[names].to_numpy(dtype=float), SMALL_POINTS)]
    figure = go.Figure()
    for name, label, opacity in _PARTS:
        values = np.nan_to_num(sampled[name].to_numpy(dtype=float))
        if values.any():
            _add_area(figure, sampled["turn"], values, label, translucent(palette.accent, opacity), stacked=True)
    total = sampled[names].sum(axis=1)
    texts = [
        escape_label(
            f"turn {turn}: {tokens(size)} tokens in\n{percent(read / size if size else None)} from the cache"
        )
        for turn, size, read in zip(
            sampled["turn"], total, np.nan_to_num(sampled["cache_read_tokens"].to_numpy(dtype=float)), strict=True
        )
    ]
    _add_touch(figure, sampled["turn"], total, texts)
    return _finished(figure, palette, "input tokens per call", legend=True)


def cost_chart(turns: pd.DataFrame, palette: Palette) -> go.Figure | None:
    """Draw the dollars of each call; None where no price is known."""
    reported = turns[turns["cost_dollars"].notna()]
    if reported.empty or not reported["cost_dollars"].any():
        return None
    sampled = reported.iloc[downsampled_rows(reported[["cost_dollars"]].to_numpy(dtype=float), SMALL_POINTS)]
    figure = go.Figure()
    values = sampled["cost_dollars"].to_numpy(dtype=float)
    _add_area(figure, sampled["turn"], values, "cost", translucent(palette.accent, 0.75), stacked=False)
    texts = [
        escape_label(f"turn {turn}: {dollars(value, estimated=is_estimated)}")
        for turn, value, is_estimated in zip(
            sampled["turn"], values, sampled["recorded_output_tokens"].notna(), strict=True
        )
    ]
    _add_touch(figure, sampled["turn"], sampled["cost_dollars"], texts)
    return _finished(figure, palette, "dollars per call", legend=False, tickprefix="$")


def _add_area(
    figure: go.Figure, turn: pd.Series, values: np.ndarray, label: str, color: str, *, stacked: bool
) -> None:
    if turn.iloc[-1] - turn.iloc[0] < MAXIMUM_BARS:
        figure.add_bar(x=turn.to_numpy(), y=values, name=label, hoverinfo="skip", marker={"color": color})
        return
    figure.add_scatter(
        x=turn.to_numpy(), y=values, name=label, hoverinfo="skip",
        mode="lines", line={"width": 0, "color": color, "shape": "hvh"},
        fillcolor=color, **({"stackgroup": "one"} if stacked else {"fill": "tozeroy"}),
    )  # fmt: skip


def _add_touch(figure: go.Figure, turn: pd.Series, heights: pd.Series, texts: list[str]) -> None:
    figure.add_scatter(
        x=turn.to_numpy(), y=heights.to_numpy(dtype=float), mode="lines", showlegend=False,
        line={"width": 0}, hovertext=texts, hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip


def _finished(
    figure: go.Figure, palette: Palette, title: str, *, legend: bool, tickprefix: str = ""
) -> go.Figure:
    apply_layout(
        figure, palette, height=230, barmode="stack", bargap=0.08, showlegend=legend,
        margin={"l": 60, "r": 12, "t": 30, "b": 34},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
    )  # fmt: skip
    figure.update_layout(
        xaxis=axis(
            palette, title=axis_title("turn", palette), showgrid=False, tickformat=",d", range=_range(figure)
        ),
        yaxis=axis(
            palette, title=axis_title(title, palette), rangemode="tozero", tickprefix=tickprefix,
            tickformat="" if tickprefix else "~s",
        ),
    )  # fmt: skip
    return figure


def _range(figure: go.Figure) -> tuple[float, float]:
    """Return the range from half a turn before the first to half a turn after the last."""
    turns = figure.data[-1].x
    return float(turns[0]) - 0.5, float(turns[-1]) + 0.5
