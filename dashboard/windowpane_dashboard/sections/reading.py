"""Reading a session's content: a block next to the tabs, and the search for text within the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from windowpane.store.search.content import ContentFilter, ContentHits
from windowpane.text.formats import count
from windowpane_dashboard.page import address, store_access, times, widgets
from windowpane_dashboard.queries.block_text import HitRow, hit_rows, hits_frame
from windowpane_dashboard.queries.filters import MAXIMUM_TEXT, SessionAddress
from windowpane_dashboard.sections.block_panel import block_panel, how_to_capture
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import PAGE
from windowpane_dashboard.sections.window import open_block

HITS: Final = 50
TABLE_PIXELS: Final = 460


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
    """Draw the search for text in the session; selecting a hit reads its block."""
    position = SessionAddress.from_query(st.query_params.to_dict())
    st.text_input(
        "Find text in this session",
        placeholder='words or parts of words; "in quotation marks" they stand together',
        max_chars=MAXIMUM_TEXT,
        **address.bound_widget(PAGE, "text", position.text or ""),
    )
    if not position.text:
        st.caption("Everything that was captured of this session is searched, removed blocks as well.")
        return
    result = store_access.find_content(view.snapshot, ContentFilter(position.text, view.row.session_id, HITS))

    def choose(row: HitRow) -> None:
        open_block(row.occurrence.block_id)

    hits_table(result, {}, key="hits", choose=choose, without=("session",))


def hits_table(
    result: ContentHits,
    titles: dict[str, str],
    *,
    key: str,
    choose: Callable[[HitRow], None],
    without: Sequence[str] = (),
) -> None:
    """Draw the matches as a table; selecting a row calls *choose*."""
    if result.texts == 0:
        how_to_capture()
        return
    rows = hit_rows(result)
    if not rows:
        st.text(f"No captured content contains this. {_coverage(result)}")
        return
    frame = hits_frame(rows, titles)
    frame["time"] = times.in_reader_zone(frame["time"])
    empty = ["time"] if frame["time"].isna().all() else []
    frame = frame.drop(columns=[*without, *empty])

    def on_select() -> None:
        chosen = st.session_state[key].selection.rows
        if chosen and chosen[0] < len(rows):
            choose(rows[chosen[0]])

    config: dict[str, Any] = {
        "text": st.column_config.TextColumn(width=300 if "what" in without else 440),
        "session": st.column_config.TextColumn(width=180),
        "turn": st.column_config.NumberColumn(width=56),
        "what": st.column_config.TextColumn(width=150),
        "tokens": st.column_config.NumberColumn(width=64),
        "time": times.time_column("time (local)", width=140),
    }
    widgets.table(
        frame,
        key=key,
        alt="Matches, the latest first",
        height=TABLE_PIXELS if len(frame) > 12 else "content",
        on_select=on_select,
        selection_mode="single-row",
        column_config=config,
    )
    st.caption(
        f"{count(len(rows), 'block')} with {count(len(result.hits), 'matching passage')}. {_coverage(result)}"
    )


def _coverage(result: ContentHits) -> str:
    number = "All" if result.texts is None else f"{result.texts:,}"
    parts = [f"{number} captured passages are searched."]
    if not result.is_whole:
        parts.append("There may be more: add a word to see others.")
    if result.waiting:
        parts.append(f"{count(result.waiting, 'passage')} not indexed yet.")
    return " ".join(parts)
