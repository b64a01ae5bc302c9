"""The causes of the cost, and the cost of each call."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.text.formats import copied_calls, count, stated_totals
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SECONDS
from windowpane_dashboard.sections.findings import causes_section
from windowpane_dashboard.sections.session_tabs import SessionView

_COLUMNS = {
    "turn": "turn",
    "input_tokens": "input",
    "fresh_tokens": "uncached",
    "cache_read_tokens": "read from the cache",
    "cache_write_tokens": "written to the cache",
    "output_tokens": "output",
    "recorded_output_tokens": "recorded output",
    "cost_dollars": "cost",
    "list_cost_dollars": "by published prices",
    "latency_seconds": "duration",
}
_RARE = frozenset({"recorded_output_tokens", "list_cost_dollars"})
"""Columns that are omitted where no turn has a value."""


def cost_section(view: SessionView) -> None:
    """Draw the causes of the cost, and the calls as a table."""
    row, timeline = view.row, view.timeline
    causes_section(view.snapshot, row, timeline)
    totals = row.stated_input_tokens, row.stated_output_tokens, row.stated_cost_dollars
    if any(totals):
        st.text(f"{stated_totals(*totals).capitalize()}.")
    if row.copied_turns:
        st.text(f"{copied_calls(row.copied_turns)}.")
    _calls(timeline.turns)


def _calls(turns: pd.DataFrame) -> None:
    names = {name: label for name, label in _COLUMNS.items() if name not in _RARE or turns[name].notna().any()}
    calls = turns[list(names)].rename(columns=names)
    if calls[["input", "cost"]].isna().all(axis=None):
        st.text("The recording holds no usage of single calls, so their cost and cache are unknown.")
        return
    if not calls["cost"].any():
        st.caption("The price of this model is unknown.")
    estimated = int(turns["recorded_output_tokens"].notna().sum())
    if estimated:
        st.caption(
            f"≈ The output of {count(estimated, 'call')}, and so the cost, is estimated: the recording states "
            "only the start of the reply, which the table has next to the estimate."
        )
    widgets.folded_table(
        "Each call",
        lambda: calls,
        key="cost_data",
        alt="Input, output, cost and duration of each call",
        numbers={"cost": DOLLARS, "by published prices": DOLLARS, "duration": SECONDS},
    )
