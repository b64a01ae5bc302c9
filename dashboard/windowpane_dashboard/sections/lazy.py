"""Parts of a page that are drawn later: once somebody scrolls near them, or once what matters more is painted.

A browser draws one thing after the other. So a page costs what is looked at, and what is looked at first is there
first. Who reads a page without a browser, such as a test or another program, gets all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import streamlit as st

_mount: Final = st.components.v2.component(
    "windowpane_when_seen",
    html='<div class="place" style="height:100%"></div>',
    js=Path(__file__).with_suffix(".js").read_text(),
)


def draw_when_visible(draw: Callable[[], None], *, key: str, pixels: int) -> None:
    """Keep *pixels* of room until the place is near what is shown, then *draw*, and draw from then on."""
    _later(draw, key=key, pixels=pixels, first=None)


def draw_after_paint(draw: Callable[[], None], *, key: str, pixels: int, first: str) -> None:
    """Keep *pixels* of room until what the selector *first* finds is painted, then *draw*, and draw from then on.

    Where it is not painted within 3 s, *draw* all the same.
    """
    _later(draw, key=key, pixels=pixels, first=first)


@st.fragment
def _later(draw: Callable[[], None], *, key: str, pixels: int, first: str | None) -> None:
    due = f"{key}_due"
    if st.session_state.get(due) or st.context.url is None:
        draw()
    else:
        _mount(key=f"{key}_place", data={"first": first}, height=pixels, on_now_change=lambda: _see(due))


def _see(due: str) -> None:
    st.session_state[due] = True
