"""Draws the strip of the window's blocks: rectangles, an axis, and a box for what is pointed at."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import streamlit as st

from windowpane_dashboard.charts.block_strip import Strip
from windowpane_dashboard.style.theme import FONT, Palette

PIXELS: Final = 92

MARKUP: Final = """
<div class="strip" role="img">
  <div class="blocks"></div>
  <div class="axis"></div>
  <div class="said" popover="manual"></div>
</div>
"""

STYLE: Final = f"""
.strip {{ position: relative; height: {PIXELS}px; padding: 4px 8px 0; box-sizing: border-box;
  font: 11px {FONT}; font-variant-numeric: tabular-nums; }}
.blocks {{ position: relative; height: 56px; }}
.blocks i {{ position: absolute; top: 0; bottom: 0; box-sizing: border-box; }}
.blocks .limit {{ background: none; pointer-events: none; border: 1.2px solid; }}
.axis {{ position: relative; height: 26px; }}
.axis span {{ position: absolute; top: 8px; transform: translateX(-50%); white-space: nowrap; }}
.axis span:first-child {{ transform: none; }}
.said {{ position: fixed; margin: 0; inset: auto; padding: 4px 7px; border: 1px solid; max-width: 560px;
  white-space: pre-line; overflow-wrap: anywhere; font: 12px {FONT}; pointer-events: none; }}
"""

SCRIPT: Final = """
const THIN = 0.003; // of the strip: a rim would hide the block that it goes around

export default function ({ data, parentElement }) {
  const [strip, blocks, axis, said] = ["strip", "blocks", "axis", "said"].map(
    (name) => parentElement.querySelector("." + name));
  const { sizes, colours, texts, end, limit_tokens, ticks } = data.strip;
  const look = data.look;
  const share = (tokens) => `${(100 * tokens) / end}%`;
  const rim = (size) => (sizes.length < 250 && size / end > THIN ? `0.5px solid ${look.background}` : "none");
  strip.setAttribute("aria-label", data.alt);

  const starts = [];
  let start = 0;
  const drawn = sizes.map((size, place) => {
    const block = document.createElement("i");
    block.style.cssText = `left:${share(start)};width:${share(size)};background:${colours[place]}`;
    block.style.border = rim(size);
    starts.push(start);
    start += size;
    return block;
  });
  if (limit_tokens) {
    const limit = document.createElement("i");
    limit.className = "limit";
    limit.style.cssText = `left:0;width:${share(limit_tokens)};border-color:${look.outline}`;
    drawn.push(limit);
  }
  blocks.replaceChildren(...drawn);
  axis.replaceChildren(...ticks.map(([place, text]) => {
    const tick = document.createElement("span");
    tick.style.left = share(place);
    tick.style.color = look.muted;
    tick.textContent = text;
    return tick;
  }));
  Object.assign(said.style, { background: look.background, color: look.text, borderColor: look.outline });

  const hide = () => said.matches(":popover-open") && said.hidePopover();
  blocks.onpointerleave = hide;
  blocks.onpointermove = (event) => {
    const box = blocks.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * end;
    const place = starts.findLastIndex((begin) => begin <= at);
    if (place < 0 || at > start) return hide();
    said.textContent = texts[place];
    if (!said.matches(":popover-open")) said.showPopover();
    const wide = said.offsetWidth;
    const left = Math.min(event.clientX + 12, window.innerWidth - wide - 8);
    said.style.left = `${Math.max(8, left)}px`;
    said.style.top = `${box.bottom + 6}px`;
  };
  hide();
}
"""
"""Constant; what it gets of an agent becomes text, never markup."""

_mount: Final = st.components.v2.component("windowpane_block_strip", html=MARKUP, css=STYLE, js=SCRIPT)


def block_strip(strip: Strip, palette: Palette, *, alt: str) -> None:
    """Draw *strip*; *alt* is what it says to who cannot see it."""
    look = {
        "background": palette.background,
        "outline": palette.outline,
        "muted": palette.muted,
        "text": palette.text,
    }
    _mount(key="strip", data={"strip": asdict(strip), "look": look, "alt": alt}, height=PIXELS)
