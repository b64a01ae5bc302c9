"""Hand a session over to others: the report as one file, ids to copy."""

from __future__ import annotations

import re
import time
from typing import Final

import streamlit as st

from windowpane.report.html import to_html
from windowpane.report.session_report import gather
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane_dashboard.style.sanitize import sanitized

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def hand_over_buttons(store: EventReader, row: SessionRow) -> None:
    """Draw the button that saves the report, which is made when it is pressed, and the ids with copy buttons."""
    st.download_button(
        "Report",
        data=lambda: to_html(gather(store, row, now=time.time())).encode(errors="replace"),
        file_name=f"{_NOT_IN_A_NAME.sub('_', f'windowpane-{row.session_id}')[:80]}.html",
        mime="text/html",
        icon=":material/download:",
        on_click="ignore",
        help="Saves the report on this session as one HTML file that needs nothing else.",
    )
    with st.popover("Copy", icon=":material/content_copy:"):
        ids = {
            "Session": row.session_id,
            "Title": row.title,
            "Parent session": row.parent_session_id or "",
            "Folder": row.folder,
            "Branch": row.branch,
        }
        for label, value in ids.items():
            if value:
                st.caption(label)
                st.code(sanitized(value), language=None)
