"""The level at which each agent should compact, from its recorded sessions replayed at lower levels."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.evaluation.replay.advice_text import LEVEL_COLUMNS, advice_sentences, level_cells, setting_lines
from windowpane.evaluation.replay.compaction_threshold import MINIMUM_COMPACTIONS, ThresholdAdvice
from windowpane.text.formats import UNKNOWN
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.style.sanitize import sanitized


def threshold_section(snapshot: StoreSnapshot) -> None:
    """Draw the advice for each agent, the most expensive first."""
    st.subheader("When to compact", anchor=False, divider="grey")
    advice = store_access.threshold_advice(snapshot)
    if not advice:
        st.text(f"No level can be compared: fewer than {MINIMUM_COMPACTIONS} recorded compactions with a price.")
    for one in advice:
        _show(one)


def _show(advice: ThresholdAdvice) -> None:
    st.markdown(f"**{sanitized(advice.agent)}**")
    widgets.show_text(advice_sentences(advice))
    frame = pd.DataFrame(
        [level_cells(advice, one) for one in (advice.present, *advice.lower)], columns=list(LEVEL_COLUMNS)
    )
    frame = frame.loc[:, (frame != UNKNOWN).any()]
    frame = frame.rename(columns={"a month": "dollars a month", "a week": "compactions a week"})
    alt = f"Levels of compaction of {advice.agent}"
    widgets.table(frame, key=f"threshold_{advice.agent}", alt=alt, height="content")
    settings = setting_lines(advice)
    if settings is not None:
        st.caption(" ".join(filter(None, (f"Lines for {settings.file}.", settings.note))))
        st.code(settings.lines, language=None)
