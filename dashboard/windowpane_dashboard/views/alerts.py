"""Alerts: firings with their duration, outcome and delivery, and the runbook next to them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from windowpane.report.alerts import alert_phrases, outcome_of
from windowpane.report.headline import Subject
from windowpane.store.filters import SessionFilter
from windowpane.text.labels import severity_label
from windowpane_dashboard.page import (
    address,
    messages,
    project_choice,
    session_picker,
    store_access,
    times,
    widgets,
)
from windowpane_dashboard.page.linked_headline import Target, linked_headline
from windowpane_dashboard.page.search_field import search_field, today
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.page.width import page_width
from windowpane_dashboard.queries import filter_chips
from windowpane_dashboard.queries.alerts import (
    ALERT_ROWS,
    VISIBLE_ROWS,
    Firings,
    alert_frame,
    firing_key,
    selected_firing,
)
from windowpane_dashboard.queries.filters import AlertFilters
from windowpane_dashboard.queries.titles import TITLE_OF_LINK, session_title
from windowpane_dashboard.sections.alert_detail import firing_section, send_test_section
from windowpane_dashboard.style.theme import Palette

PAGE, TABLE = "alerts", "alert_table"
HIDDEN: Final = ("alert", "turn", "lasted")  # until added by the menu


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors(
        "The alerts cannot be read", "The session pages show each session's alerts too."
    ):
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            messages.show_empty("The store is there, but it holds no sessions yet.")
        head = st.container()
        filters = AlertFilters.from_query(project_choice.query_of(PAGE))
        snapshot = project_choice.of_project(snapshot, PAGE, filters.project, clears=("pick",))
        sessions = session_picker.offered_sessions(snapshot, filters.session).values()
        offered = filter_chips.offered_alerts(sessions, today())
        search_field(PAGE, filters, offered, text_is="what the alerts report")
        since, zone = store_access.live_since_now(), times.reader_zone()
        listed = store_access.firings(snapshot, filters.listing, since, zone)
        now = time.time()
        with head:
            linked_headline(
                alert_phrases(listed.rows, listed.firing, more=listed.more), targets(filters.listing), PAGE
            )
        if listed.rows:
            firings_section(snapshot, listed, filters, now)
        else:
            st.text(_no_match(filters))
        if snapshot.is_admin:
            send_test_section()
    store_access.rerun_on_change(snapshot, page=PAGE)


def targets(listing: AlertFilters) -> dict[Subject, Target]:
    """Return the lists that the phrases of the headline link to."""
    firing = replace(listing, state="firing")
    return {
        "critical": Target(PAGE, replace(firing, severity="critical")),
        "warned": Target(PAGE, replace(firing, severity="warning")),
        "failed": Target(PAGE, replace(listing, delivery="failed")),
    }


def _no_match(filters: AlertFilters) -> str:
    if filters.listing.to_query():
        return "No alert matches. Remove a filter to see more."
    return "No alert has fired in any session of this store. The conditions are listed by: windowpane alerts list"


def firings_section(snapshot: StoreSnapshot, listed: Firings, filters: AlertFilters, now: float) -> None:
    """Draw the table next to the explained firing."""
    chosen = selected_firing(listed.rows, filters.pick)
    assert chosen is not None
    left, right = widgets.wrapping_columns([2.6, 1], narrowest="text" if page_width() == "wide" else "table")
    with left:
        table_section(listed, listed.rows.index(chosen), now)
    with right, st.container(border=True):
        session = listed.sessions.get(chosen.session_id)
        title = chosen.session_id if session is None else session_title(session)
        firing_section(snapshot.store, chosen, outcome_of(chosen, session, now), title=title)


def colored(frame: pd.DataFrame, palette: Palette) -> Styler:
    """Return the table with severities in their colors, next to their labels and shapes."""
    colors = {
        severity_label("critical"): palette.zone_text["red"],
        severity_label("warning"): palette.zone_text["orange"],
    }
    return frame.style.map(lambda label: f"color: {colors.get(label, palette.muted)}", subset=["severity"])


def table_section(listed: Firings, chosen: int, now: float) -> None:
    """Draw the table of firings; selecting a row explains it. The row *chosen* is explained now."""
    frame = alert_frame(listed, now)
    frame["fired"] = times.in_reader_zone(frame["fired"])
    frame = widgets.without_empty(frame, "fired", "delivery")
    config = st.column_config
    session = config.LinkColumn(width=250, display_text=TITLE_OF_LINK, alignment="left")
    if page_width() == "narrow":  # only text wraps
        session = config.TextColumn()
        frame["session"] = frame["session"].str.extract(TITLE_OF_LINK, expand=False).map(unquote)
        frame["what"] = frame["severity"] + ": " + frame["what"]
    widgets.table(
        colored(frame, widgets.current_palette()),
        key=f"{TABLE}_{hash(tuple(map(firing_key, listed.rows)))}",  # other rows: the mark is at another position
        alt="Alerts, the latest first",
        on_row=lambda row: address.update(PAGE, pick=firing_key(listed.rows[row])),
        selection_default={"selection": {"rows": [chosen]}},
        column_order=[name for name in frame if name not in HIDDEN],
        height="content" if len(frame) <= VISIBLE_ROWS else 470,
        narrow={"what": 190, "session": 128},
        column_config={
            "severity": config.TextColumn(width=80),
            "fired": times.time_column("when", form="MM-DD HH:mm", width=84),
            "what": config.TextColumn(width=430),
            "session": session,
            "ended": config.TextColumn(width=92, help="when it was resolved, or why it was not"),
            "delivery": config.TextColumn(
                "messages", width=108, help="notified channels, and whether the message arrived"
            ),
        },
    )
    if listed.more:
        st.caption(f"Only the latest {ALERT_ROWS} are listed: narrow the filters to see others.")


main()
