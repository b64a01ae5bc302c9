"""The store behind the pages: one handle a path, reads cached by the store's version, failures contained."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import streamlit as st

from windowpane.config.paths import default_store
from windowpane.store.interface import SessionFilter
from windowpane.store.records import SessionRow
from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.page import address
from windowpane_dashboard.page.messages import READ_ERRORS, report_read_errors, show_empty
from windowpane_dashboard.queries.alerts import Firings, read_firings
from windowpane_dashboard.queries.compressions import EvaluatedCompression, read_compressions
from windowpane_dashboard.queries.filters import AlertFilters, FleetFilters
from windowpane_dashboard.queries.fleet import Fleet, read_fleet
from windowpane_dashboard.queries.timeline import Timeline, read_timeline

logger = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 5
Drawing = TypeVar("Drawing")


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """A store as it was when the page was drawn; path and version say whether two are the same."""

    store: SqliteStore
    path: str
    version: int


@st.cache_resource(show_spinner=False, max_entries=4)
def open_store(path: str) -> SqliteStore:
    """The store at *path*; one handle for all browser sessions."""
    return SqliteStore(Path(path))


def open_snapshot() -> StoreSnapshot:
    """The store to show; where it is missing or cannot be read the page says so and stops here."""
    path = default_store()
    if not path.exists():
        show_empty(f"There is no store at {path} yet.")
    with report_read_errors("The store cannot be opened", f"The file is {path}."):
        store = open_store(str(path))
        return StoreSnapshot(store, str(path), store.version())
    raise AssertionError("contained() stops the page")


def rerun_on_change(snapshot: StoreSnapshot, *, page: str | None = None) -> None:
    """Draw the page again once the store has changed; while it has not, each look costs one small read.

    A look that the browser asked for before it had seen the last address of *page* waits for the next one: drawn
    with the older address, the page would go back to where it was.
    """

    @st.fragment(run_every=REFRESH_SECONDS)
    def watch() -> None:
        try:
            changed = snapshot.store.version() != snapshot.version
        except READ_ERRORS:
            logger.warning("the store cannot be read now; the page stays as it is", exc_info=True)
            return
        if changed and (page is None or not address.changed_elsewhere(page)):
            st.rerun()

    watch()


def _identity(snapshot: StoreSnapshot) -> tuple[str, int]:
    return snapshot.path, snapshot.version


def _path(snapshot: StoreSnapshot) -> str:
    return snapshot.path


@st.cache_data(show_spinner=False, max_entries=32, hash_funcs={StoreSnapshot: _identity})
def fleet(snapshot: StoreSnapshot, filters: FleetFilters) -> Fleet:
    """`read_fleet`, cached while the store does not change."""
    return read_fleet(snapshot.store, filters)


def _state(row: SessionRow) -> str:
    return repr(row)  # with its number of events and its last moment: another event makes another row


@st.cache_data(show_spinner=False, max_entries=4, hash_funcs={StoreSnapshot: _identity})
def recent_sessions(snapshot: StoreSnapshot, limit: int) -> list[SessionRow]:
    """The most recent sessions, cached while the store does not change."""
    return list(snapshot.store.sessions(SessionFilter(order="recent", limit=limit)))


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _path, SessionRow: _state})
def timeline(snapshot: StoreSnapshot, row: SessionRow) -> Timeline:
    """`read_timeline`, cached while this session does not change; shared, so not to be changed."""
    return read_timeline(snapshot.store, row.session_id)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _path, SessionRow: _state})
def compressions(snapshot: StoreSnapshot, row: SessionRow) -> tuple[EvaluatedCompression, ...]:
    """`read_compressions`, cached while this session does not change."""
    return read_compressions(snapshot.store, row.session_id)


def cached_for_session(
    snapshot: StoreSnapshot, row: SessionRow, what: str, draw: Callable[[], Drawing]
) -> Drawing:
    """What *draw* makes of this session, cached while the session does not change.

    *what* names the drawing and all that it depends on beside the session, such as the palette.
    """
    found: Drawing = _drawn((snapshot.path, _state(row), what), draw)
    return found


@st.cache_resource(show_spinner=False, max_entries=64)
def _drawn(key: tuple[str, str, str], _draw: Callable[[], Any]) -> Any:  # noqa: ARG001  # the cache's key
    return _draw()


@st.cache_data(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _identity})
def firings(snapshot: StoreSnapshot, filters: AlertFilters) -> Firings:
    """`read_firings`, cached while the store does not change."""
    return read_firings(snapshot.store, filters)
