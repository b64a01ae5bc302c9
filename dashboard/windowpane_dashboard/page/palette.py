"""The command palette: pages, actions and sessions in one list, opened by Ctrl-K from every page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import streamlit as st

from windowpane.core.characters import plain
from windowpane.store.reads.project_reader import EventReader
from windowpane_dashboard.page import messages, session_picker, store_access
from windowpane_dashboard.page.width import follow_width
from windowpane_dashboard.queries.filters import (
    AlertFilters,
    CompareAddress,
    FleetFilters,
    Parameters,
    ReplayAddress,
    SearchAddress,
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
    """Draw the button that opens the palette, where the width of the page is followed too: it takes no room."""
    with st.container(key=KEY):
        st.button("Go to", icon=":material/search:", shortcut="Mod+K", type="tertiary", on_click=_open)
        follow_width()
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
        snapshot = store_access.open_snapshot()
        rows = session_picker.offered_sessions(snapshot).values()
        here = SessionAddress.from_query(st.query_params.to_dict()).session
        sessions = [Entry(picker_label(row), "session", SessionAddress(row.session_id)) for row in rows]
        chosen = st.selectbox(
            "Page, action or session",
            [*pages(), *actions(here), *sessions],
            index=None,
            format_func=lambda entry: plain(entry if isinstance(entry, str) else entry.label),
            placeholder="A page, an action, a session's title, or text to search for",
            filter_mode="contains",
            accept_new_options=True,
        )
    _focus(key="palette_focus", height="content")
    if isinstance(chosen, str):
        chosen = destination(snapshot.store, chosen, [*pages(), *actions(here)])
    if chosen is not None:
        _close()
        st.switch_page(f"views/{chosen.page}.py", query_params=chosen.address.to_query())


def pages() -> list[Entry]:
    """Return the pages."""
    return [Entry(f"Page: {name.capitalize()}", name) for name in PAGES]


def destination(store: EventReader, text: str, entries: Sequence[Entry]) -> Entry:
    """Return where typed *text* leads: an entry, a session, those that the fleet finds, or the content search."""
    matches = [entry for entry in entries if text.casefold() in entry.label.casefold()]
    if matches:
        return matches[0]
    rows = store.sessions(FleetFilters(text=text).to_store(limit=2))
    if len(rows) == 1 or (rows and store.session(text) is not None):
        return Entry(text, "session", SessionAddress(text if len(rows) > 1 else rows[0].session_id))
    return Entry(text, "fleet", FleetFilters(text=text)) if rows else Entry(text, "search", SearchAddress(text))


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
