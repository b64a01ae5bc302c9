"""The values of the session's chart as a table, in order or by how much each turn changed the window."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from windowpane.core.vocabulary import COMPONENTS
from windowpane.report.headline import counted_turns
from windowpane.text.labels import COMPONENT_LABELS
from windowpane.text.zones import zone_label
from windowpane_dashboard.page import address, times, widget_state, widgets
from windowpane_dashboard.page.number_formats import SHARE
from windowpane_dashboard.queries.events import moments
from windowpane_dashboard.queries.filters import SessionAddress, TurnOrder
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.sections.timeline import PAGE, select_turn

TABLE: Final = "turns_table"
ORDER: Final = "turn_order"
ORDERS: Final[dict[TurnOrder, str]] = {"turn": "in order", "change": "biggest changes first"}


def turn_table_section(timeline: Timeline) -> None:
    """Draw the table; selecting a row selects its turn."""
    requested = SessionAddress.from_query(st.query_params.to_dict()).order or "turn"
    key = widget_state.fresh_key(ORDER, requested)
    order = st.segmented_control(
        "Order of the turns",
        list(ORDERS),
        format_func=lambda name: ORDERS[name],
        key=key,
        on_change=lambda: widget_state.apply(
            ORDER, key, lambda name: address.update(PAGE, order=None if name == "turn" else name)
        ),
        label_visibility="collapsed",
        required=True,
    )
    frame = turn_table(timeline.turns, order or "turn")
    localized = st.column_config.NumberColumn(width=84)
    numbers = dict.fromkeys(frame.columns.difference(["turn", "time", "zone", "utilization"]), localized)
    if "time" in frame:
        frame["time"] = times.in_reader_zone(frame["time"])
    last = int(timeline.turns["turn"].iloc[-1])
    widgets.table(
        frame,
        key=f"{TABLE}_{order}",
        alt="Turns of the session with the tokens of each component",
        height=430 if len(frame) > 10 else "content",
        on_select=lambda: _show_turn(frame, f"{TABLE}_{order}", last),
        selection_mode="single-row",
        numbers={"utilization": SHARE},
        column_config={
            **numbers,
            "turn": st.column_config.NumberColumn(width=60),
            "time": times.time_column("time (local)", width=150),
            "change": st.column_config.NumberColumn(width=84, help="used tokens against the turn before"),
            "utilization": st.column_config.NumberColumn(width=84),
        },
    )
    st.caption(
        f"{counted_turns(timeline.ended_turns, timeline.open_turn)}. Select a row to see the window there."
    )


def turn_table(turns: pd.DataFrame, order: TurnOrder) -> pd.DataFrame:
    """Return one row per turn: its change against the turn before, its size and its components."""
    labels = {str(component): COMPONENT_LABELS[component] for component in COMPONENTS if turns[component].any()}
    table = pd.DataFrame({"turn": turns["turn"], "time": moments(turns["at"])})
    table["change"] = turns["used"].diff()
    table["tokens"] = turns["used"]
    table["zone"] = [zone_label(zone) for zone in turns["zone"]]
    table = table.assign(**{label: turns[component] for component, label in labels.items()})
    table["limit"] = turns["limit_tokens"]
    table["utilization"] = turns["utilization"]
    if table["time"].isna().all():
        table = table.drop(columns="time")
    if order == "change":
        table = table.loc[table["change"].abs().sort_values(ascending=False, kind="stable").index]
    return table.reset_index(drop=True)


def _show_turn(frame: pd.DataFrame, table: str, last: int) -> None:
    rows = st.session_state[table].selection.rows
    if rows and rows[0] < len(frame):
        select_turn(int(frame["turn"].iloc[rows[0]]), last)
