"""Reading a session's content: a block next to the tabs, and the search for text within the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import streamlit as st

from windowpane.store.records import SessionRow
from windowpane.store.search.content import ContentFilter, ContentHits, Occurrence
from windowpane.text.formats import UNKNOWN, count
from windowpane.text.labels import content_name
from windowpane_dashboard.page import address, store_access, times
from windowpane_dashboard.queries.block_text import HitRow, marked, rows_by_session
from windowpane_dashboard.queries.filters import MAXIMUM_TEXT, SessionAddress
from windowpane_dashboard.queries.titles import project, session_title
from windowpane_dashboard.sections.block_panel import block_panel, how_to_capture
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import PAGE
from windowpane_dashboard.sections.window import open_block
from windowpane_dashboard.style.sanitize import escape_markdown

HITS: Final = 200
FIRST: Final = 3
"""Matches that are shown of a session."""
OPENED_SESSIONS: Final = 20
"""Sessions of which matches are shown; of the others only their number."""


def beside_block(view: SessionView, draw: Callable[[], None]) -> None:
    """Call *draw* next to the block of the address, or alone where none is open."""
    position = SessionAddress.from_query(st.query_params.to_dict())
    if position.block is None:
        draw()
        return
    left, right = st.columns([1.1, 1], gap="medium")
    with left:
        draw()
    with right:
        block_panel(
            view.snapshot,
            view.row.session_id,
            position.block,
            close=lambda: open_block(None),
            query=position.text or "",
        )


def find_section(view: SessionView) -> None:
    """Draw the search for text in the session."""
    position = SessionAddress.from_query(st.query_params.to_dict())
    st.text_input(
        "Find text in this session",
        placeholder='words, or a phrase "in quotation marks"',
        max_chars=MAXIMUM_TEXT,
        **address.bound_widget(PAGE, "text", position.text or ""),
    )
    if not position.text:
        st.caption("Everything that was captured of this session is searched, also what was removed.")
        return
    result = store_access.find_content(view.snapshot, ContentFilter(position.text, view.row.session_id, HITS))
    if not result.hits:
        no_hits(result)
        return
    inside = set(view.window.blocks["block"])

    def state(block: Occurrence) -> str:
        if block.block_id in inside:
            return "in the window"
        removed = block.turn_removed
        return "added later" if removed is None or removed > view.turn else f"removed at turn {removed}"

    best = [min(hit.occurrences, key=lambda one: one.block_id not in inside) for hit in result.hits]
    rows = [HitRow(one, hit.snippet) for one, hit in zip(best, result.hits, strict=True)]
    rows.sort(key=lambda row: row.occurrence.block_id not in inside)
    present = sum(one.block_id in inside for one in best)
    st.text(f"In the window of turn {view.turn}: {present:,} of {count(len(rows), 'matching passage')}.")
    with st.container(key="hits", gap="small"):
        _hits(rows, position.text, state)
    st.caption(coverage(result))


def found_sessions(result: ContentHits, sessions: Mapping[str, SessionRow], *, query: str) -> None:
    """Draw the matches of several sessions, of each the first; the best session first."""
    groups = rows_by_session(result, query)
    with st.container(key="hits", gap="small"):
        for position, rows in enumerate(groups):
            visible = FIRST if position < OPENED_SESSIONS else 0
            session_id = rows[0].occurrence.session_id
            row = sessions.get(session_id)
            names = (session_id,) if row is None else (session_title(row), project(row), times.day(row.last_at))
            st.markdown(f"**{escape_markdown(' · '.join(name for name in names if name != UNKNOWN))}**")
            _hits(rows[:visible], query)
            if len(rows) > visible:
                whole = SessionAddress(session_id, tab="find", text=query)
                label = f"{len(rows) - visible:,} {'more ' if visible else ''}in this session"
                st.page_link("views/session.py", label=label, query_params=whole.to_query())
    st.caption(coverage(result))


def no_hits(result: ContentHits) -> None:
    """Report that nothing matches, and how content is captured where none is."""
    if result.texts == 0:
        how_to_capture()
    else:
        st.text(f"No captured content contains this. {coverage(result)}")


def _hits(rows: Sequence[HitRow], query: str, state: Callable[[Occurrence], str] = lambda _: "") -> None:
    """Draw each match as a link to its turn and block, with its *state*."""
    for row in rows:
        block = row.occurrence
        names = (f"turn {block.turn}", content_name(block.content_type, block.tool_name), state(block))
        where = escape_markdown(" · ".join(filter(None, names)))
        position = SessionAddress(block.session_id, block.turn, tab="find", block=block.block_id, text=query)
        label = f"**{where}**  {marked(row.snippet)}"
        st.page_link("views/session.py", label=label, query_params=position.to_query())


def coverage(result: ContentHits) -> str:
    """Return how much was searched."""
    number = "All" if result.texts is None else f"{result.texts:,}"
    parts = [f"{number} captured passages are searched."]
    if not result.is_whole:
        parts.append("There may be more: add a word to see others.")
    if result.waiting:
        parts.append(f"{count(result.waiting, 'passage')} not indexed yet.")
    return " ".join(parts)
