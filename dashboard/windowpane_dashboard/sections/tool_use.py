"""The parts of the window at the selected turn, and the cost of each tool, file and command over all calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from windowpane.store.records import ToolUse
from windowpane.text.formats import tokens
from windowpane_dashboard.charts.fill import area_blocks, fill_treemap
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SHARE
from windowpane_dashboard.queries.tool_use import TOP, fill_frame, top_frame, uses_frame
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.treemap_clicks import treemap_clicks
from windowpane_dashboard.sections.window import open_block

ROWS = 50
TREEMAP = "fill_treemap"


def tool_use_section(view: SessionView) -> None:
    """Draw the treemap and the ten largest rows at the turn, and the tools of the whole session."""
    store = view.snapshot.store
    fill = fill_frame(view.window.blocks, store.blocks_at(view.row.session_id, view.turn))
    if fill.empty:
        st.text("The window was empty at this turn.")
    else:
        left, right = widgets.wrapping_columns([1, 1], narrowest="table")
        with left:
            st.text(f"The window at turn {view.turn}: {tokens(int(fill['tokens'].sum()))} tokens")
            widgets.chart(
                fill_treemap(fill, widgets.current_palette()),
                key=TREEMAP,
                alt="Tokens by component, tool, and file or command, as in the table",
            )
            treemap_clicks(TREEMAP, partial(_open_area, area_blocks(fill)))
        with right:
            st.text("Its ten largest parts; select a row or an area to read its largest block")
            _top(fill)
    uses = store.tool_use(view.row.session_id, limit=ROWS)
    if uses:
        st.text("Over the whole session")
        uses_table(uses, key="session_uses", alt="Tools, files and commands of the session, most carried first")


def _open_area(blocks: dict[str, str], area: str) -> None:
    if blocks.get(area):
        open_block(blocks[area])


def _open_largest(fill: pd.DataFrame) -> None:
    rows = st.session_state["fill_top"].selection.rows
    if rows and rows[0] < min(TOP, len(fill)):  # below are the others and their sum
        open_block(str(fill["block"].iloc[rows[0]]) or None)


def _top(fill: pd.DataFrame) -> None:
    config = st.column_config
    widgets.table(
        top_frame(fill),
        key="fill_top",
        on_select=lambda: _open_largest(fill),
        selection_mode="single-row",
        alt="The ten largest parts of the window, the others, and their sum",
        height="content",
        numbers={"share": SHARE},
        column_config={
            "tokens": config.NumberColumn(width=72),
            "share": config.NumberColumn(width=56),
            "component": config.TextColumn(width=118),
            "tool or content": config.TextColumn(width=110),
            "file or command": config.TextColumn(width=190),
            "blocks": config.NumberColumn(width=56),
        },
    )


def uses_table(uses: Sequence[ToolUse], *, key: str, alt: str, sessions: bool = False) -> None:
    """Draw tools, files and commands with the tokens and dollars of all calls that carried them."""
    frame = uses_frame(uses)
    config = st.column_config
    widgets.table(
        frame if sessions else frame.drop(columns="sessions"),
        key=key,
        alt=alt,
        height="content" if len(frame) <= 10 else 400,
        numbers={"≈ cost": DOLLARS},
        column_config={
            "tool": config.TextColumn(width=150),
            "file or command": config.TextColumn(width=420),
            "tokens entered": config.NumberColumn(width=104),
            "tokens in all calls": config.NumberColumn(
                width=126, help="its tokens times the calls that sent them"
            ),
            "≈ cost": config.NumberColumn(width=76, help="its share, by tokens, of what those calls cost"),
        },
    )
