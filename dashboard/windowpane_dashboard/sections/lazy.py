"""Parts of a page that are drawn after a more important part is painted.

A browser draws one part after the other. Without a browser, as in tests, all is drawn at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import streamlit as st

_mount: Final = st.components.v2.component(
    "windowpane_after_paint",
    html="<div></div>",
    js=Path(__file__).with_suffix(".js").read_text(),
)


@st.fragment
def draw_after_paint(draw: Callable[[], None], *, key: str, pixels: int, first: str) -> None:
    """Show a skeleton until the element of the selector *first* is painted, then *draw* now and in later runs.

    *draw* is called after 3 s at the latest.
    """
    due = f"{key}_due"
    if st.session_state.get(due) or st.context.url is None:
        draw()
    else:
        st.skeleton(height=pixels)
        _mount(key=f"{key}_anchor", data={"first": first}, height="content", on_now_change=lambda: _mark_due(due))


def _mark_due(due: str) -> None:
    st.session_state[due] = True
