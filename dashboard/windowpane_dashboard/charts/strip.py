"""The window at one turn as a strip: every block in the order the model saw it, as wide as its tokens."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from windowpane.formats import tokens
from windowpane.vocabulary import Component
from windowpane_dashboard.charts.layout import axis, plain, styled
from windowpane_dashboard.theme import Palette

MAXIMUM_BLOCKS: Final = 800
"""Segments drawn; beyond, the smallest neighbours of one component are joined."""


def window_strip(blocks: pd.DataFrame, palette: Palette, *, limit_tokens: float | None) -> go.Figure:
    """The strip of the blocks of `window_frame`; the room up to *limit_tokens* stays empty."""
    shown = segments(blocks)
    sizes = np.array([segment.tokens for segment in shown], dtype=float)
    starts = np.concatenate([[0.0], np.cumsum(sizes)[:-1]]) if len(sizes) else sizes
    total = float(sizes.sum())
    end = max(total, limit_tokens or 0.0, 1.0)
    colours = [palette.components[segment.component] for segment in shown]
    figure = go.Figure()
    figure.add_bar(
        x=sizes, base=starts, y=np.zeros(len(sizes)), orientation="h", width=0.9,
        marker={
            "color": colours, "line": {"color": palette.background, "width": 0.6 if len(shown) < 250 else 0}
        },
        hovertext=[plain(segment.text) for segment in shown], hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    if limit_tokens:
        figure.add_shape(
            type="rect", x0=0, x1=limit_tokens, y0=-0.45, y1=0.45,
            line={"color": palette.outline, "width": 1.2},
        )  # fmt: skip
    styled(figure, palette, height=92, margin={"l": 8, "r": 8, "t": 4, "b": 26}, hovermode="closest", bargap=0)
    figure.update_layout(
        xaxis=axis(palette, range=(0, end * 1.002), tickformat="~s", showgrid=False, ticksuffix=" tokens"),
        yaxis=axis(palette, visible=False, range=(-0.5, 0.5)),
    )
    return figure


@dataclass(frozen=True, slots=True)
class Segment:
    """One block, or a run of small ones of one component."""

    component: Component
    tokens: int
    text: str
    blocks: int = 1


def segments(blocks: pd.DataFrame) -> list[Segment]:
    """The blocks of `window_frame` in order; runs of small ones joined until few enough are left."""
    found = [
        Segment(row["component"], int(row["tokens"]), _text(row)) for row in blocks.to_dict(orient="records")
    ]
    small, total = 1, sum(segment.tokens for segment in found)
    while len(found) > MAXIMUM_BLOCKS and small <= 2 * total + 1:
        small *= 4
        found = _joined(found, small)
    return found


def _joined(found: list[Segment], small: int) -> list[Segment]:
    merged = found[:1]
    for segment in found[1:]:
        before = merged[-1]
        if before.component == segment.component and min(before.tokens, segment.tokens) < small:
            size, number = before.tokens + segment.tokens, before.blocks + segment.blocks
            merged[-1] = Segment(segment.component, size, f"{number} blocks, {tokens(size)} tokens", number)
        else:
            merged.append(segment)
    return merged


def _text(row: dict[Hashable, Any]) -> str:
    lines = [
        f"{row['what']}, {tokens(row['tokens'], estimated=row['count'] == 'estimate')} tokens",
        f"from turn {row['from turn']}, {row['age']} turns old, last used: {row['last used']}",
    ]
    if row["pinned"]:
        lines.append("pinned: never removed")
    if row["preview"]:
        lines.append(str(row["preview"]))
    return "\n".join(lines)
