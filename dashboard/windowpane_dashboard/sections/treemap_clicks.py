"""Clicks on the areas of a treemap, which Streamlit does not report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import streamlit as st

KEY: Final = "treemap_clicks"
_mount: Final = st.components.v2.component(
    "windowpane_treemap_clicks", js=Path(__file__).with_suffix(".js").read_text()
)


def treemap_clicks(key: str, choose: Callable[[str], None]) -> None:
    """Call *choose* with the id of each area that is clicked in the treemap *key*."""

    def on_click() -> None:
        area = st.session_state[KEY].chosen
        if isinstance(area, str):
            choose(area)

    _mount(key=KEY, data={"key": key}, height="content", on_chosen_change=on_click)
