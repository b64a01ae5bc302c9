"""The window of a session turn by turn: components stacked against the limit, events below.

Two panes share the turns as their horizontal axis. The upper one stacks the components under the limit, with the
zones behind them and the forecast after the last turn; the lower one is the event track. Only one trace of each
pane can be hovered and selected, so that a click anywhere in a turn's column selects that turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.text.formats import percent, tokens
from windowpane.text.labels import COMPONENT_LABELS
from windowpane.text.palette import STACKING
from windowpane.text.zones import zone_label
from windowpane_dashboard.charts.downsample import downsampled_rows
from windowpane_dashboard.charts.event_track import add_event_track, event_kinds, row_pixels
from windowpane_dashboard.charts.layout import apply_layout, axis, axis_title, escape_label
from windowpane_dashboard.charts.zone_bands import add_forecast, add_limits, forecast_turns
from windowpane_dashboard.queries.timeline import LimitSpan
from windowpane_dashboard.style.theme import Palette, translucent

Scale = Literal["limit", "content"]
"""The top of the chart: the limit, or the content."""

AREA_PIXELS: Final = 190
GAP_PIXELS: Final = 6
INNER_PIXELS: Final = 262
"""Both panes together at most: the upper one makes room for the rows of the lower."""
SMALL_SHARE: Final = 0.25
"""Below this share of the limit the content is too flat to read at the limit's scale."""
MAXIMUM_DROPS: Final = 400
TOUCH_POINTS: Final = 800
"""Points that can be hovered and clicked: about one per pixel of the chart."""
MARK_SHARE: Final = 0.01
"""Half of a mark of the event track, of the width of a chart on a narrow screen."""


@dataclass(frozen=True, slots=True)
class SharedAxes:
    """The axes that several charts share: turns and tokens."""

    first: int
    last: int
    top: float

    @classmethod
    def around(cls, *several: pd.DataFrame, ahead: int = 0) -> SharedAxes:
        """Return axes that fit all of the turns and *ahead* more, at the scale of the fullest."""
        sampled = [turns for turns in several if len(turns)]
        content = any(natural_scale(turns) == "limit" for turns in sampled)
        return cls(
            first=min(int(turns["turn"].iloc[0]) for turns in sampled),
            last=max(int(turns["turn"].iloc[-1]) for turns in sampled) + ahead,
            top=max(_top(turns, "limit" if content else "content") for turns in sampled),
        )


def natural_scale(turns: pd.DataFrame) -> Scale:
    """Return the scale at which the chart is readable: the limit's, unless the content is much smaller."""
    peak, limit = turns["used"].max(), _limit(turns)
    return "limit" if np.isnan(limit) or peak >= SMALL_SHARE * limit else "content"


def window_chart(
    turns: pd.DataFrame,
    spans: Sequence[LimitSpan],
    marks: pd.DataFrame,
    palette: Palette,
    *,
    axes: SharedAxes | None = None,
    regrets: pd.DataFrame | None = None,
    forecast: bool = True,
) -> go.Figure:
    """Draw one session; *turns* has at least one row.

    *axes* gives several charts the same axes. A session that is over has no *forecast*.
    """
    columns = ["used", "used_before", "limit_tokens", *STACKING]
    sampled = turns.iloc[downsampled_rows(turns[columns].to_numpy(dtype=float))]
    last = int(turns["turn"].iloc[-1])
    ahead = forecast_turns(turns) if forecast else 0
    x_range = _x_range(int(turns["turn"].iloc[0]), last + ahead)
    top = _top(turns, natural_scale(turns))
    if axes is not None:
        x_range, top = _x_range(axes.first, axes.last), axes.top
    figure = go.Figure()
    add_limits(figure, spans, turns, palette, first=x_range[0], end=x_range[1], top=top)
    _add_components(figure, sampled, palette)
    _add_drops(figure, turns, palette)
    add_forecast(figure, turns.iloc[-1], palette, turns_ahead=ahead)
    _add_touch(figure, sampled, palette)
    tracks = event_kinds(marks)
    if tracks:
        add_event_track(figure, marks, tracks, palette, regrets)
    return _arranged(figure, palette, tracks=len(tracks), x_range=x_range, top=top)


def _x_range(first: int, last: int) -> tuple[float, float]:
    """Return the range of the turns, with room for half a mark on both sides."""
    margin = max(0.5, MARK_SHARE * (last - first))
    return first - margin, last + margin


def _track_pixels(tracks: int) -> int:
    return tracks * row_pixels(tracks) if tracks else 0


def _inner_pixels(tracks: int) -> int:
    return min(INNER_PIXELS, AREA_PIXELS + (GAP_PIXELS + _track_pixels(tracks) if tracks else 0))


def _ground(tracks: int) -> float:
    """Return the start of the upper pane as a share of the height."""
    return (_track_pixels(tracks) + GAP_PIXELS) / _inner_pixels(tracks) if tracks else 0.0


