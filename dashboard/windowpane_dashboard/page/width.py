"""The width of the page, by which tables choose their columns: they cannot wrap as text does."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import streamlit as st

Width = Literal["narrow", "middle", "wide"]
KEY: Final = "page_width"
_mount: Final = st.components.v2.component("windowpane_width", js=Path(__file__).with_suffix(".js").read_text())


def follow_width() -> None:
    """Draw the page again when its width becomes another one."""
    _mount(key=KEY, data={"width": page_width()}, on_width_change=lambda: None, height="content")


def page_width() -> Width:
    """Return the width that the browser reported; wide until then."""
    width: Width = st.session_state.get(KEY, {}).get("width") or "wide"
    return width
