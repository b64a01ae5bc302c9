"""One recorded session under several setups: the size of each call, one pane above the other on the same axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import plotly.graph_objects as go

from windowpane.store.replays import ReplayRunRow
from windowpane.text.formats import tokens, tokens_short
from windowpane_dashboard.charts.layout import apply_layout, axis, axis_title, escape_label
from windowpane_dashboard.queries.replays import setup_title
from windowpane_dashboard.style.theme import Palette, translucent

PANE_PIXELS: Final = 120
GAP_PIXELS: Final = 34
MAXIMUM_PANES: Final = 12


def replay_panes(runs: Sequence[ReplayRunRow], palette: Palette) -> go.Figure:
    """Draw one pane per run with its window's limit as a line; at most twelve."""
    panes = list(runs)[:MAXIMUM_PANES]
    inner = len(panes) * (PANE_PIXELS + GAP_PIXELS)
    top = 1.05 * max([*(run.limit_tokens for run in panes), *(max(run.timeline, default=0) for run in panes), 1])
    last = max((_calls(run) for run in panes), default=1)
    figure = go.Figure()
    for index, run in enumerate(panes):
        _add_pane(figure, run, index, palette)
    apply_layout(
        figure, palette, height=inner + 48, hovermode="closest", margin={"l": 64, "r": 16, "t": 8, "b": 40}
    )
    layout = {}
    for index, run in enumerate(panes):
        bottom_pixels = (len(panes) - 1 - index) * (PANE_PIXELS + GAP_PIXELS)
        low, high = bottom_pixels / inner, (bottom_pixels + PANE_PIXELS) / inner
        number = "" if index == 0 else str(index + 1)
        layout[f"yaxis{number}"] = axis(
            palette,
            domain=(low, high),
            range=(0, top),
            tickformat="~s",
            title=axis_title("tokens", palette),
            anchor="x",
            nticks=4,
        )
        figure.add_annotation(
            x=0, xref="paper", y=high, yref="paper", text=escape_label(setup_title(run)), showarrow=False,
            xanchor="left", yanchor="bottom", font={"size": 12, "color": palette.text},
        )  # fmt: skip
        figure.add_annotation(
            x=1, xref="paper", y=run.limit_tokens, yref=f"y{number}", showarrow=False, xanchor="right",
            yanchor="bottom", text=f"limit {tokens_short(run.limit_tokens)} tokens",
            font={"size": 11, "color": palette.zone_text["red"]},
        )  # fmt: skip
    bottom = f"y{len(panes)}" if len(panes) > 1 else "y"
    layout["xaxis"] = axis(
        palette, range=(0.5, last + 0.5), title=axis_title("call", palette), showgrid=False, anchor=bottom,
        tickformat=",d", fixedrange=False,
    )  # fmt: skip
    figure.update_layout(**layout)
    return figure


def _calls(run: ReplayRunRow) -> int:
    return int(run.measures.get("turns") or len(run.timeline))


def _add_pane(figure: go.Figure, run: ReplayRunRow, index: int, palette: Palette) -> None:
    calls = _calls(run)
    turn = np.linspace(1, max(calls, 1), len(run.timeline))
    color = palette.components["message_history"]
    limit = run.limit_tokens
    pane = {"yaxis": "y" if index == 0 else f"y{index + 1}", "showlegend": False}
    figure.add_scatter(
        x=turn, y=np.array(run.timeline), mode="lines", name=setup_title(run), fill="tozeroy", **pane,
        line={"width": 0.8, "color": color}, fillcolor=translucent(color, 0.6),
        hovertext=[escape_label(f"{setup_title(run)}\ncall {round(at)}: {tokens(size)} of {tokens(limit)} tokens")
                   for at, size in zip(turn, run.timeline, strict=True)],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=np.array([0.5, calls + 0.5]), y=np.array([limit, limit]), mode="lines", name="limit", hoverinfo="skip",
        line={"width": 1.4, "color": palette.zones["red"]}, **pane,
    )  # fmt: skip
