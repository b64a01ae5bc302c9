"""Audit: every event in order, with search, export and the state of the hash chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from windowpane.core.events import PAYLOADS
from windowpane.store.interface import SessionFilter
from windowpane.store.records import DamagedEvent, StoredEvent, Verification
from windowpane.store.search import MAXIMUM_HITS
from windowpane.text.formats import count
from windowpane.text.labels import event_label
from windowpane_dashboard.page import address, downloads, messages, store_access, times, widgets
from windowpane_dashboard.page.downloads import EXPORT_FORMATS
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.events import events_frame, line_of
from windowpane_dashboard.queries.filters import AuditFilters
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized

PAGE_ROWS = 100
OFFERED = 200
NAMED = 20
VERIFIED = "audit_verified"
PAGE, TRAIL = "audit", "audit_trail"


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The audit log cannot be read"):
        size = snapshot.store.size()
        if not size.events:
            messages.show_empty("The store is there, but it holds no events yet.")
        widgets.headline(
            f"{count(size.events, 'event')} of {count(size.sessions, 'session')} recorded; "
            f"{_chain_words(st.session_state.get(VERIFIED))}."
        )
        chain_row(snapshot)
        filters = filter_bar(snapshot)
        rows_section(snapshot, filters)
    store_access.rerun_on_change(snapshot, page=PAGE)


def _chain_words(found: tuple[Verification, int] | None) -> str:
    if found is None:
        return "the chain has not been verified on this page yet"
    verification = found[0]
    if not verification.intact:
        return f"the chain is broken in {count(len({one.session_id for one in verification.broken}), 'session')}"
    return "the chain is intact, keyed" if verification.keyed else "the chain is intact, without a key"


def chain_row(snapshot: StoreSnapshot) -> None:
    """The button that verifies the chain, and what it found."""
    left, right = st.columns([1.3, 6], vertical_alignment="center")
    if left.button("Verify chain", icon=":material/verified_user:", width="stretch", on_click=_stay):
        st.session_state[VERIFIED] = (snapshot.store.verify(), snapshot.version)
        st.rerun()
    found: tuple[Verification, int] | None = st.session_state.get(VERIFIED)
    if found is None:
        right.caption(
            "Each event carries the hash of the one before it in its session. "
            "Verifying computes every hash again."
        )
        return
    verification, version = found
    with right:
        chain_state(verification)
        if version != snapshot.version:
            st.caption("The store has grown since: verify again to include the new events.")


def _stay() -> None:
    """The address as it was written last, whatever the browser has seen of it."""
    address.update(PAGE)


def chain_state(verification: Verification) -> None:
    """Intact or broken, with or without a key, and where."""
    checked = f"{count(verification.events, 'event')} of {count(verification.sessions, 'session')} checked"
    gaps = verification.explained_gaps
    explained = f"; {count(gaps, 'gap')} explained by dropped telemetry" if gaps else ""
    if verification.intact:
        meaning = (
            "with a key: alteration would show"
            if verification.keyed
            else "without a key: accidents show, deliberate alteration may not (set WINDOWPANE_AUDIT_KEY)"
        )
        st.markdown(f":material/check_circle: **Intact**, {escape_markdown(f'{meaning}. {checked}{explained}.')}")
        return
    st.error(f"Broken. {escape_markdown(checked + explained)}.", icon=":material/link_off:")
    for link in verification.broken[:20]:
        where = f"seq {link.seq}" if link.seq is not None else "place unknown"
        widgets.show_text(
            f"Broken at {where} in session {link.session_id} (revision {link.revision}): {link.problem}"
        )


def filter_bar(snapshot: StoreSnapshot) -> AuditFilters:
    """The filters as the address has them; choosing another changes the address and begins at the first row."""
    asked = AuditFilters.from_query(st.query_params.to_dict())
    st.session_state[TRAIL] = [after for after in st.session_state.get(TRAIL, ()) if after < asked.after]

    def part(name: str, value: object) -> dict[str, Any]:
        return address.bound_widget(PAGE, name, value, clears=("after",))

    sessions = [row.session_id for row in snapshot.store.sessions(SessionFilter(order="recent", limit=OFFERED))]
    places = st.columns([2.2, 2.6, 0.9, 0.9, 2])
    widgets.filter_select(places[0], "Session", sessions, asked.session, part=part("session", asked.session))
    places[1].multiselect(
        "Events", list(PAYLOADS), format_func=event_label, placeholder="any", **part("types", list(asked.types))
    )
    turn: dict[str, Any] = {"min_value": 0, "step": 1}
    places[2].number_input("From turn", placeholder="first", **turn, **part("turn_from", asked.turn_from))
    places[3].number_input("To turn", placeholder="last", **turn, **part("turn_to", asked.turn_to))
    places[4].text_input(
        "Search", placeholder="names and figures", max_chars=200, **part("text", asked.text or "")
    )
    address.write(PAGE, asked.to_query())
    return asked


def rows_section(snapshot: StoreSnapshot, filters: AuditFilters) -> None:
    """One page of rows, with what a row says in full, paging and downloads."""
    query = filters.to_store(limit=PAGE_ROWS + 1)
    found = snapshot.store.events_or_damage(query)
    if not found:
        st.text("No event matches these filters.")
        return
    total = snapshot.store.count_events(replace(query, after_seq=0))
    more = " or more" if filters.text and total >= MAXIMUM_HITS else ""
    shown = found[:PAGE_ROWS]
    _table(shown)
    damaged = [one for one in shown if isinstance(one, DamagedEvent)]
    if damaged:
        st.warning(damage_line(damaged), icon=":material/broken_image:")
    left, middle, right = st.columns([2.6, 2.2, 3.8], vertical_alignment="center")
    left.caption(
        f"{total:,}{more} matching events, seq {shown[0].seq:,} to {shown[-1].seq:,} shown; "
        "a download holds all that match."
    )
    with middle:
        _paging(filters, shown[-1].seq if len(found) > PAGE_ROWS else None)
    with right:
        _downloads(filters)
    _selected_row(shown)


def damage_line(damaged: Sequence[DamagedEvent]) -> str:
    """Which of the rows cannot be read, and what to do about it."""
    numbers = ", ".join(f"{one.seq}" for one in damaged[:NAMED]) + (", …" if len(damaged) > NAMED else "")
    return (
        f"{len(damaged)} of these events cannot be read: seq {numbers}. Verify the chain to see whether "
        "the stored bytes were changed; a JSON Lines download holds them as they are."
    )


def _table(shown: Sequence[StoredEvent | DamagedEvent]) -> None:
    frame = events_frame(shown)
    frame.insert(2, "utc", frame["at"].dt.strftime("%H:%M:%S"))
    frame["at"] = times.in_reader_zone(frame["at"])
    config = st.column_config
    widgets.table(
        frame,
        key="audit_rows",
        alt="Events in order",
        height="content" if len(frame) <= 14 else 480,
        on_select=_stay,
        selection_mode="single-row",
        column_config={
            "seq": config.NumberColumn(width=60),
            "at": times.time_column("time (local)", width=138),
            "utc": config.TextColumn("UTC", width=66),
            "session": config.TextColumn(width=130),
            "turn": config.NumberColumn(width=48),
            "event": config.TextColumn(width=156),
            "what": config.TextColumn(width=400),
            "hash": config.TextColumn(width=100, help="first 12 digits"),
        },
    )


def _selected_row(shown: Sequence[StoredEvent | DamagedEvent]) -> None:
    rows = st.session_state["audit_rows"].selection.rows
    if not rows or rows[0] >= len(shown):
        return
    chosen = shown[rows[0]]
    line = line_of(chosen)
    widgets.show_text(line.what)
    facts = {"seq": str(chosen.seq), "hash": chosen.hash, "time": times.local_and_utc(line.at)}
    if isinstance(chosen, StoredEvent):
        event = chosen.event
        facts |= {
            "event id": sanitized(event.event_id),
            "stream": f"{sanitized(event.context.stream_id)}, number {event.n}",
        }
    st.code("\n".join(f"{name:<10}{said}" for name, said in facts.items()), language=None)


def _paging(filters: AuditFilters, following: int | None) -> None:
    trail: list[int] = st.session_state[TRAIL]
    left, right = st.columns(2)
    left.button(
        "Earlier",
        icon=":material/chevron_left:",
        disabled=not filters.after,
        width="stretch",
        on_click=lambda: _turn_page(trail.pop() if trail else 0),
    )

    def later() -> None:
        trail.append(filters.after)
        _turn_page(following or 0)

    right.button(
        "Later",
        icon=":material/chevron_right:",
        icon_position="right",
        disabled=following is None,
        width="stretch",
        on_click=later,
    )


def _turn_page(after: int) -> None:
    address.update(PAGE, after=str(after) if after else None)


def _downloads(filters: AuditFilters) -> None:
    """All that matches, from the first event on, whichever rows are shown."""
    for place, (name, form) in zip(st.columns(len(EXPORT_FORMATS)), EXPORT_FORMATS.items(), strict=True):
        place.link_button(
            form.label, downloads.address(filters, name), icon=":material/download:", width="stretch"
        )


main()
