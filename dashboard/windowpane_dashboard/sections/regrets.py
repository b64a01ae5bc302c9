"""Removed content that was needed again, the removal that caused it, and its cost."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars, tokens
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.queries.window import REGRET_ROWS, regretted_blocks
from windowpane_dashboard.sections.timeline import select_turn

TABLE = "regrets_table"


def regrets_section(store: EventReader, row: SessionRow, timeline: Timeline) -> None:
    """Draw the list, the largest first."""
    last = int(timeline.turns["turn"].iloc[-1])
    frame = regretted_blocks(store, row.session_id, last)
    visible, repeated = widgets.without_repeated(
        frame.drop(columns="session_turn"), why="Why", removed="Removed at turn", again="Needed again at turn"
    )
    widgets.show_text(f"{regrets_summary(frame)}{repeated}")
    widgets.table(
        widgets.without_empty(visible, "dollars"),
        key=TABLE,
        alt="Removed content that was needed again, the largest first",
        on_row=lambda number: select_turn(int(frame["session_turn"].iloc[number]), last),
        numbers={"dollars": DOLLARS},
        column_config={
            "what": st.column_config.TextColumn(width=202),
            "tokens": st.column_config.NumberColumn(width=60),
            "removed": st.column_config.NumberColumn("removed at turn", width=112),
            "again": st.column_config.NumberColumn("again at turn", width=92),
            "why": st.column_config.TextColumn(width=262),
            "dollars": st.column_config.NumberColumn(
                "≈ cost", width=58, help="What the call paid that sent it anew; each later call sends it too."
            ),
        },
    )


def regrets_summary(frame: pd.DataFrame) -> str:
    """Return a sentence about their number and cost."""
    several = count(len(frame), "item") if len(frame) < REGRET_ROWS else f"The latest {REGRET_ROWS:,} items"
    money = frame["dollars"].dropna()
    cost = f", about {dollars(float(money.sum()))} in the calls that sent them anew" if len(money) else ""
    paid = tokens(float(frame["tokens"].sum()))
    return f"{several} were removed and needed again: {paid} tokens paid again{cost}."
