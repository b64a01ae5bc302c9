"""Context health on Trends: missteps by the fill of the window, each session compared with itself."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from windowpane.core.vocabulary import MISSTEPS
from windowpane.report.context_health import MAXIMUM_SESSIONS, MINIMUM_CALLS, NOUNS, ContextHealth
from windowpane.store.filters import SessionFilter
from windowpane.text.formats import count, rate
from windowpane_dashboard.charts.context_health import health_chart
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot


def context_health_section(snapshot: StoreSnapshot, query: SessionFilter) -> None:
    """Draw whether the agents of the sessions that match get worse as their window fills."""
    st.subheader("Worse when full?", anchor=False, divider="grey")
    health = store_access.context_health(snapshot, query)
    st.text(health.headline)
    if not health.by_tenth:
        return
    alt = "Missteps per 100 calls by tenth of the window, as in the table"
    widgets.chart(health_chart(health, widgets.current_palette()), key="health_chart", alt=alt)
    st.caption(
        f"{count(health.calls, 'call')} of the latest {count(len(health.sessions), 'session')} that made "
        f"calls in this range (at most {MAXIMUM_SESSIONS}). A change compares each session with itself, "
        f"unlike the lines: it is stated from ten sessions with {MINIMUM_CALLS} calls on both sides, where "
        "chance is unlikely (5% for all changes that are tried). "
        "A full window is also a late one: either may be the cause."
    )
    widgets.folded_table(
        "The chart as a table", lambda: health_frame(health), key="health_data", alt="Missteps per 100 calls"
    )


def health_frame(health: ContextHealth) -> pd.DataFrame:
    """Return the missteps per 100 calls by tenth of the window and by compactions, with quartiles."""
    rows = [(f"{row.label} of the window", row) for row in health.by_tenth]
    rows += [(f"after {row.label} compactions", row) for row in health.by_compactions]
    return pd.DataFrame(
        [
            {
                "calls made": label,
                "calls": row.calls,
                "sessions": row.sessions,
                **{NOUNS[one]: f"{rate(row.pooled[one])}{_spread(row.rates[one])}" for one in MISSTEPS},
            }
            for label, row in rows
        ]
    )


def _spread(quartiles: tuple[float, float, float] | None) -> str:
    """Return the quartiles of the sessions; nothing for too few."""
    return "" if quartiles is None else f" ({rate(quartiles[0])} to {rate(quartiles[2])})"
