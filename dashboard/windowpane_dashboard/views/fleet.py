"""Fleet: all sessions, those that need attention first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import streamlit as st

from windowpane.config.paths import default_store
from windowpane.core.store_names import StoreUrl
from windowpane.core.vocabulary import SEVERITIES, ZONES
from windowpane.exceptions import ConfigurationError
from windowpane.report.headline import Subject, fleet_phrases
from windowpane.store.interface import EventReader, FleetOrder, SessionFilter
from windowpane.text.formats import count, dollars, percent
from windowpane.text.labels import MARKS
from windowpane.text.zones import zone_label
from windowpane_dashboard.page import address, messages, project_choice, store_access, times, widgets
from windowpane_dashboard.page.date_range import date_range
from windowpane_dashboard.page.linked_headline import Target, linked_headline
from windowpane_dashboard.page.number_formats import TOKENS_SHORT
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import (
    FLEET_ROWS,
    STYLING,
    Fleet,
    bytes_on_disk,
    configured_retention,
    fleet_frame,
    retention_text,
    storage_text,
)
from windowpane_dashboard.queries.titles import TITLE_OF_LINK
from windowpane_dashboard.sections.fleet_table import fleet_styled
from windowpane_dashboard.style.sanitize import escape_markdown

PAGE, TABLE = "fleet", "fleet_table"
ALTERNATIVE: Final = "Sessions, live ones first, then by pressure"
HIDDEN: Final = ("Δ/turn", "tokens", "source", *STYLING)  # until a user adds them by the table's menu
ORDERS: Final[dict[FleetOrder, str]] = {
    "pressure": "live first",
    "recent": "newest first",
    "cost": "highest cost first",
    "regret": "most regrets first",
}
TARGETS: Final[dict[Subject, Target]] = {  # lists that the phrases of the headline link to
    "critical": Target(PAGE, FleetFilters(severity="critical")),
    "warned": Target(PAGE, FleetFilters(severity="warning")),
    "red": Target(PAGE, FleetFilters(zone="red")),
    "regretting": Target(PAGE, FleetFilters(order="regret")),
}
LETTERS = ", ".join(f"{mark.letter} {mark.label}" for mark in MARKS.values())


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The sessions cannot be listed"):
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            messages.show_empty("The store is there, but it holds no sessions yet.")
        messages.show_import()
        head = st.container()
        filters = address_filters()
        snapshot = project_choice.of_project(snapshot, PAGE, filters.project)
        filter_bar(snapshot.store, filters)
        now = time.time()
        since = store_access.live_since_now()
        query = filters.to_store(limit=FLEET_ROWS, live_first_since=since, zone=times.reader_zone())
        listed = store_access.fleet(snapshot, query, since)
    with head:
        linked_headline(fleet_phrases(listed.totals), TARGETS)
        summary(listed)
    session_table(listed, now, filters.order)
    with messages.report_read_errors("The size of the store cannot be read"):
        store_line(snapshot, now)
    store_access.rerun_on_change(snapshot, page=PAGE)


def store_line(snapshot: StoreSnapshot, now: float) -> None:
    """Draw the size of the store and its retention."""
    size = snapshot.store.size()
    if snapshot.projects is not None:
        st.caption(f"{count(size.events, 'event')} of {count(size.sessions, 'session')}.")
        return
    name = default_store()
    stored = storage_text(size, size.bytes if isinstance(name, StoreUrl) else bytes_on_disk(name), now)
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


def address_filters() -> FleetFilters:
    """Return the filters of the address."""
    query = project_choice.query_of(PAGE)
    if "session" in query:  # on the way back from a session that a row opened
        query = address.last_written(PAGE)
    return FleetFilters.from_query(query)


def filter_bar(store: EventReader, filters: FleetFilters) -> None:
    """Draw the filters with the values of the address; a choice changes the address."""
    facets = store.facets()
    bar = widgets.control_bar()
    offered: dict[str, Sequence[str]] = {
        "agent": facets.get("agents", ()),
        "model": facets.get("models", ()),
        "source": facets.get("sources", ()),
        "zone": tuple(reversed(ZONES)),
        "severity": tuple(reversed(SEVERITIES)),
    }
    bar.container().text_input(
        "Session",
        help="Part of its title, id, agent, folder, repository, branch or label.",
        placeholder="contains …",
        max_chars=200,
        **address.bound_widget(PAGE, "text", filters.text or ""),
    )
    for name, options in offered.items():
        value = getattr(filters, name)
        widgets.filter_select(
            bar, name.capitalize(), options, value, bound=address.bound_widget(PAGE, name, value)
        )
    date_range(bar, PAGE, filters.dates)
    bar.container().selectbox(
        "Order",
        list(ORDERS),
        format_func=ORDERS.__getitem__,
        **address.bound_widget(PAGE, "order", filters.order),
    )
    address.write(PAGE, filters.to_query())


def summary(listed: Fleet) -> None:
    """Draw one line of sessions by zone, cost and cache."""
    totals = listed.totals
    parts = [f"{zone_label(zone)} {totals.by_zone.get(zone, 0):,}" for zone in reversed(ZONES)]
    if None in totals.by_zone:
        parts.append(f"– limit unknown {totals.by_zone[None]:,}")
    parts.append(f"cost {dollars(totals.cost_dollars, estimated=totals.estimated_outputs > 0)}")
    if totals.cache_ratio is not None:
        parts.append(f"{percent(totals.cache_ratio)} of the input from the cache")
    parts.append(f"of {count(totals.sessions, 'session')}")
    st.caption(escape_markdown("   ·   ".join(parts)))


def session_table(listed: Fleet, now: float, order: FleetOrder) -> None:
    """Draw the table of sessions; selecting a row opens it."""
    if not listed.rows:
        st.text("No session matches these filters. Clear one to see more.")
        return
    config = st.column_config
    frame = fleet_frame(listed, now)
    widgets.table(
        fleet_styled(frame, widgets.current_palette()),
        key=TABLE,
        alt=ALTERNATIVE,
        on_select=lambda: None,
        selection_mode="single-row",
        height="content" if len(listed.rows) <= 16 else 560,
        column_order=[name for name in frame.columns if name not in HIDDEN],
        numbers={"cost": None, "Δ/turn": TOKENS_SHORT, "now": None, "tokens": None},
        column_config={
            "zone": config.TextColumn(width=76, help="at the last turn"),
            "session": config.LinkColumn(width=190, display_text=TITLE_OF_LINK, alignment="left"),
            "repository": config.TextColumn(width=84, help="repository or folder, branch"),
            "agent": config.TextColumn(width=76),
            "utilization over time": config.AreaChartColumn("utilization", y_min=0, y_max=1, width=64),
            "now": config.NumberColumn(width=46, help="used tokens / limit, at the last turn; ≈ estimated"),
            "worst": config.TextColumn(width=76, help="the worst zone of the session"),
            "next": config.TextColumn(
                width=72, help="turns until the agent's own compaction, or until red; only live sessions"
            ),
            "compactions": config.TextColumn(
                "C", width=40, help="compressions; ◆ where the agent was in the middle of a task"
            ),
            "cost": config.NumberColumn(width=54, help="with its sub-agents; ≈ estimated"),
            "last event": config.TextColumn(width=88, help=LETTERS),
            "alerts": config.TextColumn(width=72, help="firing now: the worst, + how many others"),
            "model": config.TextColumn(width=110),
            "turns": config.NumberColumn(width=44),
            "Δ/turn": config.NumberColumn(width=64, help="tokens per turn, mean of the last 5"),
            "tokens": config.NumberColumn(width=64, help="used tokens at the last turn; ≈ estimated"),
        },
    )
    more = f" Only the first {FLEET_ROWS} are listed: narrow the filters." if listed.more else ""
    listed_text = f"{count(len(listed.rows), 'session')}, {ORDERS[order]}."
    st.caption(
        f"{listed_text} Select a row to open it, with the keyboard by Shift and space. The table's menu has "
        f"more columns.{more}"
    )
    chosen = st.session_state[TABLE].selection.rows
    if chosen:
        session_id = listed.rows[chosen[0]].session_id
        st.switch_page("views/session.py", query_params={"session": session_id})


main()
