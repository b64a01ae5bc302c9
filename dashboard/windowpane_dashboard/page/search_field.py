"""One field of a page for text and filters, which it shows side by side."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Final

import streamlit as st

from windowpane.core.characters import plain
from windowpane_dashboard.page import address, times, widget_state, widgets
from windowpane_dashboard.queries import filter_chips
from windowpane_dashboard.queries.filter_chips import Filter
from windowpane_dashboard.queries.filters import MAXIMUM_TEXT

_close_list: Final = st.components.v2.component(
    "windowpane_search_field", js=Path(__file__).with_suffix(".js").read_text()
)


def today() -> date:
    """Return the day in the reader's time zone."""
    return datetime.now(times.reader_zone()).date()


def search_field(
    page: str, filters: filter_chips.Filters, offered: Mapping[str, Filter], *, text_is: str
) -> None:
    """Draw the field with the filters of the address; a choice changes the address of *page*.

    *text_is* names what typed text is looked for in.
    """
    present = filter_chips.chosen(filters, offered)
    choices, control = {**offered, **present}, f"{page}_search"
    key = widget_state.fresh_key(control, list(present))

    def on_choice(texts: list[str]) -> None:
        read = filter_chips.read((text[:MAXIMUM_TEXT] for text in texts), choices, filters)
        address.write(page, read.to_query())

    with widgets.control_bar().container(gap=None):
        st.multiselect(
            "Search or filter",
            list(choices),
            key=key,
            format_func=plain,
            accept_new_options=True,
            filter_mode="contains",
            placeholder="Search or filter …",
            label_visibility="collapsed",
            help=f"Text is looked for in {text_is}. Days may be typed: 2026-03-02..2026-03-05.",
            on_change=lambda: widget_state.apply(control, key, on_choice),
        )
        _close_list(key="search_field", data={"chosen": list(present)}, height="content")
    address.write(page, filters.to_query())
