"""The window at the selected turn, and the blocks removed by then."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.report.headline import turn_headline
from windowpane.text.formats import count
from windowpane_dashboard.page import address, store_access, widgets
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.window import REMOVED_ROWS, TurnWindow, removed_blocks
from windowpane_dashboard.sections.block_strip import block_strip, window_strip
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import PAGE


def turn_heading(window: TurnWindow) -> None:
    """Draw the size of the window."""
    if window.values is None:
        st.text(f"Turn {window.turn} was not measured.")
        return
    st.subheader(
        heading_text(window.values, window.turn),
        anchor=False,
        help="The window as this call sent it: every block in order, from the start of the prompt on the left, "
        "as wide as its tokens. Point at a block to see what it is, and click it to read it.",
    )


def window_section(window: TurnWindow) -> None:
    """Draw the blocks of the window as a strip."""
    if window.values is None:
        return
    limit = window.values["limit_tokens"]
    if window.blocks.empty:
        st.text("The blocks of the window at this turn were not recorded.")
        return
    palette = widgets.current_palette()
    block_strip(
        window_strip(window.blocks, palette, limit_tokens=None if pd.isna(limit) else float(limit)),
        palette,
        alt=f"{count(len(window.blocks), 'block')} of the window in order, as in the table of blocks",
        on_select=open_block,
    )


def open_block(block_id: str | None) -> None:
    """Read a block next to the tabs; None closes it."""
    address.update(PAGE, block=block_id)


def blocks_section(view: SessionView) -> None:
    """Draw the blocks of the window as a table, next to the removed blocks."""
    window = view.window
    is_reading = SessionAddress.from_query(st.query_params.to_dict()).block is not None
    removed = store_access.cached_for_session(
        view.snapshot,
        view.row,
        f"removed by turn {window.turn}",
        lambda: removed_blocks(view.snapshot.store, view.row.session_id, window.turn, window.blocks),
    )
    is_stacked = is_reading or removed.empty
    left, right = (
        (st.container(), st.container()) if is_stacked else widgets.wrapping_columns([1, 1.15], narrowest="table")
    )
    with left:
        _in_window(window.blocks)
    with right:
        st.markdown("**Removed by now, and why**")
        if removed.empty:
            st.text(nothing_removed(view.timeline.marks, window.turn))
        else:
            _removed(removed)


def nothing_removed(marks: pd.DataFrame, turn: int) -> str:
    """Return why no removed block is listed at *turn*: nothing was removed, or the recording does not hold it."""
    if (marks["letter"].isin(["R", "C"]) & (marks["turn"] <= turn)).any():
        return "The blocks removed by now are not in the recording; the events in the chart give their number."
    return "Nothing had been removed from the window."


def heading_text(values: pd.Series, turn: int) -> str:
    """Return `turn_headline` of a row of `turns_frame`."""
    limit, share = (None if pd.isna(values[name]) else values[name] for name in ("limit_tokens", "utilization"))
    return turn_headline(
        turn,
        values["used"],
        limit_tokens=limit,
        utilization=share,
        zone=values["zone"],
        estimated=values["count_source"] == "estimate",
        ended=bool(values["ended"]),
        removed_from=None if pd.isna(values["used_after"]) else values["used_before"],
    )


def _in_window(blocks: pd.DataFrame) -> None:
    st.markdown("**In the window**")
    if blocks.empty:
        return
    visible = blocks.drop(columns=["component", "count"])
    visible.insert(1, "≈", ["≈" if source == "estimate" else "" for source in blocks["count"]])
    widgets.table(
        widgets.without_empty(visible, "replaces", "preview", "pinned"),
        key="in_window",
        alt="Blocks of the window in order",
        on_row=lambda row: open_block(visible["block"].iloc[row]),
        column_config={
            "tokens": st.column_config.NumberColumn(width=64),
            "what": st.column_config.TextColumn(width=170),
            "≈": st.column_config.TextColumn(
                width=24, help="≈ estimated: blocks are counted one by one and scaled to what the call measured"
            ),
            "age": st.column_config.NumberColumn(width=44, help="turns since it was added"),
            "from turn": st.column_config.NumberColumn("since turn", width=70),
            "preview": st.column_config.TextColumn("text", width=260),
            "block": st.column_config.TextColumn(width=64),
            "last used": st.column_config.TextColumn(
                width=70,
                help="the last turn whose content used something that only this block holds; `later` if "
                "that is after the selected turn",
            ),
        },
    )
    st.caption(f"{count(len(blocks), 'block')}, in the order the model saw them. Select a row to read the block.")


def _removed(removed: pd.DataFrame) -> None:
    widgets.table(
        widgets.without_empty(removed, "needed again", "preview"),
        key="removed",
        alt="Blocks removed from the window, latest first",
        on_row=lambda row: open_block(removed["block"].iloc[row]),
        column_config={
            "what": st.column_config.TextColumn(width=160),
            "why": st.column_config.TextColumn(width=170),
            "replaced by": st.column_config.TextColumn(width=150, help="a placeholder names the block"),
            "needed again": st.column_config.TextColumn(width=140),
            "preview": st.column_config.TextColumn("text", width=220),
            "removed": st.column_config.NumberColumn("turn", width=44, help="turn of the removal"),
            "block": st.column_config.TextColumn(width=64),
            "tokens": st.column_config.NumberColumn(width=64),
        },
    )
    listed = f"The latest {REMOVED_ROWS} blocks" if len(removed) == REMOVED_ROWS else count(len(removed), "block")
    st.caption(f"{listed}, latest first.")
