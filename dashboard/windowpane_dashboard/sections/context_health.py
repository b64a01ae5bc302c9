"""Context health on Trends: missteps by the fill of the window, each session compared with itself."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.report.context_health import MINIMUM_CALLS, MINIMUM_SESSIONS, NOUNS, ContextHealth
from windowpane.store.filters import SessionFilter
from windowpane.text.formats import UNKNOWN, rate
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot


def context_health_section(snapshot: StoreSnapshot, query: SessionFilter, repository: str | None) -> None:
    """Draw whether the agents of the sessions that match get worse as their window fills."""
    st.subheader("Worse when full?", anchor=False, divider="grey")
    health = store_access.context_health(snapshot, query, repository)
    worse = {change.after > change.before for change in health.evident}
    answer = ("Yes. " if True in worse else "No. ") if len(worse) == 1 else ""
    st.text(f"{answer}{health.headline}")
    if all(change.sessions < MINIMUM_SESSIONS for change in health.changes):
        return
    st.caption(
        f"Each session is compared with itself, if it made {MINIMUM_CALLS} calls on both sides. A full window is "
        "also a late one: either may be the cause."
    )
    widgets.folded_table(
        "All that was compared", lambda: health_frame(health), key="health_data", alt="Missteps per 100 calls"
    )


def health_frame(health: ContextHealth) -> pd.DataFrame:
    """Return each change that was looked for, with the mean rates of the sessions on both sides."""
    return pd.DataFrame(
        [
            {
                "per 100 calls": NOUNS[change.misstep],
                "where": change.where,
                "before": rate(change.before) if change.sessions else UNKNOWN,
                "there": rate(change.after) if change.sessions else UNKNOWN,
                "result": _result(change.sessions, is_evident=change.is_evident),
                "sessions": change.sessions,
            }
            for change in health.changes
        ]
    )


def _result(sessions: int, *, is_evident: bool) -> str:
    if sessions < MINIMUM_SESSIONS:
        return "too few sessions"
    return "clear difference" if is_evident else "no clear difference"
