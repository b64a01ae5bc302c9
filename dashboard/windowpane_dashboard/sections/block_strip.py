"""The window at one turn as a strip: every block in the order the model saw it, as wide as its tokens.

A component instead of a Plotly figure: the strip is drawn again at every step of the turn slider, and a row of
rectangles is drawn many times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from windowpane.core.vocabulary import Component
from windowpane.text.formats import tokens, tokens_short
from windowpane_dashboard.style.sanitize import sanitized
from windowpane_dashboard.style.theme import FONT, Palette

KEY: Final = "strip"
PIXELS: Final = 92
MAXIMUM_BLOCKS: Final = 800
"""Segments drawn; beyond, the smallest neighbors of one component are joined."""
TEXT_LENGTH: Final = 160
"""Characters of each line of a tooltip."""
TICKS: Final = 6
"""Approximate number of ticks."""

MARKUP: Final = """
<div class="strip" role="img">
  <div class="blocks"></div>
  <div class="axis"></div>
  <div class="tooltip" popover="manual"></div>
</div>
"""

STYLE: Final = f"""
.strip {{ position: relative; height: {PIXELS}px; padding: 4px 8px 0; box-sizing: border-box;
  font: 11px {FONT}; font-variant-numeric: tabular-nums; }}
.blocks {{ position: relative; height: 56px; cursor: pointer; }}
.blocks i {{ position: absolute; top: 0; bottom: 0; box-sizing: border-box; }}
.blocks .limit {{ background: none; pointer-events: none; border: 1.2px solid; }}
.axis {{ position: relative; height: 26px; }}
.axis span {{ position: absolute; top: 8px; transform: translateX(-50%); white-space: nowrap; }}
.axis span:first-child {{ transform: none; }}
.tooltip {{ position: fixed; margin: 0; inset: auto; padding: 4px 7px; border: 1px solid; max-width: 560px;
  white-space: pre-line; overflow-wrap: anywhere; font: 12px {FONT}; pointer-events: none; }}
"""

_mount: Final = st.components.v2.component(
    "windowpane_block_strip", html=MARKUP, css=STYLE, js=Path(__file__).with_suffix(".js").read_text()
)


def block_strip(strip: Strip, palette: Palette, *, alt: str, on_select: Callable[[str], None]) -> None:
    """Draw *strip*; *alt* describes it to screen readers. A click calls *on_select* with the id of the block."""

    def on_click() -> None:
        chosen = st.session_state[KEY].chosen
        if isinstance(chosen, str) and chosen in strip.ids:
            on_select(chosen)

    look = {
        "background": palette.background,
        "outline": palette.outline,
        "muted": palette.muted,
        "text": palette.text,
    }
    data = {"strip": asdict(strip), "look": look, "alt": alt}
    _mount(key=KEY, data=data, height=PIXELS, on_chosen_change=on_click)


@dataclass(frozen=True, slots=True)
class Strip:
    """The rectangles of a strip, from left to right without gaps; sizes and positions in tokens."""

    ids: list[str]
    """The block of each; of a run, the first."""
    sizes: list[int]
    colors: list[str]
    texts: list[str]
    """The tooltip of each, in lines; text of an agent, so sanitized and never markup."""
    end: float
    """The end of the axis."""
    limit_tokens: float | None
    """The end of the outline; None while the limit is unknown."""
    ticks: list[tuple[float, str]]


def window_strip(blocks: pd.DataFrame, palette: Palette, *, limit_tokens: float | None) -> Strip:
    """Return the strip of the blocks of `window_frame`; the room up to *limit_tokens* stays empty."""
    visible = segments(blocks)
    end = max(float(sum(segment.tokens for segment in visible)), limit_tokens or 0.0, 1.0)
    return Strip(
        ids=[segment.block for segment in visible],
        sizes=[segment.tokens for segment in visible],
        colors=[palette.components[segment.component] for segment in visible],
        texts=[segment.text for segment in visible],
        end=end,
        limit_tokens=limit_tokens,
        ticks=[(at, tokens_short(at)) for at in ticks(end)],
    )


def ticks(end: float) -> list[float]:
    """Return round numbers from 0 to *end*, evenly spaced: steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(end / TICKS))
    step = next((size * power for size in (1, 2, 5) if end / (size * power) <= TICKS), 10 * power)
    return [float(at) for at in np.arange(0, end + step / 1e6, max(step, 1.0))]


@dataclass(frozen=True, slots=True)
class Segment:
    """One block, or a run of small ones of one component."""

    component: Component
    tokens: int
    text: str
    block: str
    """Id of the first block."""
    blocks: int = 1


def segments(blocks: pd.DataFrame) -> list[Segment]:
    """Return the blocks of `window_frame` in order, runs of small ones joined down to `MAXIMUM_BLOCKS`."""
    joined_segments = [
        Segment(row["component"], int(row["tokens"]), _text(row), str(row["block"]))
        for row in blocks.to_dict(orient="records")
    ]
    small, total = 1, sum(segment.tokens for segment in joined_segments)
    while len(joined_segments) > MAXIMUM_BLOCKS and small <= 2 * total + 1:
        small *= 4
        joined_segments = _joined(joined_segments, small)
    return joined_segments


def _joined(joined_segments: list[Segment], small: int) -> list[Segment]:
    merged = joined_segments[:1]
    for segment in joined_segments[1:]:
        before = merged[-1]
        if before.component == segment.component and min(before.tokens, segment.tokens) < small:
            size, number = before.tokens + segment.tokens, before.blocks + segment.blocks
            text = f"{number} items, {tokens(size)} tokens"
            merged[-1] = Segment(segment.component, size, text, before.block, number)
        else:
            merged.append(segment)
    return merged


def _text(row: dict[Hashable, Any]) -> str:
    lines = [
        f"{row['what']}, {tokens(row['tokens'], estimated=row['count'] == 'estimate')} tokens",
        f"added at turn {row['from turn']}",
    ]
    if row["pinned"]:
        lines.append("pinned: never removed")
    if row["preview"]:
        lines.append(str(row["preview"]))
    return "\n".join(sanitized(line, length=TEXT_LENGTH) for line in lines)
