"""The window at the selected turn, and what had left it by then."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.store.interface import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, percent, tokens
from windowpane.text.labels import zone_label
from windowpane_dashboard.page import widgets
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.queries.window import REMOVED_ROWS, removed_blocks, window_at
from windowpane_dashboard.sections.block_strip import block_strip, window_strip

TABLE_PIXELS = 360


def window_section(store: EventReader, row: SessionRow, timeline: Timeline, turn: int) -> None:
    """Draw the blocks of the window as a strip and a table, beside what had left."""
    here = timeline.turns[timeline.turns["turn"] == turn]
    if here.empty:
        st.text(f"Turn {turn} was not measured.")
        return
    figures = here.iloc[0]
    evicted_turn = last_eviction(timeline.marks, turn)
    blocks = window_at(store, row.session_id, turn, evicted_turn=evicted_turn)
    st.subheader(turn_heading(figures, turn), anchor=False, divider="grey")
    if blocks.empty:
        st.text("Which blocks the window held at this turn was not recorded.")
    else:
        limit = None if pd.isna(figures["limit_tokens"]) else float(figures["limit_tokens"])
        st.caption(
            "The window as this call sent it: every block in order, from the start of the prompt on the left, "
            "as wide as its tokens. Point at a block to see what it is."
        )
        palette = widgets.current_palette()
        block_strip(
            window_strip(blocks, palette, limit_tokens=limit),
            palette,
            alt=f"{count(len(blocks), 'block')} of the window in order, listed in the table below",
        )
    left, right = st.columns([1, 1.15], gap="medium")
    with left:
        _in_window(blocks, evicted_turn)
    with right:
        _had_left(removed_blocks(store, row.session_id, turn, blocks))


def turn_heading(figures: pd.Series, turn: int) -> str:
    """A turn's size in words: `Turn 40: 118,204 of 131,072 tokens, 90% utilization, ● red`."""
    size = tokens(figures["used"], estimated=figures["count_source"] == "estimate")
    if pd.isna(figures["utilization"]):
        return f"Turn {turn}: {size} tokens"
    return (
        f"Turn {turn}: {size} of {tokens(figures['limit_tokens'])} tokens, "
        f"{percent(figures['utilization'])} utilization, {zone_label(figures['zone'])}"
    )


def last_eviction(marks: pd.DataFrame, turn: int) -> int | None:
    """The last turn up to *turn* in which something was evicted."""
    evicted = marks.loc[(marks["letter"] == "E") & (marks["turn"] <= turn), "turn"]
    return int(evicted.max()) if len(evicted) else None


def _in_window(blocks: pd.DataFrame, evicted_turn: int | None) -> None:
    st.markdown("**In the window**")
    if blocks.empty:
        return
    shown = blocks.drop(columns=["component", "count"])
    empty = [name for name in ("stands for", "preview") if not shown[name].any()]
    if not shown["pinned"].any():
        empty.append("pinned")
    if shown["score"].isna().all():
        empty.append("score")
    widgets.table(
        shown.drop(columns=empty),
        key="in_window",
        alt="Blocks of the window in order",
        height=TABLE_PIXELS if len(shown) > 9 else "content",
        column_config={
            "tokens": st.column_config.NumberColumn(format="localized", width=64),
            "what": st.column_config.TextColumn(width=150),
            "age": st.column_config.NumberColumn(width=44, help="turns since it came in"),
            "score": st.column_config.NumberColumn(
                format="%.2f",
                width=50,
                help=f"at the eviction of turn {evicted_turn}: 0 evict first, 1 keep; only those that would have "
                "been next have one",
            ),
            "from turn": st.column_config.NumberColumn("since turn", width=70),
            "preview": st.column_config.TextColumn(width=260),
            "block": st.column_config.TextColumn(width=64),
            "last used": st.column_config.TextColumn(
                width=70,
                help="the last turn in which later content used something that only this block holds; `later` "
                "where that was after the turn you look at",
            ),
        },
    )
    st.caption(f"{count(len(blocks), 'block')}, in the order the model saw them.")


def _had_left(left: pd.DataFrame) -> None:
    st.markdown("**Had left by now, and why**")
    if left.empty:
        st.text("Nothing had left the window.")
        return
    gone = [name for name in ("needed again",) if not left[name].any()]
    if left["score"].isna().all():
        gone.append("score")
    widgets.table(
        left.drop(columns=gone),
        key="had_left",
        alt="Blocks that had left the window, latest first",
        height=TABLE_PIXELS if len(left) > 9 else "content",
        column_config={
            "what": st.column_config.TextColumn(width=130),
            "why": st.column_config.TextColumn(width=170),
            "in its place": st.column_config.TextColumn(width=150),
            "needed again": st.column_config.TextColumn(width=140),
            "left": st.column_config.NumberColumn("turn", width=44, help="turn in which it left"),
            "block": st.column_config.TextColumn(width=64),
            "tokens": st.column_config.NumberColumn(format="localized", width=64),
            "score": st.column_config.NumberColumn(format="%.2f", width=56, help="0 evict first, 1 keep"),
        },
    )
    again = int((left["needed again"] != "").sum())
    first = f"The latest {REMOVED_ROWS}" if len(left) == REMOVED_ROWS else count(len(left), "block")
    st.caption(f"{first}, latest first; {again:,} of them needed again.")
