"""The limit, the zone bands behind the content, the reserve, and the forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import ZONES, Zone
from windowpane.report.level_labels import level_label, separated
from windowpane_dashboard.queries.timeline import LimitSpan
from windowpane_dashboard.style.theme import Palette, translucent

MAXIMUM_SPANS: Final = 100
AHEAD_SHARE: Final = 0.25
"""The forecast extends over at most this share of the turns, and at least three turns."""
LABEL_SHARE: Final = 0.09
"""Minimum distance between labels next to the chart, as a share of its height."""

LEADER_PIXELS: Final = 12
"""The line from a level at the edge of the chart to its label."""


def zone_starts(limits: WindowLimits) -> dict[Zone, int]:
    """Return the start of each zone except green, in tokens."""
    zones = limits.thresholds
    return {
        "yellow": limits.at(zones.yellow),
        "orange": limits.at(zones.orange),
        "red": limits.at(zones.red),
        "overflow": limits.overflow_tokens,
    }


def add_limits(
    figure: go.Figure,
    spans: Sequence[LimitSpan],
    turns: pd.DataFrame,
    palette: Palette,
    *,
    first: float,
    end: float,
    top: float,
) -> None:
    """Add zones, reserve and limit for the turns of each limit, and the level of compaction."""
    drawn = spans[-MAXIMUM_SPANS:]
    for index, span in enumerate(drawn):
        start = max(first, span.first_turn - 0.5) if index else first
        stop = drawn[index + 1].first_turn - 0.5 if index + 1 < len(drawn) else end
        if span.limits is not None and stop > start:
            _add_span(figure, span.limits, palette, start=start, stop=stop, top=top)
    _add_compaction(figure, turns, palette, top=top)
    if drawn and drawn[-1].limits is not None:
        compaction = float(turns["compaction_tokens"].iloc[-1])
        _add_labels(figure, drawn[-1].limits, compaction, palette, top=top)


def _add_span(
    figure: go.Figure, limits: WindowLimits, palette: Palette, *, start: float, stop: float, top: float
) -> None:
    starts = [*zone_starts(limits).items()]
    for (zone, low), high in zip(starts, [low for _, low in starts[1:]] + [limits.limit_tokens], strict=True):
        if low < top:
            figure.add_shape(
                type="rect", x0=start, x1=stop, y0=low, y1=min(high, top), layer="below", line_width=0,
                fillcolor=translucent(palette.zones[zone], 0.09), name=f"zone {zone}",
            )  # fmt: skip
    lines = (
        ("limit", limits.limit_tokens, palette.outline, "solid", 1.6),
        *((zone, start, palette.zones[zone], "dot", 1.2) for zone, start in starts if zone != "overflow"),
    )
    for name, height, color, dash, width in lines:
        if height <= top:
            figure.add_scatter(
                x=np.array([start, stop]), y=np.array([height, height]), mode="lines", name=name,
                showlegend=False, hoverinfo="skip", line={"color": color, "dash": dash, "width": width},
            )  # fmt: skip
    if limits.usable_tokens < top:
        _add_reserve(figure, limits, palette, start=start, stop=stop)


def _add_compaction(figure: go.Figure, turns: pd.DataFrame, palette: Palette, *, top: float) -> None:
    """Add the level at which the agent compacts, from the turn on at which it was known."""
    level = turns["compaction_tokens"]
    level = level[(level <= top) & (level < turns["limit_tokens"])]
    level = level[level.ne(level.shift()) | level.ne(level.shift(-1))]
    if len(level):
        figure.add_scatter(
            x=turns["turn"][level.index].to_numpy(), y=level.to_numpy(), mode="lines", name="compaction",
            showlegend=False, hoverinfo="skip",
            line={"color": palette.text, "dash": "dash", "width": 1.4, "shape": "hv"},
        )  # fmt: skip


def _add_reserve(figure: go.Figure, limits: WindowLimits, palette: Palette, *, start: float, stop: float) -> None:
    low, high = limits.usable_tokens, limits.limit_tokens
    first = not any(trace.legendgroup == "reserve" for trace in figure.data)
    figure.add_scatter(
        x=np.array([start, stop, stop, start, start]), y=np.array([low, low, high, high, low]),
        mode="lines", fill="toself", name="room for the reply", legendgroup="reserve", showlegend=first,
        hoverinfo="skip", line={"width": 0, "color": palette.outline}, fillcolor="rgba(0,0,0,0)",
        fillpattern={
            "shape": "/", "size": 7, "solidity": 0.12, "fgcolor": translucent(palette.outline, 0.7),
            "bgcolor": "rgba(0,0,0,0)",
        },
    )  # fmt: skip


def _add_labels(
    figure: go.Figure, limits: WindowLimits, compaction: float, palette: Palette, *, top: float
) -> None:
    """Add the names of the levels at the right edge, in order; the limit also where it is above the chart."""
    starts, step = zone_starts(limits), LABEL_SHARE * top
    labeled = [
        ("limit", limits.limit_tokens, palette.text),
        ("compaction", compaction, palette.text),
        *((zone, starts[zone], palette.zone_text[zone]) for zone in ZONES[1:4]),
    ]
    labeled = [label for label in labeled if label[1] <= top or label[0] == "limit"]
    heights = separated([level for _, level, _ in labeled], step, low=step / 2, high=top - step / 2)
    for (name, level, color), height in zip(labeled, heights, strict=True):
        text = level_label(name, level) + (" ↑" if level > top else "")
        figure.add_annotation(
            x=1, y=min(level, top), xref="paper", yref="y", text=text, arrowhead=0, arrowwidth=1,
            ax=LEADER_PIXELS, ay=height, ayref="y", arrowcolor=color, standoff=0, xanchor="left",
            font={"size": 11, "color": color},
        )  # fmt: skip


def forecast_turns(turns: pd.DataFrame) -> int:
    """Return the number of forecast turns to draw after the last one: 0 without a forecast."""
    last = turns.iloc[-1]
    if np.isnan(last["ahead_tokens"]) or last["used"] >= last["ahead_tokens"]:
        return 0
    late, early = last["ahead_p90"], last["ahead_p10"]
    if np.isnan(early) or np.isinf(early):
        return 0
    room = max(3, int(len(turns) * AHEAD_SHARE))
    return int(min(room, np.ceil(late))) if np.isfinite(late) else room


def add_forecast(figure: go.Figure, last: pd.Series, palette: Palette, *, turns_ahead: int) -> None:
    """Add the 10–90 fan from the last turn towards the next event, and its median."""
    if not turns_ahead:
        return
    here, size, level = float(last["turn"]), float(last["used"]), float(last["ahead_tokens"])
    early = _towards(size, level, last["ahead_p10"], turns_ahead)
    late = _towards(size, level, last["ahead_p90"], turns_ahead)
    color = palette.outline
    figure.add_scatter(
        x=np.array([here, *(here + early[0]), *(here + late[0][::-1]), here]),
        y=np.array([size, *early[1], *late[1][::-1], size]),
        mode="lines", fill="toself", line={"width": 0.8, "color": color, "dash": "dot"},
        fillcolor=translucent(color, 0.22), name="forecast", hoverinfo="skip",
    )  # fmt: skip
    median = last["ahead"]
    if np.isfinite(median) and median > 0:
        ahead, heights = _towards(size, level, median, turns_ahead)
        figure.add_scatter(
            x=np.array([here, *(here + ahead)]), y=np.array([size, *heights]), mode="lines", showlegend=False,
            hoverinfo="skip", line={"width": 1.4, "color": color, "dash": "dash"}, name="forecast",
        )  # fmt: skip


def _towards(size: float, level: float, turns: float, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the straight line from *size* to *level* in *turns*, then along it, as far as *horizon*."""
    if np.isinf(turns):
        return np.array([float(horizon)]), np.array([size])
    if turns >= horizon:
        return np.array([float(horizon)]), np.array([size + (level - size) * horizon / turns])
    return np.array([turns, float(horizon)]), np.array([level, level])
