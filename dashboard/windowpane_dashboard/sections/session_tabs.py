"""The tabs of the session page: the open one is read and drawn, the others when they are opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from windowpane.store.records import SessionRow
from windowpane_dashboard.page import address, widget_state
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.queries.window import TurnWindow
from windowpane_dashboard.sections.timeline import PAGE

CHOICE: Final = "session_tab"


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session at the selected turn: what a tab draws."""

    snapshot: StoreSnapshot
    row: SessionRow
    timeline: Timeline
    window: TurnWindow

    @property
    def turn(self) -> int:
        """The selected turn."""
        return self.window.turn


@dataclass(frozen=True, slots=True)
class SessionTab:
    """One tab; *name* is its value in the address."""

    name: str
    label: str
    draw: Callable[[SessionView], None]
    applies: Callable[[SessionView], bool] = lambda _view: True
    """False for a session that has nothing to show in it."""


def session_tabs(tabs: Sequence[SessionTab], view: SessionView) -> None:
    """Draw the tabs that apply to the session, and the content of the one of the address."""
    offered = [tab for tab in tabs if tab.applies(view)]
    labels = {tab.label: tab.name for tab in offered}
    position = SessionAddress.from_query(st.query_params.to_dict())
    chosen = next((tab for tab in offered if tab.name == position.open_tab), offered[0])
    key = widget_state.fresh_key(CHOICE, chosen.label, scope=tuple(labels))

    def on_choice(label: str) -> None:
        address.update(PAGE, tab=labels.get(label))

    containers = st.tabs(list(labels), key=key, on_change=lambda: widget_state.apply(CHOICE, key, on_choice))
    with containers[offered.index(chosen)]:
        chosen.draw(view)
