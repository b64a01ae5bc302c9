"""The window at the selected turn, and what was removed by then."""

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
from windowpane_dashboard.style.sanitize import escape_markdown


def turn_heading(window: TurnWindow) -> None:
    """Draw the size of the window."""
    if window.values is None:
        st.text(f"Turn {window.turn} was not measured.")
        return
    st.subheader(
        heading_text(window.values, window.turn),
        anchor=False,
        help="The window as this call sent it: every message, tool call and result in order, as wide "
        "as its tokens. Point at one to see what it is, and click it to read it.",
    )


def window_section(window: TurnWindow) -> None:
    """Draw the blocks of the window as a strip."""
    if window.values is None:
        return
    limit = window.values["limit_tokens"]
    if window.blocks.empty:
        st.text("The content of the window at this turn was not recorded.")
        return
    palette = widgets.current_palette()
    block_strip(
        window_strip(window.blocks, palette, limit_tokens=None if pd.isna(limit) else float(limit)),
        palette,
        alt=f"{count(len(window.blocks), 'item')} of the window in order, as in the table below",
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
        st.markdown("**Removed by now**")
        if removed.empty:
            st.text(nothing_removed(view.timeline.marks, window.turn))
        else:
            _removed(removed)


def nothing_removed(marks: pd.DataFrame, turn: int) -> str:
    """Return why no removed block is listed at *turn*: nothing was removed, or the recording does not hold it."""
    if (marks["letter"].isin(["R", "C"]) & (marks["turn"] <= turn)).any():
        return "What was removed by now is not in the recording; the events in the chart give its size."
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
    st.caption(f"{count(len(blocks), 'item')}, in the order the model saw them. Select a row to read it.")
    size = "≈ tokens" if (blocks["count"] == "estimate").any() else "tokens"
    visible = blocks.drop(columns=["component", "count", "block"]).rename(columns={"tokens": size})
    widgets.table(
        widgets.without_empty(visible, "preview", "pinned"),
        key="in_window",
        alt="Content of the window in order",
        on_row=lambda row: open_block(blocks["block"].iloc[row]),
        column_config={
            size: st.column_config.NumberColumn(
                width=68, help="each counted alone, scaled to what the call measured"
            ),
            "what": st.column_config.TextColumn(width=124),
            "preview": st.column_config.TextColumn("text", width=336),
            "from turn": st.column_config.NumberColumn("added", width=56, help="at this turn"),
            "pinned": st.column_config.CheckboxColumn("never removed", width=100),
        },
    )


def _removed(removed: pd.DataFrame) -> None:
    listed = f"The latest {REMOVED_ROWS}" if len(removed) == REMOVED_ROWS else count(len(removed), "item")
    visible, repeated = widgets.without_repeated(removed, why="Why")
    st.caption(escape_markdown(f"{listed}, latest first.{repeated}"))
    widgets.table(
        widgets.without_empty(visible.drop(columns="block"), "needed again", "preview"),
        key="removed",
        alt="Content removed from the window, latest first",
        on_row=lambda row: open_block(removed["block"].iloc[row]),
        column_config={
            "tokens": st.column_config.NumberColumn(width=60),
            "what": st.column_config.TextColumn(width=124),
            "preview": st.column_config.TextColumn("text", width=226),
            "removed": st.column_config.NumberColumn(width=68, help="at this turn"),
            "needed again": st.column_config.NumberColumn(width=92, help="at this turn"),
            "why": st.column_config.TextColumn(width=196),
        },
    )
