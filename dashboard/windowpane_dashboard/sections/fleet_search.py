"""The search field of the fleet: one field for text and filters."""

from __future__ import annotations

from datetime import datetime

from windowpane.core.characters import plain
from windowpane.store.reads.project_reader import EventReader
from windowpane_dashboard.page import address, times, widget_state, widgets
from windowpane_dashboard.queries import fleet_filters
from windowpane_dashboard.queries.filters import MAXIMUM_TEXT, FleetFilters

CONTROL = "fleet_search"
HELP = (
    "Text looks in title, id, agent, folder, repository, branch and label. Days may be typed: "
    "2026-03-02..2026-03-05."
)


def fleet_search(store: EventReader, filters: FleetFilters, *, page: str) -> None:
    """Draw the field with the filters of the address; a choice changes the address of *page*."""
    present = fleet_filters.chosen(filters)
    choices = {**fleet_filters.offered(store.facets(), datetime.now(times.reader_zone()).date()), **present}
    key = widget_state.fresh_key(CONTROL, list(present))

    def on_choice(texts: list[str]) -> None:
        read = fleet_filters.read((text[:MAXIMUM_TEXT] for text in texts), choices, project=filters.project)
        address.write(page, read.to_query())

    widgets.control_bar().container().multiselect(
        "Search or filter",
        list(choices),
        key=key,
        format_func=plain,
        accept_new_options=True,
        placeholder="Search or filter …",
        label_visibility="collapsed",
        help=HELP,
        on_change=lambda: widget_state.apply(CONTROL, key, on_choice),
    )
    address.write(page, filters.to_query())
