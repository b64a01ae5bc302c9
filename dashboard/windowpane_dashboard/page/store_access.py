"""The store behind the pages: one handle a path, reads cached by the store's version, failures contained."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import streamlit as st

from windowpane.config.paths import default_store
from windowpane.exceptions import SchemaVersionError, StoreError, WindowpaneError
from windowpane.store.interface import SessionFilter
from windowpane.store.records import SessionRow
from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.page import address
from windowpane_dashboard.queries import alerts as alert_queries
from windowpane_dashboard.queries import sessions as queries
from windowpane_dashboard.queries import window as window_queries
from windowpane_dashboard.queries.filters import AlertFilters, FleetFilters

logger = logging.getLogger(__name__)

READ_ERRORS: Final = (WindowpaneError, sqlite3.Error, OSError)
REFRESH_SECONDS: Final = 5
Drawing = TypeVar("Drawing")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A store as it was when the page was drawn; path and version say whether two are the same."""

    store: SqliteStore
    path: str
    version: int


@st.cache_resource(show_spinner=False, max_entries=4)
def open_store(path: str) -> SqliteStore:
    """The store at *path*; one handle for all browser sessions."""
    return SqliteStore(Path(path))


def page_snapshot() -> Snapshot:
    """The store to show; where it is missing or cannot be read the page says so and stops here."""
    path = default_store()
    if not path.exists():
        show_empty(f"There is no store at {path} yet.")
    with contained("The store cannot be opened", f"The file is {path}."):
        store = open_store(str(path))
        return Snapshot(store, str(path), store.version())
    raise AssertionError("contained() stops the page")


@contextmanager
def contained(what: str, detail: str = "") -> Iterator[None]:
    """Turn a failing read into a message: what failed, what still works, what to try. The page stops."""
    try:
        yield
    except READ_ERRORS as error:
        logger.exception("%s", what)
        show_failure(what, error, detail)


def show_failure(what: str, error: Exception, detail: str = "") -> None:
    """Say what failed and stop the page."""
    st.error(what + ".", icon=":material/error:")
    st.text(f"{type(error).__name__}: {error}")
    if detail:
        st.text(detail)
    if isinstance(error, SchemaVersionError):
        st.text("It was written by a newer release: upgrade Windowpane, then reload this page.")
    elif isinstance(error, StoreError | sqlite3.Error):
        st.text("Running agents are not affected. To see what is damaged:")
        st.code("windowpane doctor\nwindowpane audit verify", language=None)
    else:
        st.text("Check that the file exists and can be read by this user, then reload this page.")
    st.stop()


def show_empty(what: str) -> None:
    """Say that there is nothing yet and what to do about it, and stop the page."""
    st.subheader("Nothing to show yet", anchor=False)
    st.text(what)
    st.text("Import the sessions that your coding agents have already recorded on this machine:")
    st.code("windowpane import", language=None)
    st.text("Or look around with recorded demo sessions:")
    st.code("windowpane demo", language=None)
    st.text("To watch an agent of your own, start Windowpane inside it:")
    st.code("import windowpane\n\nwindowpane.start()\nclient = windowpane.observe(client)", language=None)
    st.stop()


def follow(snapshot: Snapshot, *, page: str | None = None) -> None:
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
        if changed and (page is None or not address.arrived(page)):
            st.rerun()

    watch()


def _identity(snapshot: Snapshot) -> tuple[str, int]:
    return snapshot.path, snapshot.version


def _place(snapshot: Snapshot) -> str:
    return snapshot.path


@st.cache_data(show_spinner=False, max_entries=32, hash_funcs={Snapshot: _identity})
def fleet(snapshot: Snapshot, filters: FleetFilters) -> queries.Fleet:
    """`queries.fleet`, cached while the store does not change."""
    return queries.fleet(snapshot.store, filters)


def _state(row: SessionRow) -> str:
    return repr(row)  # with its number of events and its last moment: another event makes another row


@st.cache_data(show_spinner=False, max_entries=4, hash_funcs={Snapshot: _identity})
def recent(snapshot: Snapshot, limit: int) -> list[SessionRow]:
    """The most recent sessions, cached while the store does not change."""
    return list(snapshot.store.sessions(SessionFilter(order="recent", limit=limit)))


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={Snapshot: _place, SessionRow: _state})
def timeline(snapshot: Snapshot, row: SessionRow) -> queries.Timeline:
    """`queries.timeline`, cached while this session does not change; shared, so not to be changed."""
    return queries.timeline(snapshot.store, row.session_id)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={Snapshot: _place, SessionRow: _state})
def compressions(snapshot: Snapshot, row: SessionRow) -> tuple[window_queries.Compression, ...]:
    """`window_queries.compressions`, cached while this session does not change."""
    return window_queries.compressions(snapshot.store, row.session_id)


def drawn(snapshot: Snapshot, row: SessionRow, what: str, draw: Callable[[], Drawing]) -> Drawing:
    """What *draw* makes of this session, cached while the session does not change.

    *what* names the drawing and all that it depends on beside the session, such as the palette.
    """
    found: Drawing = _drawn((snapshot.path, _state(row), what), draw)
    return found


@st.cache_resource(show_spinner=False, max_entries=64)
def _drawn(key: tuple[str, str, str], _draw: Callable[[], Any]) -> Any:  # noqa: ARG001  # the cache's key
    return _draw()


@st.cache_data(show_spinner=False, max_entries=16, hash_funcs={Snapshot: _identity})
def firings(snapshot: Snapshot, filters: AlertFilters) -> alert_queries.Firings:
    """`alert_queries.firings`, cached while the store does not change."""
    return alert_queries.firings(snapshot.store, filters)
