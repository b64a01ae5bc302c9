"""The field that selects a turn by its time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import pandas as pd
import streamlit as st

from windowpane.store.records import SessionRow
from windowpane_dashboard.page import store_access, times, widget_state
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.events import moments
from windowpane_dashboard.queries.timeline import Timeline, turn_at
from windowpane_dashboard.sections.timeline import select_turn, turns_of

TIME: Final = "turn_time"
MINUTE: Final = timedelta(minutes=1)


class _Clock(NamedTuple):
    """The times of the turns of a session in the reader's zone, in whole minutes."""

    minutes: dict[int, datetime]
    first: datetime
    last: datetime


def _clock(turns: pd.DataFrame) -> _Clock | None:
    at = moments(turns["at"])
    if at.isna().any():
        return None
    minutes = times.in_reader_zone(at).dt.tz_localize(None).dt.floor("min").dt.to_pydatetime()
    by_turn = dict(zip(turns["turn"], minutes, strict=True))
    return _Clock(by_turn, min(minutes), max(minutes))


def time_control(snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline, turn: int) -> None:
    """Draw a button with the time of *turn*, which another time replaces; nothing where no time is recorded."""
    clock = store_access.cached_for_session(
        snapshot, row, f"clock, {times.reader_zone_label()}", lambda: _clock(timeline.turns)
    )
    here = None if clock is None else clock.minutes.get(turn)
    if clock is None or here is None:
        return
    first, last = clock.first, clock.last
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
