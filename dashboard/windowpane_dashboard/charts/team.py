"""A team of agents on one time axis: a bar from start to end of each session, children below their parent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Final

import plotly.graph_objects as go

from windowpane.text.formats import count, dollars, local, percent
from windowpane.text.zones import zone_label
from windowpane_dashboard.charts.layout import apply_layout, axis, axis_title, escape_label
from windowpane_dashboard.queries.events import utc_times
from windowpane_dashboard.queries.team import Member
from windowpane_dashboard.queries.titles import session_title
from windowpane_dashboard.style.theme import Palette

ROW_PIXELS: Final = 26
MAXIMUM_ROWS: Final = 40
LABEL: Final = 18


def team_chart(team: Sequence[Member], palette: Palette, zone: tzinfo) -> go.Figure | None:
    """Draw at most 40 members that have times; None without any."""
    drawn = [member for member in team if member.row.started_at is not None and member.row.last_at is not None]
    drawn = drawn[:MAXIMUM_ROWS]
    if not drawn:
        return None
    starts = utc_times([member.row.started_at for member in drawn]).dt.tz_convert(zone)
    ends = utc_times([member.row.last_at for member in drawn]).dt.tz_convert(zone)
    positions = list(range(len(drawn)))[::-1]
    figure = go.Figure()
    for member, start, end, position in zip(drawn, starts, ends, positions, strict=True):
        row = member.row
        color = palette.muted if row.worst_zone is None else palette.zones[row.worst_zone]
        cost = dollars(row.cost_dollars, estimated=row.is_cost_estimated)
        text = (
            f"{session_title(row)}\n{row.agent}, {row.model}\n{count(row.turns, 'turn')}, worst "
            f"{zone_label(row.worst_zone)}, peak {percent(row.peak_utilization)}, {cost}\n"
            f"from {local(row.started_at, zone=zone)}"
        )
        figure.add_scatter(
            x=[start.tz_localize(None), end.tz_localize(None)], y=[position, position], mode="lines+markers",
            line={"color": color, "width": 12 if not member.depth else 8}, showlegend=False,
            marker={"size": 6, "color": color}, hovertext=[escape_label(text)] * 2,
            hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip
    labels = [escape_label(_label(member)) for member in drawn]
    apply_layout(
        figure, palette, height=ROW_PIXELS * len(drawn) + 60, hovermode="closest",
        margin={"l": 136, "r": 16, "t": 8, "b": 44},
    )  # fmt: skip
    figure.update_layout(
        xaxis=axis(palette, title=axis_title("time", palette)),
        yaxis=axis(palette, tickvals=positions, ticktext=labels, range=(-0.7, len(drawn) - 0.3), showgrid=False),
    )
    return figure


def _label(member: Member) -> str:
    title = session_title(member.row)
    cut = title if len(title) <= LABEL else f"{title[: LABEL - 1]}…"
    return f"{'└ ' if member.depth else ''}{cut}"
