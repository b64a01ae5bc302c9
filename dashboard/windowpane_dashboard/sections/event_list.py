"""The events of the selected turn, or the noteworthy ones of the whole session."""

from __future__ import annotations

import streamlit as st

from windowpane.store.filters import EventFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count
from windowpane.text.labels import NOTEWORTHY
from windowpane_dashboard.page import address, times, widget_state, widgets
from windowpane_dashboard.queries.events import events_frame
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.sections.timeline import PAGE

EVENT_ROWS = 500
SCOPE = "event_scope"
SCOPES = {"turn": "this turn", "noteworthy": "main events of the session"}


def _choose_scope(scope: str) -> None:
    address.update(PAGE, events=None if scope == "turn" else scope)


def event_list_section(store: EventReader, row: SessionRow, turn: int) -> None:
    """Draw the list of events."""
    requested = SessionAddress.from_query(st.query_params.to_dict()).events or "turn"
    key = widget_state.fresh_key(SCOPE, requested)
    scope = st.segmented_control(
        "Which events",
        list(SCOPES),
        format_func=lambda name: SCOPES[name],
        key=key,
        on_change=lambda: widget_state.apply(SCOPE, key, _choose_scope),
        label_visibility="collapsed",
        required=True,
    )
    if scope == "noteworthy":
        query = EventFilter(session_id=row.session_id, types=NOTEWORTHY, limit=EVENT_ROWS)
    else:
        query = EventFilter(session_id=row.session_id, turn_from=turn, turn_to=turn, limit=EVENT_ROWS)
    frame = events_frame(store.events_or_damage(query)).drop(columns=["seq", "session", "event", "hash"])
    if frame.empty:
        st.text("No events are recorded for this turn.")
        return
    frame["at"] = times.in_reader_zone(frame["at"])
    widgets.table(
        widgets.without_empty(frame, "at"),
        key="events",
        alt="Events with descriptions",
        column_config={
            "turn": st.column_config.NumberColumn(width=48),
            "at": times.time_column("time (local)", width=140),
            "what": st.column_config.TextColumn(width=800),
        },
    )
    cut = f", the first {EVENT_ROWS}" if len(frame) == EVENT_ROWS else ""
    st.caption(f"{count(len(frame), 'event')}{cut}. All events, with search and export, are on the audit page.")
