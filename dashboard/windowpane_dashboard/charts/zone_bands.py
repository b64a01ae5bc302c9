"""The limit, the zone bands behind the content, the reserve, and the forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import Zone
from windowpane.text.formats import tokens_short
from windowpane.text.zones import ZONE_SHAPES
from windowpane_dashboard.queries.timeline import LimitSpan
from windowpane_dashboard.style.theme import Palette, translucent

MAXIMUM_SPANS: Final = 100
AHEAD_SHARE: Final = 0.25
"""The forecast extends over at most this share of the turns, and at least three turns."""
LABEL_SHARE: Final = 0.09
"""Minimum distance between labels next to the chart, as a share of its height."""


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
    """Add zone bands, reserve, the lines of red and the limit for the turns of each limit, and of compaction."""
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
        ("red", zone_starts(limits)["red"], palette.zones["red"], "dot", 1.4),
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
    """Add the names of limit, compaction and zones at the right edge, the most important at their heights."""
    starts, step = zone_starts(limits), LABEL_SHARE * top
    above_red = min(starts["red"] + step, top)
    wanted: list[tuple[float, str, str]] = [
        (max(limits.limit_tokens, above_red), f"limit {tokens_short(limits.limit_tokens)}", palette.text),
        (compaction, f"compacts at {tokens_short(compaction)}", palette.text),
    ]
    for zone in ("red", "orange", "yellow"):
        text = f"{ZONE_SHAPES[zone]} {zone} {tokens_short(starts[zone])}"
        wanted.append((starts[zone], text, palette.zone_text[zone]))
    heights: list[float] = []
    for height, text, color in wanted:
        near = (height + shift * step for shift in (0, -1, 1, -2, 2))
        free = [y for y in near if all(abs(y - other) >= 0.99 * step for other in heights)]
        if height <= top and free:
            heights.append(free[0])
            figure.add_annotation(
                x=1, y=free[0], xref="paper", yref="y", text=text, showarrow=False, xanchor="left", xshift=6,
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
