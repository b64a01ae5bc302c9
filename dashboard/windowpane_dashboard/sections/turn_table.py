"""The values of the session's chart as a table."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from windowpane.core.vocabulary import COMPONENTS
from windowpane.report.headline import counted_turns
from windowpane.text.labels import COMPONENT_LABELS
from windowpane.text.zones import zone_label
from windowpane_dashboard.page import times, widgets
from windowpane_dashboard.page.number_formats import SHARE
from windowpane_dashboard.queries.events import moments
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.sections.timeline import select_turn

TABLE: Final = "turns_table"


def turn_table_section(timeline: Timeline) -> None:
    """Draw the table; selecting a row selects its turn."""
    frame = turn_table(timeline.turns)
    frame["time"] = times.in_reader_zone(frame["time"])
    visible, _ = widgets.without_repeated(widgets.without_empty(frame, "time", "limit"), limit="", zone="")
    last = int(timeline.turns["turn"].iloc[-1])
    widgets.table(
        visible,
        key=TABLE,
        alt="Turns of the session with the tokens of each component",
        on_row=lambda row: select_turn(int(frame["turn"].iloc[row]), last),
        numbers={"full": SHARE},
        column_config={
            **dict.fromkeys(COMPONENT_LABELS.values(), st.column_config.NumberColumn(width=104)),
            "turn": st.column_config.NumberColumn(width=48),
            "full": st.column_config.NumberColumn(width=52),
            "change": st.column_config.NumberColumn(width=72, help="used tokens against the turn before"),
            "tokens": st.column_config.NumberColumn(width=72),
            "zone": st.column_config.TextColumn(width=84),
            "time": times.time_column("time (local)", width=150),
        },
    )
    st.caption(f"{counted_turns(timeline.ended_turns, timeline.open_turn)}. Select a row to see its window.")


def turn_table(turns: pd.DataFrame) -> pd.DataFrame:
    """Return one row per turn: its share of the limit, its change against the turn before, and its components."""
    labels = {str(component): COMPONENT_LABELS[component] for component in COMPONENTS if turns[component].any()}
    table = pd.DataFrame({"turn": turns["turn"], "full": turns["utilization"]})
    table["change"] = turns["used"].diff()
    table["tokens"] = turns["used"]
    table["zone"] = [zone_label(zone) for zone in turns["zone"]]
    table = table.assign(**{label: turns[component] for component, label in labels.items()})
    table["limit"] = turns["limit_tokens"]
    table["time"] = moments(turns["at"])
    return table
