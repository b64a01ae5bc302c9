"""Session: the window turn by turn, and everything about the selected turn below it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NoReturn

import streamlit as st

from windowpane.core.characters import plain
from windowpane.core.times import is_live
from windowpane.report.headline import Subject
from windowpane.store.records import SessionRow
from windowpane.store.writes.project_sessions import named_in_projects
from windowpane_dashboard.page import address, messages, store_access, widget_state, widgets
from windowpane_dashboard.page.linked_headline import Target, linked_headline
from windowpane_dashboard.page.own_links import follow_own_links
from windowpane_dashboard.page.session_import import OPENED, import_session
from windowpane_dashboard.page.session_picker import offered_sessions
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.alerts import at_named_turn, requested_firing
from windowpane_dashboard.queries.filters import Events, SessionAddress
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.queries.titles import picker_label
from windowpane_dashboard.queries.window import read_turn_window
from windowpane_dashboard.sections.compression import CHOICE as COMPRESSION
from windowpane_dashboard.sections.compression import compression_section
from windowpane_dashboard.sections.cost import cache_breaks_section, cost_section
from windowpane_dashboard.sections.event_list import SCOPE, event_list_section
from windowpane_dashboard.sections.findings import cost_sentence
from windowpane_dashboard.sections.hand_over import hand_over_buttons
from windowpane_dashboard.sections.lazy import draw_after_paint
from windowpane_dashboard.sections.notes import notes_section
from windowpane_dashboard.sections.reading import beside_block, find_section
from windowpane_dashboard.sections.regrets import regrets_section
from windowpane_dashboard.sections.same_session import record_links
from windowpane_dashboard.sections.session_alerts import session_alerts_section
from windowpane_dashboard.sections.session_header import alert_line, identity_line, metrics_row
from windowpane_dashboard.sections.session_tabs import SessionSection, SessionTab, SessionView, session_tabs
from windowpane_dashboard.sections.subagents import children_section, has_children, parent_link
from windowpane_dashboard.sections.timeline import (
    CHART,
    EXACT,
    PAGE,
    SLIDER,
    timeline_section,
    turn_control,
)
from windowpane_dashboard.sections.tool_use import tool_use_section
from windowpane_dashboard.sections.turn_table import turn_table_section
from windowpane_dashboard.sections.window import blocks_section, turn_heading, window_section
from windowpane_dashboard.style.sanitize import escape_markdown

CHOICE, DRAWN, READ = "session_choice", "drawn_session", "read_session"
BELOW, PIXELS = "below", 800
PAINTED = f".st-key-{CHART} .main-svg"


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    position = SessionAddress.from_query(st.query_params.to_dict())
    with (
        messages.report_read_errors(
            "This session cannot be read", "Other sessions may still open from the fleet page."
        ),
        st.container(gap="xsmall"),
    ):
        selection, handing = st.columns([4, 1.5], vertical_alignment="center", gap="small")
        with selection:
            row = chosen_session(snapshot, position)
            position = at_named_turn(snapshot.store, row.session_id, position)
            alert = requested_firing(snapshot.store, row.session_id, position)
        with handing, st.container(horizontal=True, gap="xsmall"):
            hand_over_buttons(snapshot.store, row)
        if st.session_state.get(DRAWN) != row.session_id:
            widget_state.discard_late_values(SLIDER, EXACT, COMPRESSION, SCOPE)
            st.session_state[DRAWN] = row.session_id
        timeline = store_access.timeline(snapshot, row)
        with widgets.part():
            identity_line(row, timeline)
            parent_link(snapshot.store, row)
            record_links(snapshot.store, row)
            if alert is not None:
                alert_line(snapshot.store, alert)
        phrases = timeline.headline(row, live=is_live(row, time.time()))
        linked_headline(phrases, targets(replace(position, session=row.session_id), timeline), PAGE)
        with widgets.part():
            cost_sentence(snapshot, row)
        metrics_row(row, timeline, alert=alert)
        if timeline.turns.empty:
            address.write(PAGE, replace(position, session=row.session_id).to_query())
            st.text("No model call has been measured yet, so its window cannot be drawn.")
        else:
            timeline_section(snapshot, row, timeline, position)
            draw_after_paint(lambda: below(snapshot, row, timeline), key=BELOW, pixels=PIXELS, first=PAINTED)
    follow_own_links()
    store_access.rerun_on_change(snapshot, page=PAGE)


def targets(position: SessionAddress, timeline: Timeline) -> dict[Subject, Target]:
    """Return the turn and the tabs that the phrases of the headline link to."""

    def tab(name: str, events: Events | None = None) -> Target:
        return Target(PAGE, replace(position, tab=name, events=events))

    return {
        "worst turn": Target(PAGE, replace(position, turn=timeline.worst_turn, compression=None, alert=None)),
        "overflows": tab("events", "noteworthy"),
        "compressions": tab("compressions"),
        "evictions": Target(PAGE, SessionAddress(position.session, tab="blocks")),
        "regrets": tab("regrets"),
        "alerts": tab("alerts"),
    }


def below(snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline) -> None:
    """Draw everything below the chart."""
    with messages.report_read_errors(
        "The sections below the chart cannot be read", "Other sessions may still open."
    ):
        at_turn(snapshot, row, timeline)


@st.fragment
def at_turn(snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline) -> None:
    """Draw the slider, the window of the selected turn and the open tab; moving it draws only this part again."""
    with (
        messages.report_read_errors("This turn cannot be read", "Other turns may still open."),
        st.container(gap="xsmall"),
    ):
        turn = turn_control(timeline)
        window = store_access.cached_for_session(
            snapshot,
            row,
            f"turn {turn}",
            lambda: read_turn_window(snapshot.store, row.session_id, timeline, turn),
        )
        turn_heading(window)
        window_section(window)
        view = SessionView(snapshot, row, timeline, window)
        beside_block(view, lambda: session_tabs(TABS, view))


# In the order of the page. A comment, because Streamlit shows a string that stands alone in this file.
TABS: Final = (
    SessionTab(
        "Window",
        (
            SessionSection("blocks", "In order", blocks_section),
            SessionSection("fill", "By size", tool_use_section),
            SessionSection("find", "Find text", find_section),
        ),
    ),
    SessionTab(
        "Losses",
        (
            SessionSection(
                "compressions",
                "Compactions",
                lambda view: compression_section(view.snapshot, view.row, view.turn),
                lambda view: view.row.compressions > 0,
            ),
            SessionSection(
                "regrets",
                "Needed again",
                lambda view: regrets_section(view.snapshot.store, view.row, view.timeline),
                lambda view: view.row.regrets > 0,
            ),
        ),
    ),
    SessionTab(
        "Cost",
        (
            SessionSection("cost", "Causes", cost_section),
            SessionSection(
                "breaks", "Cache breaks", cache_breaks_section, lambda view: view.row.cache_breaks > 0
            ),
            SessionSection(
                "team",
                "Sub-agents",
                lambda view: children_section(view.snapshot.store, view.row),
                lambda view: has_children(view.snapshot.store, view.row),
            ),
        ),
    ),
    SessionTab(
        "Log",
        (
            SessionSection(
                "events", "Events", lambda view: event_list_section(view.snapshot.store, view.row, view.turn)
            ),
            SessionSection("turns", "Turns", lambda view: turn_table_section(view.timeline)),
            SessionSection(
                "alerts",
                "Alerts",
                lambda view: session_alerts_section(
                    view.snapshot.store, view.row, int(view.timeline.turns["turn"].iloc[-1])
                ),
                lambda view: view.row.worst_severity is not None,
            ),
            SessionSection("notes", "Notes", notes_section),
        ),
    ),
)


def chosen_session(snapshot: StoreSnapshot, position: SessionAddress) -> SessionRow:
    """Return the session of the address, else the most recent; draw the selection."""
    rows = offered_sessions(snapshot, position.session)
    if not rows and not position.session:
        messages.show_empty("The store is there, but it holds no sessions yet.")
    requested = position.session or next(iter(rows))
    if requested not in rows:
        # An agent whose events have a project's token links to the id that it knows, without the project.
        by_id = {row.session_id: row for row in named_in_projects(snapshot.store, requested)}
        if len(by_id) != 1:
            may_read = not by_id and store_access.may_write(snapshot)
            problem = read_recording(requested) if may_read else ""
            explain_missing(requested, by_id, problem, may_read=may_read)
        rows |= by_id
        (requested,) = by_id
    key = widget_state.fresh_key(CHOICE, requested)
    st.selectbox(
        "Session",
        list(rows),
        key=key,
        format_func=lambda session_id: plain(picker_label(rows[session_id])),
        on_change=lambda: widget_state.apply(CHOICE, key, _open_chosen),
        label_visibility="collapsed",
    )
    return rows[requested]


def read_recording(requested: str) -> str:
    """Import the recording that the visitor asked for and draw the page again; then return why it was not."""
    read, problem = st.session_state.get(READ, ("", ""))
    if st.session_state.pop(OPENED, None) == requested:
        with st.spinner("Reading the recording of this session"):
            st.session_state[READ] = requested, import_session(requested)
        st.rerun()
    return (problem or "This machine has no recording with this id.") if read == requested else ""


def explain_missing(requested: str, by_id: Mapping[str, SessionRow], problem: str, *, may_read: bool) -> NoReturn:
    """Report that the session of the address is not stored, or link to those that it may name; stop the page."""
    several = "Several projects have a session of this name."
    st.warning(several if by_id else "This session is not in the store.", icon=":material/search_off:")
    widgets.show_text(requested)
    if not by_id:
        widgets.show_text(problem or "It was not read yet or was pruned, or the address is incomplete.")
    if may_read:
        st.button(
            "Read its recording",
            icon=":material/file_open:",
            help="If this machine has a recording with this id, it is imported into the store.",
            on_click=lambda: st.session_state.update({OPENED: requested}),
        )
    for session_id, row in by_id.items():
        query = SessionAddress(session_id).to_query()
        label = escape_markdown(f"{row.project}: {picker_label(row)}")
        st.page_link("views/session.py", label=label, query_params=query)
    st.page_link("views/fleet.py", label="See all sessions", icon=":material/view_list:")
    widget_state.stop()


def _open_chosen(session_id: str) -> None:
    st.query_params.from_dict(SessionAddress(session_id).to_query())


main()
