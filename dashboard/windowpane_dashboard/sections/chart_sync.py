"""The scripts that follow the selected turn: a line over the charts, clicks on them, keyboard focus.

A chart is not sent again when another turn is selected: only the position of the line changes. It is found by the
chart's own axis, so it stays right when someone zooms.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import streamlit as st

KEY: Final = "turn_line"
SCRIPTS: Final = ("turn_line", "scroll_regions", "keyboard_focus", "chart_clicks", "chart_sync")
"""Joined to one module in the browser; its data are numbers and keys of charts, nothing of an agent."""

_HERE: Final = Path(__file__).parent
_mount: Final = st.components.v2.component(
    "windowpane_chart_sync", js="\n".join((_HERE / f"{name}.js").read_text() for name in SCRIPTS)
)


def chart_sync(
    turn: int,
    keys: tuple[str, ...],
    controls: tuple[str, ...],
    *,
    clicks: str,
    choose: Callable[[int], None],
    evidence: str | None,
    opened: int,
) -> None:
    """Draw the line at *turn* over the charts with these *keys*, and keep the keyboard's focus on *controls*.

    A click on the chart *clicks* calls *choose* with the turn it is at. The part *evidence* gets the focus each
    time that the page is *opened*.
    """
    data = {
        "turn": turn, "keys": list(keys), "controls": list(controls), "clicks": clicks,
        "evidence": {"key": evidence, "opened": opened},
    }  # fmt: skip

    def on_click() -> None:
        chosen = st.session_state[KEY].chosen
        if isinstance(chosen, int | float):
            choose(int(chosen))

    _mount(key=KEY, data=data, height="content", on_chosen_change=on_click)
