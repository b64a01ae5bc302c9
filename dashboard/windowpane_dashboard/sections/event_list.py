"""The events of the selected turn, or the noteworthy ones of the whole session."""

from __future__ import annotations

from dataclasses import replace

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


def event_list_section(store: EventReader, row: SessionRow, turn: int) -> None:
    """Draw the list of events."""
    requested = SessionAddress.from_query(st.query_params.to_dict()).events or "turn"
    key = widget_state.fresh_key(SCOPE, requested)

    def choose(scope: str) -> None:
        address.update(PAGE, events=None if scope == "turn" else scope)

    scope = st.segmented_control(
        "Which events",
        list(SCOPES),
        format_func=lambda name: SCOPES[name],
        key=key,
        on_change=lambda: widget_state.apply(SCOPE, key, choose),
        label_visibility="collapsed",
        required=True,
    )
    query = EventFilter(session_id=row.session_id, limit=EVENT_ROWS)
    is_turn = scope == "turn"
    query = replace(query, turn_from=turn, turn_to=turn) if is_turn else replace(query, types=NOTEWORTHY)
    frame = events_frame(store.events_or_damage(query))[["at", "turn", "what"]]
    if frame.empty:
        st.text("No events are recorded for this turn.")
        return
    frame["at"] = times.in_reader_zone(frame["at"])
    is_one_day = frame["at"].dt.date.nunique() == 1
    widgets.table(
        widgets.without_empty(frame, "at").drop(columns="turn" if is_turn else []),
        key="events",
        alt="Events with descriptions",
        column_config={
            "turn": st.column_config.NumberColumn(width=48),
            "at": times.time_column("time (local)", width=84, form="HH:mm:ss" if is_one_day else "MM-DD HH:mm"),
            "what": st.column_config.TextColumn(width=800),
        },
    )
    cut = f", the first {EVENT_ROWS}" if len(frame) == EVENT_ROWS else ""
    st.caption(f"{count(len(frame), 'event')}{cut}. All events, with search and export, are on the audit page.")
