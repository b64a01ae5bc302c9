"""Reading a session's content: a block next to the tabs, and the search for text within the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import streamlit as st

from windowpane.store.search.content import ContentFilter, ContentHits
from windowpane.text.formats import count
from windowpane_dashboard.page import address, store_access
from windowpane_dashboard.queries.block_text import hit_rows, marked, occurrence_name
from windowpane_dashboard.queries.filters import MAXIMUM_TEXT, SessionAddress
from windowpane_dashboard.sections.block_panel import block_panel, how_to_capture
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import PAGE
from windowpane_dashboard.sections.window import open_block
from windowpane_dashboard.style.sanitize import escape_markdown

HITS: Final = 50


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
        placeholder='words or parts of words; "in quotation marks" they stand together',
        max_chars=MAXIMUM_TEXT,
        **address.bound_widget(PAGE, "text", position.text or ""),
    )
    if not position.text:
        st.caption("Everything that was captured of this session is searched, also what was removed.")
        return
    result = store_access.find_content(view.snapshot, ContentFilter(position.text, view.row.session_id, HITS))
    hits_list(result, {}, query=position.text)


def hits_list(result: ContentHits, titles: Mapping[str, str], *, query: str) -> None:
    """Draw the matches, each as a link to its turn and block; *titles* are the names of several sessions."""
    if result.texts == 0:
        how_to_capture()
        return
    rows = hit_rows(result)
    if not rows:
        st.text(f"No captured content contains this. {_coverage(result)}")
        return
    with st.container(key="hits", gap="small"):
        for row in rows:
            block = row.occurrence
            names = (titles.get(block.session_id), f"turn {block.turn}", occurrence_name(block))
            where = escape_markdown(" · ".join(name for name in names if name))
            position = SessionAddress(block.session_id, block.turn, tab="find", block=block.block_id, text=query)
            label = f"**{where}**  {marked(row.snippet)}"
            st.page_link("views/session.py", label=label, query_params=position.to_query())
    st.caption(
        f"{count(len(rows), 'item')} with {count(len(result.hits), 'matching passage')}. {_coverage(result)}"
    )


def _coverage(result: ContentHits) -> str:
    number = "All" if result.texts is None else f"{result.texts:,}"
    parts = [f"{number} captured passages are searched."]
    if not result.is_whole:
        parts.append("There may be more: add a word to see others.")
    if result.waiting:
        parts.append(f"{count(result.waiting, 'passage')} not indexed yet.")
    return " ".join(parts)
