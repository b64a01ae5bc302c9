"""A filter by days in the reader's time zone."""

from __future__ import annotations

from datetime import date
from typing import Final

import streamlit as st

from windowpane_dashboard.page import address, times, widget_state
from windowpane_dashboard.queries.filters import FIRST_DAY, LAST_DAY, DateRange

NAME: Final = "dates"
WIDTH: Final = 236
"""Pixels in which both days fit."""


def date_range(
    bar: st.delta_generator.DeltaGenerator,
    page: str,
    dates: DateRange | None,
    *,
    clears: tuple[str, ...] = (),
) -> None:
    """Show the filter in *bar*; both days chosen, the address follows, without those that it *clears*."""
    control = f"{page}_{NAME}"
    key = widget_state.fresh_key(control, () if dates is None else tuple(dates))

    def on_choice(chosen: tuple[date, ...]) -> None:
        if len(chosen) != 1:  # with one of two days the choice is not complete
            days = str(DateRange(*chosen)) if chosen else None
            address.update(page, **dict.fromkeys(clears), **{NAME: days})

    bar.container(width=WIDTH).date_input(
        "Days",
        key=key,
        min_value=FIRST_DAY,
        max_value=LAST_DAY,
        on_change=lambda: widget_state.apply(control, key, on_choice),
        format="YYYY-MM-DD",
        help=f"From the first to the last day, in your time: {times.reader_zone_label()}.",
    )
