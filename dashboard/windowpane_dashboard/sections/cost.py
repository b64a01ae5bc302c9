"""The causes of the cost, the cost of each call, and the calls that broke the prompt cache."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.report.findings import read_evidence
from windowpane.text.formats import count, dollars, tokens
from windowpane.text.labels import CACHE_BREAK_LABELS
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SECONDS
from windowpane_dashboard.sections.findings import causes_section
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import select_turn

_COLUMNS = {
    "turn": "turn",
    "cost_dollars": "cost",
    "list_cost_dollars": "by published prices",
    "input_tokens": "input",
    "fresh_tokens": "uncached",
    "cache_read_tokens": "read from the cache",
    "cache_write_tokens": "written to the cache",
    "output_tokens": "output",
    "recorded_output_tokens": "recorded output",
    "latency_seconds": "duration",
}
_RARE = frozenset({"recorded_output_tokens", "list_cost_dollars"})
"""Columns that are omitted where no turn has a value."""


def cost_section(view: SessionView) -> None:
    """Draw the causes of the cost, and the calls as a table."""
    turns = view.timeline.turns
    is_unknown = turns[["input_tokens", "cost_dollars"]].isna().all(axis=None)
    if is_unknown:
        st.text("The recording holds no usage of single calls, so their cost and cache are unknown.")
    causes_section(view.snapshot, view.row, view.timeline)
    if not is_unknown:
        _calls(turns)


def _calls(turns: pd.DataFrame) -> None:
    names = {name: label for name, label in _COLUMNS.items() if name not in _RARE or turns[name].notna().any()}
    calls = turns[list(names)].rename(columns=names)
    if not calls["cost"].any():
        st.caption("The price of this model is unknown.")
    estimated = int(turns["recorded_output_tokens"].notna().sum())
    if estimated:
        st.caption(
            f"≈ The output of {count(estimated, 'call')}, and so the cost, is estimated: the recording states "
            "only the start of the reply."
        )
    widgets.folded_table(
        "Each call",
        lambda: calls.sort_values("cost", ascending=False, kind="stable"),
        key="cost_data",
        alt="Cost, input, output and duration of each call, the most expensive first",
        numbers={"cost": DOLLARS, "by published prices": DOLLARS, "duration": SECONDS},
    )


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
            "since the call before": pd.array([broken.idle_seconds for _, broken in breaks], dtype="Float64"),
        }
    )
    widgets.table(
        frame,
        key="cache_breaks_table",
        alt="Calls that sent more than half of a cached prefix again",
        on_row=lambda number: select_turn(breaks[number][0], int(view.timeline.turns["turn"].iloc[-1])),
        numbers={"cost": DOLLARS, "since the call before": SECONDS},
        column_config={"why": st.column_config.TextColumn(width=330)},
    )
    st.caption("Calls after a compaction, a step back or a cleared window do not count.")
