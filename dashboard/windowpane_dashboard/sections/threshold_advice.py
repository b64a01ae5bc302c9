"""The level at which each agent should compact, from its recorded sessions replayed at lower levels."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from windowpane.evaluation.replay.advice_text import (
    LEVEL_COLUMNS,
    advice_answer,
    advice_basis,
    level_cells,
    setting_lines,
)
from windowpane.evaluation.replay.compaction_threshold import MINIMUM_COMPACTIONS, ThresholdAdvice
from windowpane.text.formats import UNKNOWN
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.style.sanitize import escape_markdown

WIDTHS: Final = {"compact at": 112, "saves (99% range)": 160}
HIDDEN: Final = ("cost", "compactions a week")  # the cost of now is below the table
ANSWERED: Final = 2
"""Agents whose advice a headline names."""


def threshold_section(snapshot: StoreSnapshot, *, omits_first: bool = False) -> str:
    """Draw the advice for each agent, the most expensive first; return that of the first two."""
    advice = store_access.threshold_advice(snapshot)
    if not advice:
        few = f"no agent has {MINIMUM_COMPACTIONS} recorded compactions and a price"
        return f"No level of compaction can be compared: {few}."
    st.subheader("When to compact, over the recorded sessions of each agent", anchor=False, divider="grey")
    frames = {one.agent: level_frame(one) for one in advice}
    columns = [name for name in LEVEL_COLUMNS if any((frame[name] != UNKNOWN).any() for frame in frames.values())]
    for number, one in enumerate(advice):
        st.markdown(f"**{escape_markdown(one.agent)}**")
        if number >= ANSWERED or not omits_first:
            widgets.show_text(advice_answer(one))
        _show(one, frames[one.agent][[name for name in columns if name not in HIDDEN]])
    return " ".join(f"{one.agent}: {advice_answer(one)}" for one in advice[:ANSWERED])


def level_frame(advice: ThresholdAdvice) -> pd.DataFrame:
    """Return the levels as a table, the present one first."""
    levels = (advice.present, *advice.lower)
    return pd.DataFrame([level_cells(advice, one) for one in levels], columns=list(LEVEL_COLUMNS))


def _show(advice: ThresholdAdvice, frame: pd.DataFrame) -> None:
    alt = f"Levels of compaction of {advice.agent}"
    widgets.table(
        frame,
        key=f"threshold_{advice.agent}",
        alt=alt,
        height="content",
        column_config={name: st.column_config.TextColumn(width=WIDTHS.get(str(name), 84)) for name in frame},
    )
    st.caption(escape_markdown(advice_basis(advice)))
    settings = setting_lines(advice)
    if settings is not None:
        st.caption(" ".join(filter(None, (f"Lines for {settings.file}.", settings.note))))
        st.code(settings.lines, language=None)
