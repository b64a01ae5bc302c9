"""What the calls cost, and how much of their input came from the prompt cache."""

from __future__ import annotations

import streamlit as st

from windowpane_dashboard import elements
from windowpane_dashboard.charts import cache_chart, cost_chart
from windowpane_dashboard.queries import Timeline

_COLUMNS = {
    "turn": "turn",
    "input_tokens": "input",
    "fresh_tokens": "not from or to the cache",
    "cache_read_tokens": "read from the cache",
    "cache_write_tokens": "written to the cache",
    "output_tokens": "output",
    "cost_dollars": "dollars",
    "latency_seconds": "seconds",
}


def cost_section(timeline: Timeline, turn: int) -> None:
    """Draw input by cache state and dollars, turn by turn; says so where nothing was reported."""
    st.subheader("Cost and cache", anchor=False, divider="grey")
    palette = elements.current_palette()
    cache = cache_chart(timeline.turns, palette, selected=turn)
    cost = cost_chart(timeline.turns, palette, selected=turn)
    if cache is None and cost is None:
        st.text("The recording holds no usage reports, so neither cost nor cache is known.")
        return
    places = st.columns(2, gap="medium") if cache is not None and cost is not None else [st.container()]
    if cache is not None:
        with places[0]:
            elements.picture(cache, key="cache", alt="Input tokens of each call by cache state, as in the table")
    if cost is not None:
        with places[-1]:
            elements.picture(cost, key="cost", alt="Dollars of each call, as in the table")
    else:
        st.caption("The price of this model is not known.")
    with st.expander("Cost and cache as a table", icon=":material/table_rows:"):
        elements.table(
            timeline.turns[list(_COLUMNS)].rename(columns=_COLUMNS),
            key="cost_data",
            alt="Input, output, dollars and seconds of each call",
        )
