"""Navigation, and nothing else: `windowpane dashboard` runs this file."""

from __future__ import annotations

import streamlit as st

st.set_page_config(page_title="Windowpane", layout="wide")
st.navigation(
    [
        st.Page("views/fleet.py", title="Fleet", icon=":material/view_list:", default=True),
        st.Page("views/session.py", title="Session", icon=":material/stacked_line_chart:", url_path="session"),
        st.Page("views/audit.py", title="Audit", icon=":material/fact_check:", url_path="audit"),
    ],
    position="top",
).run()
