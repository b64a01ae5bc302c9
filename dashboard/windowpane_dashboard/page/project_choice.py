"""The choice of one project on the pages that list sessions; it is part of each page's address.

A page that is opened from the navigation has no address yet and keeps the choice of the page before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import Query

PROJECT: Final = "project"
_PAGE, _CHOSEN = "page_of_project", "chosen_project"


def query_of(page: str) -> Query:
    """Return the query of the address, with the project of the page before where it was opened without one."""
    query = st.query_params.to_dict()
    opened = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    if opened and PROJECT not in query and (chosen := st.session_state.get(_CHOSEN)):
        query[PROJECT] = chosen
    return query


def of_project(
    snapshot: StoreSnapshot, page: str, project: str | None, *, clears: tuple[str, ...] = ()
) -> StoreSnapshot:
    """Return the snapshot of the chosen project, and draw the choice where there is more than one project."""
    st.session_state[_CHOSEN] = project
    names: Sequence[str] = store_access.project_names(snapshot)
    if len(names) > 1 or project is not None:
        widgets.filter_select(st.columns([2, 7])[0], "Project", names, project, page=page, clears=clears)
    return snapshot.of_project(project)
