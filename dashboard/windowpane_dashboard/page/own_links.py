"""Links of a page to itself with other parameters, which Streamlit follows without changing the address."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

_mount: Final = st.components.v2.component(
    "windowpane_own_links", js=Path(__file__).with_suffix(".js").read_text()
)


def follow_own_links() -> None:
    """Make the links of this page to itself change the address, so that Back, reload and copies work."""
    _mount(key="own_links", height="content")
