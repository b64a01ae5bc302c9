"""Fleet: all sessions, those that need a person first."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import streamlit as st

from windowpane.answers import fleet_answer
from windowpane.exceptions import ConfigurationError
from windowpane.formats import count, dollars, percent
from windowpane.signs import zone_label
from windowpane.store.base import EventReader, SessionFilter
from windowpane.vocabulary import ZONES
from windowpane_dashboard import access, elements
from windowpane_dashboard.filters import SEVERITIES, FleetFilters
from windowpane_dashboard.fleet_table import fleet_styled
from windowpane_dashboard.queries import FLEET_ROWS, Fleet, fleet_frame
from windowpane_dashboard.retention import bytes_on_disk, configured_retention, retention_words, stored_words

TABLE = "fleet_table"


def main() -> None:
    """Draw the page."""
    snapshot = access.page_snapshot()
    with access.contained("The sessions cannot be listed"):
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            access.show_empty("The store is there, but it holds no sessions yet.")
        head = st.container()
        filters = filter_bar(snapshot.store)
        listed = access.fleet(snapshot, filters)
    now = time.time()
    with head:
        elements.answer(fleet_answer(listed.rows, now, firing=listed.firing))
        summary(listed)
    session_table(listed, now)
    with access.contained("The size of the store cannot be read"):
        store_line(snapshot, now)
    access.follow(snapshot)


def store_line(snapshot: access.Snapshot, now: float) -> None:
    """How much is stored, and how long it stays."""
    stored = stored_words(snapshot.store.size(), bytes_on_disk(Path(snapshot.path)), now)
    try:
        kept = f"Whole sessions are let go {retention_words(configured_retention())}"
    except ConfigurationError as error:
        kept = f"How long sessions are kept is not known, because the settings cannot be read ({error}). They go"
    st.caption(
        elements.escaped(
            f"{stored} {kept}, by `windowpane serve` and `windowpane prune`; a tombstone of each stays in the "
            "audit chain."
        )
    )


def filter_bar(store: EventReader) -> FleetFilters:
    """The filters, taken from the address when the page opens and written back to it."""
    asked = FleetFilters.from_query(st.query_params.to_dict())
    facets = store.facets()
    columns = st.columns([2, 2, 2, 1.6, 1.4, 1.4])
    chosen = FleetFilters(
        text=_typed(columns[0], asked.text),
        agent=elements.choice(columns[1], "Agent", facets.get("agents", ()), asked.agent, key="fleet_agent"),
        model=elements.choice(columns[2], "Model", facets.get("models", ()), asked.model, key="fleet_model"),
        source=elements.choice(columns[3], "Source", facets.get("sources", ()), asked.source, key="fleet_source"),
    )
    zone = elements.choice(columns[4], "Zone", tuple(reversed(ZONES)), asked.zone, key="fleet_zone")
    severity = elements.choice(
        columns[5], "Severity", tuple(reversed(SEVERITIES)), asked.severity, key="fleet_severity"
    )
    words = {"zone": zone or "", "severity": severity or ""}
    known = FleetFilters.from_query(words)
    chosen = replace(chosen, zone=known.zone, severity=known.severity)
    if chosen.to_query() != st.query_params.to_dict():
        st.query_params.from_dict(chosen.to_query())
    return chosen


def _typed(place: st.delta_generator.DeltaGenerator, asked: str | None) -> str | None:
    st.session_state.setdefault("fleet_text", asked or "")
    text = place.text_input("Session or agent", key="fleet_text", placeholder="contains …", max_chars=200)
    return text.strip() or None


def summary(listed: Fleet) -> None:
    """Sessions by zone, cost and cache, in one quiet line."""
    counts = listed.zone_counts
    parts = [f"{label} {counts[label]:,}" for label in (zone_label(zone) for zone in reversed(ZONES))]
    unknown = counts.get("–", 0)
    if unknown:
        parts.append(f"– limit unknown {unknown:,}")
    parts.append(f"cost {dollars(listed.cost_dollars)}")
    parts.append(f"{percent(listed.cache_ratio)} of the input from the cache")
    st.caption(elements.escaped("   ·   ".join(parts)))


def session_table(listed: Fleet, now: float) -> None:
    """The table of sessions; choosing a row opens it."""
    if not listed.rows:
        st.text("No session matches these filters. Clear one to see more.")
        return
    config = st.column_config
    elements.table(
        fleet_styled(fleet_frame(listed, now), elements.current_palette()),
        key=TABLE,
        alt="Sessions, the one under most pressure first",
        on_select=lambda: None,
        selection_mode="single-row",
        height="content" if len(listed.rows) <= 16 else 560,
        column_config={
            "zone": config.TextColumn(width=92),
            "session": config.LinkColumn(width=190, display_text=r"session=([^&]+)", alignment="left"),
            "agent": config.TextColumn(width=110),
            "model": config.TextColumn(width=100),
            "utilization over time": config.AreaChartColumn("utilization", y_min=0, y_max=1, width=120),
            "now": config.NumberColumn(width=60, help="used tokens / limit, at the last turn; ≈ estimated"),
            "tokens": config.NumberColumn(width=64, help="used tokens at the last turn; ≈ estimated"),
            "red in": config.TextColumn(width=64, help="turns until red, median forecast; only live sessions"),
            "Δ/turn": config.NumberColumn(format="compact", width=64, help="tokens a turn, mean of the last 5"),
            "turns": config.NumberColumn(width=56),
            "cost": config.NumberColumn(format="dollar", width=70),
            "last event": config.TextColumn(width=104),
            "alerts": config.TextColumn(width=84),
        },
    )
    more = f" Only the first {FLEET_ROWS} are listed: narrow the filters to see others." if listed.more else ""
    st.caption(f"{count(len(listed.rows), 'session')}, most pressure first. Select a row to open it.{more}")
    chosen = st.session_state[TABLE].selection.rows
    if chosen:
        session_id = listed.rows[chosen[0]].session_id
        st.switch_page("views/session.py", query_params={"session": session_id})


main()
