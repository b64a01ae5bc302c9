"""What a page says of a failure that nothing else has foreseen.

Streamlit writes the traceback into the dashboard's own output before it asks here. The page gets the kind of the
error and nothing else: its message may hold what an agent has read or written.
"""

from __future__ import annotations

import streamlit as st


def show_unforeseen(error: Exception) -> bool:
    """Say what failed, what still works and what to try; True, so that nothing else is drawn for *error*."""
    with st.container(key="unforeseen"):
        st.error(
            "Something failed here that should not, so a part of this page is missing.", icon=":material/error:"
        )
        st.text(
            "Running agents are not affected and the store is unchanged; other pages, turns and sessions may "
            "still open. Reload this page to try again."
        )
        st.text(f"If it fails again, report it with the lines about {type(error).__name__} from the output of:")
        st.code("windowpane dashboard", language=None)
    return True
