"""The reads of long ranges: of the copy in ClickHouse where one is configured, else of the store."""

from __future__ import annotations

import streamlit as st

from windowpane.config.loading import load_config
from windowpane.config.outputs import ClickHouseConfig
from windowpane.config.paths import default_store
from windowpane.store.clickhouse.configured import configured_copy
from windowpane.store.clickhouse.fallback import Copy, ReadsWithFallback
from windowpane.store.reads.project_reader import ProjectReader
from windowpane.store.reads.reader import Reader
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.store_access import open_store


def long_ranges(store: Reader | ProjectReader) -> ReadsWithFallback:
    """Return the reads for one drawing of a page."""
    copy = _copy(load_config().clickhouse)
    if isinstance(store, ProjectReader):
        whole = None if copy is None else open_store(default_store())
        return ReadsWithFallback(store, copy, copied=whole, projects=store.projects)
    return ReadsWithFallback(store, copy, copied=store)


def show_note(reads: ReadsWithFallback) -> None:
    """Draw the line about a copy that is not complete."""
    with widgets.part():
        if reads.note:
            st.caption(reads.note)


@st.cache_resource(show_spinner=False, max_entries=4, hash_funcs={ClickHouseConfig: repr})
def _copy(config: ClickHouseConfig) -> Copy | None:
    """Return the configured copy; one connection serves all browser sessions."""
    return configured_copy(config)
