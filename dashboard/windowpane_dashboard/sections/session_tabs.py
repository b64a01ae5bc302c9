"""The tabs of the session page and their sections; only the open one is read and drawn."""

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

TAB: Final = "session_tab"
SECTION: Final = "session_section"


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session at the selected turn: what a section draws."""

    snapshot: StoreSnapshot
    row: SessionRow
    timeline: Timeline
    window: TurnWindow

    @property
    def turn(self) -> int:
        """The selected turn."""
        return self.window.turn


@dataclass(frozen=True, slots=True)
class SessionSection:
    """One section of a tab; *name* is its value in the address."""

    name: str
    label: str
    draw: Callable[[SessionView], None]
    applies: Callable[[SessionView], bool] = lambda _view: True
    """False for a session that has nothing to show in it."""


@dataclass(frozen=True, slots=True)
class SessionTab:
    """One tab with its sections, of which the first is open until another is chosen."""

    label: str
    sections: tuple[SessionSection, ...]

    def offered(self, view: SessionView) -> tuple[SessionSection, ...]:
        """Return the sections that have something to show."""
        return tuple(section for section in self.sections if section.applies(view))


def session_tabs(tabs: Sequence[SessionTab], view: SessionView) -> None:
    """Draw the tabs that have a section for this session, and the section of the address."""
    offered = {tab.label: sections for tab in tabs if (sections := tab.offered(view))}
    wanted = SessionAddress.from_query(st.query_params.to_dict()).open_tab
    chosen = next(
        ((label, one) for label, sections in offered.items() for one in sections if one.name == wanted),
        (next(iter(offered)), next(iter(offered.values()))[0]),
    )
    key = widget_state.fresh_key(TAB, chosen[0], scope=tuple(offered))

    def on_tab(label: str) -> None:
        address.update(PAGE, tab=offered[label][0].name if label in offered else None)

    containers = st.tabs(list(offered), key=key, on_change=lambda: widget_state.apply(TAB, key, on_tab))
    with containers[list(offered).index(chosen[0])]:
        _choice(offered[chosen[0]], chosen[1])
        chosen[1].draw(view)


def _choice(sections: Sequence[SessionSection], chosen: SessionSection) -> None:
    """Draw the choice of a section where the tab has several."""
    if len(sections) < 2:
        return
    labels = {section.label: section.name for section in sections}
    key = widget_state.fresh_key(SECTION, chosen.label, scope=tuple(labels))

    def on_section(label: str | None) -> None:
        address.update(PAGE, tab=labels.get(label or chosen.label))

    st.container(key="sections").segmented_control(
        "Section",
        list(labels),
        key=key,
        label_visibility="collapsed",
        on_change=lambda: widget_state.apply(SECTION, key, on_section),
    )
