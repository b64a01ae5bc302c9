"""The parts of the window at the selected turn, and the cost of each tool, file and command over all calls."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from windowpane.store.records import ToolUse
from windowpane.text.formats import tokens
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import BAR_SHARE, DOLLARS
from windowpane_dashboard.queries.tool_use import TOP, fill_frame, top_frame, uses_frame
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.window import open_block

ROWS = 50


def tool_use_section(view: SessionView) -> None:
    """Draw the ten largest parts of the window at the turn, and the tools of the whole session."""
    store = view.snapshot.store
    fill = fill_frame(view.window.blocks, store.blocks_at(view.row.session_id, view.turn))
    if fill.empty:
        st.text("The window was empty at this turn.")
    else:
        size = tokens(int(fill["tokens"].sum()))
        st.text(f"Turn {view.turn}: {size} tokens. Select a row to read its largest item.")
        _top(fill)
    uses = store.tool_use(view.row.session_id, limit=ROWS)
    if uses:
        st.text("Over the whole session")
        uses_table(uses, key="session_uses", alt="Tools, files and commands of the session, most carried first")


def _top(fill: pd.DataFrame) -> None:
    config = st.column_config
    widgets.table(
        top_frame(fill),
        key="fill_top",
        on_row=lambda row: open_block(fill["block"].iloc[row] or None) if row < min(TOP, len(fill)) else None,
        alt="The ten largest parts of the window, the others, and their sum",
        height="content",
        numbers={"share": BAR_SHARE},
        column_config={
            "share": config.ProgressColumn(width=150, min_value=0.0, max_value=1.0),
            "component": config.TextColumn(width=118),
            "tool or content": config.TextColumn(width=110),
            "file or command": config.TextColumn(width=190),
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
        numbers={"≈ cost": DOLLARS},
        column_config={
            "tool": config.TextColumn(width=110),
            "file or command": config.TextColumn(width=420),
            "tokens entered": config.NumberColumn(width=104),
            "tokens in all calls": config.NumberColumn(width=126, help="times the calls that sent them"),
            "≈ cost": config.NumberColumn(width=76, help="its share, by tokens, of what those calls cost"),
        },
    )
