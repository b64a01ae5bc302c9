"""Cache breaks: the calls that sent a cached prefix again, why, and what it cost."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.report.findings import read_evidence
from windowpane.text.formats import count, dollars, tokens
from windowpane.text.labels import CACHE_BREAK_LABELS
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SECONDS
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import select_turn


def cache_breaks_section(view: SessionView) -> None:
    """Draw the list of cache breaks; selecting one shows its turn."""
    row = view.row
    breaks = read_evidence(view.snapshot.store, row, ()).breaks
    money = "" if row.cache_break_dollars is None else f" for {dollars(row.cache_break_dollars)} more"
    st.text(
        f"{count(row.cache_breaks, 'call')} sent {tokens(row.cache_break_tokens)} tokens as new input{money} "
        "instead of reading them from the prompt cache."
    )
    frame = pd.DataFrame(
        {
            "turn": [turn for turn, _ in breaks],
            "why": [CACHE_BREAK_LABELS[broken.cause] for _, broken in breaks],
            "tokens again": [broken.rewritten_tokens for _, broken in breaks],
            "cached before": [broken.cached_tokens for _, broken in breaks],
            "cost": pd.array([broken.dollars for _, broken in breaks], dtype="Float64"),
            "idle": pd.array([broken.idle_seconds for _, broken in breaks], dtype="Float64"),
            "first changed block": [broken.block_id or "–" for _, broken in breaks],
        }
    )
    config = st.column_config
    widgets.table(
        frame,
        key="cache_breaks_table",
        alt="Calls that sent more than half of a cached prefix again",
        on_row=lambda number: select_turn(breaks[number][0], int(view.timeline.turns["turn"].iloc[-1])),
        numbers={"cost": DOLLARS, "idle": SECONDS},
        column_config={
            "turn": config.NumberColumn(width=60),
            "why": config.TextColumn(width=330),
            "tokens again": config.NumberColumn(width=100),
            "cached before": config.NumberColumn(width=106),
            "cost": config.NumberColumn(width=76),
            "idle": config.NumberColumn("since the call before", width=140),
        },
    )
    st.caption("Compactions, rewinds and cleared windows send a new beginning and do not count.")
