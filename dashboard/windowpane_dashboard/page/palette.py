"""The command palette: pages, actions and sessions in one list, opened by Ctrl-K from every page."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import streamlit as st

from windowpane.core.characters import plain
from windowpane_dashboard.page import messages, session_picker, store_access
from windowpane_dashboard.queries.filters import (
    AlertFilters,
    CompareAddress,
    FleetFilters,
    Parameters,
    ReplayAddress,
    SessionAddress,
)
from windowpane_dashboard.queries.titles import picker_label

KEY, OPEN = "palette", "palette_is_open"
_focus: Final = st.components.v2.component(
    "windowpane_palette_focus", js=Path(__file__).with_suffix(".js").read_text()
)
PAGES: Final = ("fleet", "session", "compare", "trends", "replay", "alerts", "search", "audit")


class Entry(NamedTuple):
    """One line of the palette: a page and its address."""

    label: str
    page: str
    address: Parameters = Parameters()


def palette() -> None:
    """Draw the button that opens the palette."""
    with st.container(key=KEY):
        st.button("Go to", icon=":material/search:", shortcut="Mod+K", type="tertiary", on_click=_open)
    if st.session_state.get(OPEN):  # also while the page is drawn again for new events
        _choose()


def _open() -> None:
    st.session_state[OPEN] = True


def _close() -> None:
    st.session_state[OPEN] = False


@st.dialog("Go to", on_dismiss=_close)
def _choose() -> None:
    """Draw the list; a choice opens its page, Escape closes it."""
    with messages.report_read_errors("The sessions cannot be listed"):
        rows = session_picker.offered_sessions(store_access.open_snapshot()).values()
        here = SessionAddress.from_query(st.query_params.to_dict()).session
        sessions = [Entry(picker_label(row), "session", SessionAddress(row.session_id)) for row in rows]
        chosen = st.selectbox(
            "Page, action or session",
            [*pages(), *actions(here), *sessions],
            index=None,
            format_func=lambda entry: plain(entry.label),
            placeholder="Type a page, an action, or a session's title",
        )
    _focus(key="palette_focus", height="content")
    if chosen is not None:
        _close()
        st.switch_page(f"views/{chosen.page}.py", query_params=chosen.address.to_query())


def pages() -> list[Entry]:
    """Return the pages."""
    return [Entry(f"Page: {name.capitalize()}", name) for name in PAGES]


def actions(session: str | None) -> list[Entry]:
    """Return the actions, with those for the session that is shown."""
    everywhere = [
        Entry("Show alerts that fire now", "alerts", AlertFilters(state="firing")),
        Entry("Show messages that did not arrive", "alerts", AlertFilters(delivery="failed")),
        Entry("Show the sessions that cost most", "fleet", FleetFilters(order="cost")),
    ]
    if session is None:
        return everywhere
    return [
        Entry("Show what this session lost", "session", SessionAddress(session, tab="compressions")),
        Entry("Show why this session cost so much", "session", SessionAddress(session, tab="cost")),
        Entry("Compare this session", "compare", CompareAddress(session)),
        Entry("Replay this session", "replay", ReplayAddress(simulate=session)),
        *everywhere,
    ]
