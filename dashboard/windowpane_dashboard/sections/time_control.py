"""The field that selects a turn by its time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import streamlit as st

from windowpane_dashboard.page import times, widget_state
from windowpane_dashboard.queries.events import moments
from windowpane_dashboard.queries.timeline import Timeline, turn_at
from windowpane_dashboard.sections.timeline import select_turn, turns_of

TIME: Final = "turn_time"
MINUTE: Final = timedelta(minutes=1)


def time_control(timeline: Timeline, turn: int) -> None:
    """Draw a button with the time of *turn*, which another time replaces; nothing where no time is recorded."""
    at = moments(timeline.turns["at"])
    if at.isna().any():
        return
    clock = times.in_reader_zone(at).dt.tz_localize(None)
    here = clock[timeline.turns["turn"] == turn].iloc[0].floor("min").to_pydatetime()
    first, last = clock.min().floor("min").to_pydatetime(), clock.max().floor("min").to_pydatetime()
    key = widget_state.fresh_key(TIME, here, scope=(first, last))

    def go(chosen: datetime | None) -> None:
        if chosen is not None:
            moment = chosen.replace(tzinfo=times.reader_zone()).timestamp()
            select_turn(turn_at(timeline.turns, moment), turns_of(timeline)[1])

    with st.popover("Time", icon=":material/schedule:"):
        st.datetime_input(
            "Go to time",
            None,  # of the state; "now" would be beyond the last turn
            min_value=first,
            max_value=last,
            key=key,
            step=MINUTE,
            format="YYYY-MM-DD",
            on_change=lambda: widget_state.apply(TIME, key, go),
            help=f"Selects the first turn of this minute or after it. Your time: {times.reader_zone_label()}.",
        )
