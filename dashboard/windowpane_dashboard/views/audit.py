"""Audit: every event in order, with search, export and the state of the hash chain."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import DamagedEvent, StoredEvent, Verification
from windowpane.store.search.events import MAXIMUM_HITS
from windowpane.store.writes.chain import Head
from windowpane.text import formats
from windowpane.text.formats import count
from windowpane_dashboard.page import (
    address,
    downloads,
    long_ranges,
    messages,
    project_choice,
    session_picker,
    store_access,
    times,
    widgets,
)
from windowpane_dashboard.page.downloads import EXPORT_FORMATS
from windowpane_dashboard.page.search_field import search_field, today
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.page.width import page_width
from windowpane_dashboard.queries import filter_chips
from windowpane_dashboard.queries.certificate import certificate
from windowpane_dashboard.queries.events import event_line, events_frame
from windowpane_dashboard.queries.filters import AuditFilters, SessionAddress
from windowpane_dashboard.queries.titles import TITLE_OF_LINK, link_url, session_title, sessions_by_id
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized

PAGE_ROWS = 100
LISTED_DAMAGED = 20
LISTED_BROKEN = 20
VERIFIED, CERTIFICATE = "audit_verified", "audit_certificate"
PAGE, TRAIL = "audit", "audit_trail"
RESTORE = partial(address.update, PAGE)  # the last address, in case the browser has not seen it yet


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The audit log cannot be read"):
        head = st.container()
        filters = AuditFilters.from_query(project_choice.query_of(PAGE))
        snapshot = project_choice.of_project(snapshot, PAGE, filters.project, clears=("after",))
        size = snapshot.store.size()
        if not size.events:
            messages.show_empty("The store is there, but it holds no events yet.")
        recorded = f"{count(size.events, 'event')} of {count(size.sessions, 'session')} recorded"
        with head:
            if snapshot.is_admin:
                recorded += f"; {_chain_state(st.session_state.get(VERIFIED), snapshot.version)}"
            widgets.headline(f"{recorded}.", PAGE if snapshot.is_admin else "")
            if snapshot.is_admin:
                chain_row(snapshot)
        filter_bar(snapshot, filters)
        rows_section(snapshot, filters)
    store_access.rerun_on_change(snapshot, page=PAGE)


def _chain_state(result: tuple[Verification, int] | None, version: int) -> str:
    if result is None:
        return "the chain has not been verified on this page yet"
    verification, verified_version = result
    if not verification.intact:
        return f"the record is broken in {count(len({one.session_id for one in verification.broken}), 'session')}"
    proof = "any alteration" if verification.keyed else "accidents, but not every deliberate alteration"
    if version != verified_version:
        return f"the chain was intact before the store grew (verify again), which excludes {proof}"
    return f"the chain is intact, which excludes {proof}"


def chain_row(snapshot: StoreSnapshot) -> None:
    """Draw the button that verifies the chain, and the last result."""
    left, right = st.columns([1.3, 6], vertical_alignment="center")
    if left.button("Verify chain", icon=":material/verified_user:", width="stretch", on_click=RESTORE):
        at = time.time()
        verification = store_access.whole_store().verify()
        text = certificate(verification, _heads(), store=snapshot.path, at=at)
        st.session_state[VERIFIED] = (verification, snapshot.store.version())
        st.session_state[CERTIFICATE] = (text, formats.utc(at))
        st.rerun()
    result: tuple[Verification, int] | None = st.session_state.get(VERIFIED)
    if result is None:
        right.caption(
            "Each event carries the hash of the one before it in its session. Verifying computes every hash "
            "again, and compares what the pages show with the events."
        )
        return
    verification, _ = result
    with right:
        chain_state(verification, snapshot.store)
        text, moment = st.session_state[CERTIFICATE]
        st.download_button(
            f"Certificate of {moment}",
            data=text,
            file_name=f"windowpane-certificate-{moment[:10]}.txt",
            mime="text/plain",
            icon=":material/workspace_premium:",
            on_click="ignore",
        )


def _heads() -> Sequence[Head]:
    """Return the store-wide chain, brought up to date; empty where this dashboard may not write."""
    try:
        return store_access.whole_store().heads()
    except messages.READ_ERRORS:
        return ()


def chain_state(verification: Verification, store: EventReader) -> None:
    """Draw whether the record is intact or broken, with or without a key, and where it is broken."""
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
        if verification.unkeyed_events:
            st.caption(
                f"{count(verification.unkeyed_events, 'event')} recorded without the key and accepted: "
                "unaltered since then, not proven before."
            )
        return
    st.error(f"Broken here; {escape_markdown(checked + explained)}.", icon=":material/link_off:")
    broken = verification.broken[:LISTED_BROKEN]
    rows = sessions_by_id(store, (link.session_id for link in broken if link.session_id), recent=())
    for number, link in enumerate(broken):
        row = rows.get(link.session_id)
        name = session_title(row) if row else link.session_id or "The store"
        at = "" if link.seq is None else f"From seq {link.seq} on: "
        start = AuditFilters(session=link.session_id or None, after=max(0, (link.seq or 1) - 1))
        label, opens = escape_markdown(name), partial(address.write, PAGE, start.to_query())
        st.button(label, key=f"broken_{number}", type="tertiary", icon=":material/link_off:", on_click=opens)
        widgets.show_text(f"{at}{link.problem}")
    if len(verification.broken) > LISTED_BROKEN:
        st.caption(f"The first {LISTED_BROKEN} of {count(len(verification.broken), 'place')}.")


def filter_bar(snapshot: StoreSnapshot, filters: AuditFilters) -> None:
    """Draw the search field; a choice changes the address and shows the first rows."""
    trail = st.session_state.get(TRAIL, ())
    st.session_state[TRAIL] = [after for after in trail if is_before(after, filters)]
    sessions = session_picker.offered_sessions(snapshot, filters.session).values()
    offered = filter_chips.offered_events(sessions, today())
    search_field(PAGE, filters, offered, text_is="names and numbers; turns may be typed: turns 3..9")


def is_before(after: int, filters: AuditFilters) -> bool:
    """Return whether the page of rows after this `seq` comes before the filters' page; 0 is the first page."""
    if not filters.after or not after:
        return after < filters.after
    return after > filters.after if filters.newest_first else after < filters.after


