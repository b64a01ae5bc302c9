"""The parts of the window at the selected turn, and the cost of each tool, file and command over all calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from windowpane.report.task_names import named_target
from windowpane.store.records import ToolUse
from windowpane.text.formats import percent, tokens
from windowpane.text.labels import is_id
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SHARE
from windowpane_dashboard.queries.tool_use import TOP, fill_frame, top_frame, uses_frame
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.window import open_block

ROWS = 50
WIDTH = 214
"""Of a tool with its file or command."""


def tool_use_section(view: SessionView) -> None:
    """Draw the ten largest parts of the window at the turn, and the tools of the whole session."""
    store = view.snapshot.store
    fill = fill_frame(view.window.blocks, store.blocks_at(view.row.session_id, view.turn))
    uses = store.tool_use(view.row.session_id, limit=ROWS)
    if fill.empty:
        st.text("The window was empty at this turn.")
    else:
        size = fill["tokens"].sum()
        share = percent(fill["tokens"].head(TOP).sum() / max(size, 1))
        largest = f", {share} in the {TOP} largest parts" if len(fill) > TOP else ""
        st.text(f"Turn {view.turn}: {tokens(size)} tokens{largest}. Select a row to read its largest item.")
        _top(fill.assign(target=fill["target"].head(TOP).map(lambda target: _target_name(view, target))))
    if uses:
        st.text("Over the whole session")
        listed = [replace(use, target=_target_name(view, use.target)) for use in uses]
        uses_table(listed, key="session_uses", alt="Tools, files and commands of the session, most carried first")


def _target_name(view: SessionView, target: str) -> str:
    """Return the *target* of a call; of a task's id its description, looked up once, or nothing."""
    if not is_id(target):
        return target
    return store_access.cached_for_session(
        view.snapshot,
        view.row,
        f"task {target}",
        lambda: named_target(view.snapshot.store, view.row.session_id, target) or "",
    )


def _top(fill: pd.DataFrame) -> None:
    config = st.column_config
    widgets.table(
        top_frame(fill),
        key="fill_top",
        on_row=lambda row: open_block(fill["block"].iloc[row] or None),
        alt="The ten largest parts of the window",
        height="content",
        numbers={"share": SHARE},
        column_config={
            "what": config.TextColumn(width=WIDTH),
            "tokens": config.NumberColumn(width=60),
            "share": config.NumberColumn(width=50),
            "items": config.NumberColumn(width=56),
        },
    )


def uses_table(uses: Sequence[ToolUse], *, key: str, alt: str, sessions: bool = False) -> None:
    """Draw tools, files and commands with the tokens and dollars of all calls that carried them."""
    frame = widgets.without_empty(uses_frame(uses), "≈ cost")
    config = st.column_config
    widgets.table(
        frame if sessions else frame.drop(columns="sessions"),
        key=key,
        alt=alt,
        numbers={"≈ cost": DOLLARS},
        column_config={
            "what": config.TextColumn(width=WIDTH),
            "≈ cost": config.NumberColumn(width=72, help="its share, by tokens, of what those calls cost"),
            "tokens in all calls": config.NumberColumn(width=126, help="times the calls that sent them"),
            "tokens entered": config.NumberColumn(width=104),
        },
    )
