"""The chart of the session's window, and the selection of a turn in it."""

from __future__ import annotations

import time
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from windowpane.core.characters import plain
from windowpane.core.times import is_live
from windowpane.store.records import SessionRow
from windowpane.text.formats import percent, tokens
from windowpane_dashboard.charts.window_chart import window_chart
from windowpane_dashboard.page import address, store_access, widget_state, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.timeline import TRACK_EVENTS, Timeline
from windowpane_dashboard.sections.chart_sync import chart_sync
from windowpane_dashboard.style.theme import Palette

PAGE = "session"
CHART = "window_chart"
TURN = "turn"
OPENED = "times_opened"
SLIDER = "turn_slider"
EXACT = "exact_turn"
EXACT_PIXELS = 130


def timeline_section(
    snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline, position: SessionAddress
) -> None:
    """Draw the chart and determine the selected turn."""
    first, last = turns_of(timeline)
    requested = last if position.turn is None else position.turn
    changed = address.changed_elsewhere(PAGE)
    st.session_state[OPENED] = st.session_state.get(OPENED, 0) + changed
    if position.turn is None or TURN not in st.session_state or changed:
        st.session_state[TURN] = requested
    st.session_state[TURN] = min(max(int(st.session_state[TURN]), first), last)
    if position.turn is None and not changed:  # a new last turn
        widget_state.set_value(EXACT, last)
    address.write(PAGE, replace(position, session=row.session_id, tab=position.open_tab).to_query())
    _chart(snapshot, row, timeline)


def turns_of(timeline: Timeline) -> tuple[int, int]:
    """Return the first and the last measured turn."""
    return int(timeline.turns["turn"].iloc[0]), int(timeline.turns["turn"].iloc[-1])


def _chart(snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline) -> None:
    palette, live = widgets.current_palette(), is_live(row, time.time())
    figure = store_access.cached_for_session(
        snapshot,
        row,
        f"window, {palette.name}{', live' if live else ''}",
        lambda: _draw(row, timeline, palette, live=live),
    )
    widgets.main_chart(figure, key=CHART, alt=chart_description(timeline.turns))
    with widgets.part():
        if timeline.marks_cut:
            st.caption(
                f"The event track shows the first {TRACK_EVENTS:,} marked events; all are on the audit page."
            )


def _draw(row: SessionRow, timeline: Timeline, palette: Palette, *, live: bool) -> go.Figure:
    figure = window_chart(
        timeline.turns, timeline.spans, timeline.marks, palette,
        regrets=timeline.regrets, forecast=live,
    )  # fmt: skip
    figure.update_layout(uirevision=plain(row.session_id))  # a zoom survives new turns, not another session
    return figure


def select_turn(turn: int, last: int) -> None:
    """Select a turn and write it to the address; at the last turn the page follows new turns."""
    st.session_state[TURN] = turn
    address.update(PAGE, turn=None if turn >= last else str(turn), compression=None)


def turn_control(timeline: Timeline) -> int:
    """Draw the slider with the buttons next to it; return the selected turn."""
    first, last = turns_of(timeline)
    position = SessionAddress.from_query(st.query_params.to_dict())
    if first == last:
        return last
    marked = timeline.marks["turn"]
    here = min(max(int(st.session_state[TURN]), first), last)
    before, after = marked[marked < here], marked[marked > here]
    slider = widget_state.fresh_key(SLIDER, here, scope=(first, last))
    exact_turn = widget_state.fresh_key(EXACT, here)

    def go(turn: int) -> None:
        select_turn(int(turn), last)

    row = widgets.control_bar(alignment="center")
    row.container(width="content").button(
        "Event before",
        icon=":material/chevron_left:",
        disabled=before.empty,
        shortcut="P",
        on_click=lambda: select_turn(max(first, int(before.max())), last),
    )
    row.container().slider(
        "Turn",
        first,
        last,
        key=slider,
        label_visibility="collapsed",
        on_change=lambda: widget_state.apply(SLIDER, slider, go),
        format="turn %d",
    )
    row.container(width=EXACT_PIXELS).number_input(
        "Go to turn",
        first,
        last,
        key=exact_turn,
        step=1,
        label_visibility="collapsed",
        on_change=lambda: widget_state.apply(EXACT, exact_turn, go),
    )
    row.container(width="content").button(
        "Event after",
        icon=":material/chevron_right:",
        icon_position="right",
        disabled=after.empty,
        shortcut="N",
        on_click=lambda: select_turn(min(last, int(after.min())), last),
    )
    chart_sync(
        here, (CHART,), (SLIDER, EXACT), clicks=CHART, choose=go,
        evidence=position.evidence, opened=st.session_state.get(OPENED, 0),
    )  # fmt: skip
    return here


def chart_description(turns: pd.DataFrame) -> str:
    """Return a description of the chart for screen readers."""
    peak = turns.iloc[int(turns["used"].to_numpy().argmax())]
    last = turns.iloc[-1]
    share = "" if pd.isna(last["utilization"]) else f", {percent(last['utilization'])} full"
    zone = "" if last["zone"] is None else f", {last['zone']}"
    return (
        f"Stacked area of tokens by component over {int(turns['ended'].sum()):,} turns. "
        f"Highest at turn {peak['turn']} with {tokens(peak['used'])} tokens; "
        f"at the last turn {tokens(last['used'])} tokens{share}{zone}."
    )
