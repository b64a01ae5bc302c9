"""The causes of the cost, and the input from the prompt cache."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from windowpane.text.formats import count, stated_totals
from windowpane_dashboard.charts.costs import cache_chart, cost_chart
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SECONDS
from windowpane_dashboard.sections.findings import causes_section
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.style.theme import Palette

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
    """Draw the causes of the cost, then input by cache state, and dollars."""
    snapshot, row, timeline = view.snapshot, view.row, view.timeline
    causes_section(snapshot, row, timeline)
    turns, palette = timeline.turns, widgets.current_palette()

    def cached(chart: Callable[[pd.DataFrame, Palette], go.Figure | None]) -> go.Figure | None:
        return store_access.cached_for_session(
            snapshot, row, f"{chart.__name__}, {palette.name}", lambda: chart(turns, palette)
        )

    totals = row.stated_input_tokens, row.stated_output_tokens, row.stated_cost_dollars
    if any(totals):
        st.text(f"{stated_totals(*totals).capitalize()}.")
    _paid(cached(cache_chart), cached(cost_chart), turns)


def _paid(cache: go.Figure | None, cost: go.Figure | None, turns: pd.DataFrame) -> None:
    if cache is None and cost is None:
        st.text("The recording holds no usage of single calls, so their cost and cache are unknown.")
        return
    columns = st.columns(2, gap="medium") if cache is not None and cost is not None else [st.container()]
    if cache is not None:
        with columns[0]:
            widgets.chart(cache, key="cache", alt="Input tokens of each call by cache state, as in the table")
    if cost is not None:
        with columns[-1]:
            widgets.chart(cost, key="cost", alt="Dollars of each call, as in the table")
    else:
        st.caption("The price of this model is unknown.")
    estimated = int(turns["recorded_output_tokens"].notna().sum())
    if estimated:
        st.caption(
            f"≈ The output of {count(estimated, 'call')}, and so the cost, is estimated: the recording states "
            "only the start of the reply, which the table has next to the estimate."
        )
    names = {name: label for name, label in _COLUMNS.items() if name not in _RARE or turns[name].notna().any()}
    widgets.folded_table(
        "Cost and cache as a table",
        lambda: turns[list(names)].rename(columns=names),
        key="cost_data",
        alt="Input, output, cost and duration of each call",
        numbers={"cost": DOLLARS, "by published prices": DOLLARS, "duration": SECONDS},
    )