def rows_section(snapshot: StoreSnapshot, filters: AuditFilters) -> None:
    """Draw one page of rows, the selected row in full, paging and downloads."""
    query = filters.to_store(limit=PAGE_ROWS + 1, zone=times.reader_zone())
    reads = long_ranges.long_ranges(snapshot.store)
    rows = reads.events_or_damage(query)
    long_ranges.show_note(reads)
    if not rows:
        st.text("No event matches these filters.")
        return
    total = reads.count_events(replace(query, after_seq=0, before_seq=None))
    more = " or more" if filters.text and total >= MAXIMUM_HITS else ""
    visible = rows[:PAGE_ROWS]
    _table(snapshot, visible)
    damaged = [one for one in visible if isinstance(one, DamagedEvent)]
    with widgets.part():
        if damaged:
            st.warning(damage_line(damaged), icon=":material/broken_image:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{total:,}{more} matching events, seq {visible[0].seq:,} to {visible[-1].seq:,} shown.")
        _paging(filters, visible[-1].seq if len(rows) > PAGE_ROWS else None)
        _downloads(filters)
    _selected_row(visible)


def damage_line(damaged: Sequence[DamagedEvent]) -> str:
    """Return a warning that lists the damaged events, and what to do about them."""
    numbers = ", ".join(f"{one.seq}" for one in damaged[:LISTED_DAMAGED])
    numbers += ", …" if len(damaged) > LISTED_DAMAGED else ""
    return (
        f"{len(damaged)} of these events cannot be read: seq {numbers}. Verify the chain to see whether "
        "the stored bytes were changed; a JSON Lines download holds them as they are."
    )


def _table(snapshot: StoreSnapshot, visible: Sequence[StoredEvent | DamagedEvent]) -> None:
    frame = events_frame(visible)
    recent = store_access.recent_sessions(snapshot, session_picker.OFFERED)
    rows = sessions_by_id(snapshot.store, frame["session"], recent=recent)
    frame["session"] = [
        link_url(SessionAddress(session_id, turn), rows)
        for session_id, turn in zip(frame["session"], frame["turn"], strict=True)
    ]
    utc, frame["at"] = frame["at"].dt.strftime("%H:%M:%S"), times.in_reader_zone(frame["at"])
    frame.insert(2, "utc", "" if utc.equals(frame["at"].dt.strftime("%H:%M:%S")) else utc)
    config = st.column_config
    widgets.table(
        widgets.without_empty(frame, "at", "utc"),
        key="audit_rows",
        alt="Events in order",
        column_order=("seq", "at", "what", "session", "turn", "hash", "utc"),
        height="content" if len(frame) <= 14 else 480,
        on_select=RESTORE,
        selection_mode="single-row",
        narrow={"what": 218, "at": 98},
        column_config={
            "seq": config.NumberColumn(width=60),
            "at": times.time_column("time (local)", width=124, form="MM-DD HH:mm:ss"),
            "utc": config.TextColumn("UTC", width=66),
            "session": config.LinkColumn(width=168, display_text=TITLE_OF_LINK, alignment="left"),
            "turn": config.NumberColumn(width=48),
            "event": config.TextColumn(width=156),
            "what": config.TextColumn(width=620 if page_width() == "wide" else 300),
            "hash": config.TextColumn(width=104, help="first 12 digits"),
        },
    )


def _selected_row(visible: Sequence[StoredEvent | DamagedEvent]) -> None:
    rows = st.session_state["audit_rows"].selection.rows
    if not rows or rows[0] >= len(visible):
        return
    chosen = visible[rows[0]]
    line = event_line(chosen)
    widgets.show_text(line.what)
    facts = {"seq": str(chosen.seq), "event": line.type, "session": sanitized(line.session_id)}
    facts |= {"hash": chosen.hash, "time": times.local_and_utc(line.at)}
    if isinstance(chosen, StoredEvent):
        facts["event id"] = sanitized(chosen.event.event_id)
        facts["stream"] = f"{sanitized(chosen.event.context.stream_id)}, number {chosen.event.n}"
    st.code("\n".join(f"{name:<10}{value}" for name, value in facts.items()), language=None)


def _paging(filters: AuditFilters, following: int | None) -> None:
    trail: list[int] = st.session_state[TRAIL]
    back, forth = ("Later", "Earlier") if filters.newest_first else ("Earlier", "Later")
    st.button(
        back,
        icon=":material/chevron_left:",
        disabled=not filters.after,
        on_click=lambda: _turn_page(trail.pop() if trail else 0),
    )

    def following_page() -> None:
        trail.append(filters.after)
        _turn_page(following or 0)

    st.button(
        forth,
        icon=":material/chevron_right:",
        icon_position="right",
        disabled=following is None,
        on_click=following_page,
    )


def _turn_page(after: int) -> None:
    address.update(PAGE, after=str(after) if after else None)


def _downloads(filters: AuditFilters) -> None:
    """Draw the links that download all matching events."""
    for name, form in EXPORT_FORMATS.items():
        address_of_all = downloads.address(filters, name, times.reader_zone())
        st.link_button(form.label, address_of_all, icon=":material/download:", help="All that match.")


main()
