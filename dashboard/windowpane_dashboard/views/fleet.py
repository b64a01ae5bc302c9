"""Fleet: all sessions, those that need attention first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from windowpane.core.vocabulary import SEVERITIES, ZONES
from windowpane.exceptions import ConfigurationError
from windowpane.report.headline import fleet_headline
from windowpane.store.interface import EventReader, SessionFilter
from windowpane.text.formats import count, dollars, percent
from windowpane.text.labels import MARKS
from windowpane.text.zones import zone_label
from windowpane_dashboard.page import address, messages, store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import (
    FLEET_ROWS,
    Fleet,
    bytes_on_disk,
    configured_retention,
    fleet_frame,
    retention_text,
    storage_text,
)
from windowpane_dashboard.sections.fleet_table import fleet_styled
from windowpane_dashboard.style.sanitize import escape_markdown

PAGE, TABLE = "fleet", "fleet_table"
LETTERS = ", ".join(f"{mark.letter} {mark.label}" for mark in MARKS.values())


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The sessions cannot be listed"):
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            messages.show_empty("The store is there, but it holds no sessions yet.")
        head = st.container()
        filters = filter_bar(snapshot.store)
        listed = store_access.fleet(snapshot, filters)
    now = time.time()
    with head:
        widgets.headline(fleet_headline(listed.rows, now, firing=listed.firing, more=listed.more))
        summary(listed)
    session_table(listed, now)
    with messages.report_read_errors("The size of the store cannot be read"):
        store_line(snapshot, now)
    store_access.rerun_on_change(snapshot, page=PAGE)


def store_line(snapshot: StoreSnapshot, now: float) -> None:
    """Draw the size of the store and its retention."""
    stored = storage_text(snapshot.store.size(), bytes_on_disk(Path(snapshot.path)), now)
    try:
        retention = f"Whole sessions are deleted {retention_text(configured_retention())}"
    except ConfigurationError as error:
        retention = (
            f"The retention is unknown, because the configuration cannot be read ({error}). Sessions are deleted"
        )
    st.caption(
        escape_markdown(f"{stored} {retention}")
        + ", by `windowpane serve` and `windowpane prune`; a tombstone of each remains in the audit chain."
    )


def filter_bar(store: EventReader) -> FleetFilters:
    """Draw the filters with the values of the address; a choice changes the address."""
    query = st.query_params.to_dict()
    if "session" in query:  # on the way back from a session that a row opened
        query = address.last_written(PAGE)
    filters = FleetFilters.from_query(query)
    facets = store.facets()
    columns = st.columns([2, 2, 2, 1.6, 1.4, 1.4])
    offered: dict[str, Sequence[str]] = {
        "agent": facets.get("agents", ()),
        "model": facets.get("models", ()),
        "source": facets.get("sources", ()),
        "zone": tuple(reversed(ZONES)),
        "severity": tuple(reversed(SEVERITIES)),
    }
    columns[0].text_input(
        "Session or agent",
        placeholder="contains …",
        max_chars=200,
        **address.bound_widget(PAGE, "text", filters.text or ""),
    )
    for column, (name, options) in zip(columns[1:], offered.items(), strict=True):
        value = getattr(filters, name)
        widgets.filter_select(
            column, name.capitalize(), options, value, bound=address.bound_widget(PAGE, name, value)
        )
    address.write(PAGE, filters.to_query())
    return filters


def summary(listed: Fleet) -> None:
    """Draw one line of sessions by zone, cost and cache."""
    counts = listed.zone_counts
    parts = [f"{label} {counts[label]:,}" for label in (zone_label(zone) for zone in reversed(ZONES))]
    unknown = counts.get("–", 0)
    if unknown:
        parts.append(f"– limit unknown {unknown:,}")
    parts.append(f"cost {dollars(listed.cost_dollars)}")
    if listed.cache_ratio is not None:
        parts.append(f"{percent(listed.cache_ratio)} of the input from the cache")
    if listed.more:
        parts.append(f"all of the {len(listed.rows):,} sessions listed")
    st.caption(escape_markdown("   ·   ".join(parts)))


def session_table(listed: Fleet, now: float) -> None:
    """Draw the table of sessions; selecting a row opens it."""
    if not listed.rows:
        st.text("No session matches these filters. Clear one to see more.")
        return
    config = st.column_config
    widgets.table(
        fleet_styled(fleet_frame(listed, now), widgets.current_palette()),
        key=TABLE,
        alt="Sessions, the one under most pressure first",
        on_select=lambda: None,
        selection_mode="single-row",
        height="content" if len(listed.rows) <= 16 else 560,
        column_config={
            "zone": config.TextColumn(width=84, help="at the last turn"),
            "session": config.LinkColumn(width=164, display_text=r"session=([^&]+)", alignment="left"),
            "agent": config.TextColumn(width=100),
            "model": config.TextColumn(width=100),
            "utilization over time": config.AreaChartColumn("utilization", y_min=0, y_max=1, width=92),
            "now": config.NumberColumn(width=54, help="used tokens / limit, at the last turn; ≈ estimated"),
            "tokens": config.NumberColumn(width=64, help="used tokens at the last turn; ≈ estimated"),
            "worst": config.TextColumn(width=84, help="the worst zone of the session"),
            "next": config.TextColumn(
                width=110, help="turns until the agent's own compaction, or until red; only live sessions"
            ),
            "Δ/turn": config.NumberColumn(format="compact", width=64, help="tokens per turn, mean of the last 5"),
            "turns": config.NumberColumn(width=50),
            "cost": config.NumberColumn(format="dollar", width=64),
            "last event": config.TextColumn(width=90, help=LETTERS),
            "alerts": config.TextColumn(width=92, help="firing now: the worst, + how many others"),
        },
    )
    more = f" Only the first {FLEET_ROWS} are listed: narrow the filters to see others." if listed.more else ""
    listed_text = f"{count(len(listed.rows), 'session')}, most pressure first."
    st.caption(f"{listed_text} Select a row to open it, with the keyboard by Shift and space.{more}")
    chosen = st.session_state[TABLE].selection.rows
    if chosen:
        session_id = listed.rows[chosen[0]].session_id
        st.switch_page("views/session.py", query_params={"session": session_id})


main()
