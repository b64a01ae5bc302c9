"""Links between the records of one session that several sources recorded."""

from __future__ import annotations

import streamlit as st

from windowpane.store.filters import SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.titles import session_title
from windowpane_dashboard.style.sanitize import escape_markdown

RECORDS = 8


def record_links(store: EventReader, row: SessionRow) -> None:
    """Draw a link to the record that counts, or to those that this one counts for."""
    if row.same_as:
        counting = store.session(row.same_as)
        title = row.same_as if counting is None else session_title(counting)
        _link(row.same_as, f"The same session as {title}, which counts for both")
        return
    for record in store.sessions(SessionFilter(same_as=row.session_id, order="recent", limit=RECORDS)):
        _link(record.session_id, f"Also recorded by {record.source}")


def _link(session_id: str, label: str) -> None:
    st.page_link(
        "views/session.py",
        label=escape_markdown(label),
        icon=":material/content_copy:",
        query_params=SessionAddress(session_id).to_query(),
    )
