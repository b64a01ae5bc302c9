"""The navigation of the dashboard; `windowpane dashboard` runs this file."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from windowpane_dashboard.page import visitor, widget_state
from windowpane_dashboard.page.palette import palette

HERE = Path(__file__).parent

# A page icon by name would be fetched from a font server; this one is a file of the package.
st.set_page_config(page_title="Windowpane", page_icon=str(HERE / "style" / "icon.svg"), layout="wide")
st.html(HERE / "style" / "theme.css")
signed_in = visitor.require()
page = st.navigation(
    [
        st.Page("views/fleet.py", title="Fleet", default=True),
        st.Page("views/session.py", title="Session", url_path="session"),
        st.Page("views/compare.py", title="Compare", url_path="compare"),
        st.Page("views/trends.py", title="Trends", url_path="trends"),
        st.Page("views/replay.py", title="Replay", url_path="replay"),
        st.Page("views/alerts.py", title="Alerts", url_path="alerts"),
        st.Page("views/search.py", title="Search", url_path="search"),
        st.Page("views/audit.py", title="Audit", url_path="audit"),
    ],
    position="top",
)
palette()
visitor.show_menu(signed_in)
page.run()
widget_state.finish_drawing()