def _top(turns: pd.DataFrame, scale: Scale) -> float:
    peak = float(np.nanmax(turns[["used", "used_before"]].to_numpy(dtype=float)))
    limit = _limit(turns)
    if scale == "content" or np.isnan(limit):
        return max(peak * 1.12, 1.0)
    return float(max(limit * 1.04, peak * 1.04))


def _limit(turns: pd.DataFrame) -> float:
    """Return the limit that the chart has room for: the last, or the median where higher; NaN if unknown.

    So a few turns of a model with a larger window do not flatten all the others.
    """
    limits = turns["limit_tokens"].dropna()
    return float(max(limits.median(), limits.iloc[-1])) if len(limits) else float("nan")


def _add_components(figure: go.Figure, sampled: pd.DataFrame, palette: Palette) -> None:
    x = sampled["turn"].to_numpy()
    for component in STACKING:
        values = sampled[component].to_numpy()
        if not values.any():
            continue
        color = palette.components[component]
        figure.add_scatter(
            x=x, y=values, name=COMPONENT_LABELS[component], stackgroup="window", hoverinfo="skip",
            mode="lines" if len(x) > 2 else "lines+markers", line={"width": 0.6, "color": color},
            fillcolor=translucent(color, 0.82), legendgroup=component,
        )  # fmt: skip


def _add_drops(figure: go.Figure, turns: pd.DataFrame, palette: Palette) -> None:
    """Add a thin line from the size before a reduction down to the size after it."""
    reduced = turns[turns["used_after"].notna() & (turns["used_before"] > turns["used_after"])]
    if reduced.empty:
        return
    depth = reduced["used_before"] - reduced["used_after"]
    reduced = reduced.loc[depth.nlargest(MAXIMUM_DROPS).index].sort_values("turn")
    gap = np.full(len(reduced), np.nan)
    turn = reduced["turn"].to_numpy(dtype=float)
    figure.add_scatter(
        x=np.column_stack([turn, turn, gap]).ravel(),
        y=np.column_stack([reduced["used_before"], reduced["used_after"], gap]).ravel(),
        name="removed in the turn", mode="lines", hoverinfo="skip",
        line={"color": palette.text, "width": 1.2, "dash": "dot"},
    )  # fmt: skip


def _add_touch(figure: go.Figure, sampled: pd.DataFrame, palette: Palette) -> None:
    """Add the points that carry the hover text and receive the clicks of the upper pane."""
    unseen = {"marker": {"opacity": 0}}
    sampled = sampled.iloc[downsampled_rows(sampled[["used"]].to_numpy(dtype=float), TOUCH_POINTS)]
    figure.add_scatter(
        x=sampled["turn"].to_numpy(), y=sampled["used"].to_numpy(), mode="markers", name="turn", showlegend=False,
        marker={"size": 9, "opacity": 0, "color": palette.text, "maxdisplayed": 1},
        selected=unseen, unselected=unseen, hovertemplate="%{hovertext}<extra></extra>",
        hovertext=[turn_text(turn) for turn in sampled[_HOVER_COLUMNS].to_dict("records")],
    )  # fmt: skip


_HOVER_COLUMNS: Final = ["turn", "used", "count_source", "utilization", "zone", "added_tokens", *STACKING]


def turn_text(turn: Mapping[Hashable, Any]) -> str:
    """Return the lines of a turn's hover box."""
    size = tokens(turn["used"], estimated=turn["count_source"] == "estimate")
    lines = [f"turn {turn['turn']}: {size} tokens"]
    if not np.isnan(turn["utilization"]):
        lines.append(f"{percent(turn['utilization'])} utilization, {zone_label(turn['zone'])}")
    lines += [
        f"{COMPONENT_LABELS[component]}: {tokens(turn[component])}"
        for component in reversed(STACKING)
        if turn[component]
    ]
    if turn["added_tokens"]:
        lines.append(f"added: {tokens(turn['added_tokens'])}")
    return escape_label("\n".join(lines))


def _arranged(
    figure: go.Figure, palette: Palette, *, tracks: int, x_range: tuple[float, float], top: float
) -> go.Figure:
    margin_top, margin_bottom = 14, 34
    inner, ground = _inner_pixels(tracks), _ground(tracks)
    apply_layout(
        figure, palette, height=inner + margin_top + margin_bottom, clickmode="event",
        margin={"l": 44, "r": 106, "t": margin_top, "b": margin_bottom},
    )  # fmt: skip
    figure.update_layout(
        xaxis=axis(
            palette, range=x_range, fixedrange=False, title=axis_title("turn", palette), showgrid=False,
            anchor="y2" if tracks else "y", tickformat=",d", minallowed=x_range[0], maxallowed=x_range[1],
        ),
        yaxis=axis(
            palette, range=(0, top), domain=(ground, 1.0), tickformat="~s"
        ),
    )  # fmt: skip
    if x_range[1] - x_range[0] < 12:
        figure.update_xaxes(dtick=1)
    if tracks:
        figure.update_layout(
            yaxis2={**figure.layout.yaxis2.to_plotly_json(), "domain": (0, _track_pixels(tracks) / inner)}
        )
    return figure
