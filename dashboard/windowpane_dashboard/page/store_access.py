"""The store behind the pages: one handle per path, reads cached by the store's version."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Final, TypeVar

import streamlit as st

from windowpane.config.paths import READ_ONLY_VARIABLE, default_store
from windowpane.core.names import repository_name
from windowpane.core.store_names import StoreName, StoreUrl
from windowpane.core.times import live_since
from windowpane.evaluation.replay.compaction_threshold import ThresholdAdvice, read_advice
from windowpane.exceptions import StoreError
from windowpane.report.context_health import (
    MAXIMUM_SESSIONS,
    ContextHealth,
    SessionHealth,
    health_of,
    latest_sessions,
    read_session_health,
)
from windowpane.store import open as store_opening
from windowpane.store.filters import SessionFilter
from windowpane.store.reads.project_reader import ProjectReader
from windowpane.store.records import Composition, SessionRow
from windowpane.store.search.content import ContentFilter, ContentHits
from windowpane.store.store import Store
from windowpane_dashboard.page import address, visitor
from windowpane_dashboard.page.messages import READ_ERRORS, report_read_errors, show_empty
from windowpane_dashboard.queries.alerts import Firings, read_firings
from windowpane_dashboard.queries.compressions import EvaluatedCompression, read_compressions
from windowpane_dashboard.queries.filters import AlertFilters
from windowpane_dashboard.queries.fleet import Fleet, read_fleet
from windowpane_dashboard.queries.timeline import Timeline, read_timeline
from windowpane_dashboard.queries.trends import COMPARED_SESSIONS

logger = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 5
INDEX_SECONDS: Final = 0.3
LIVENESS_SECONDS: Final = 30.0
Drawing = TypeVar("Drawing")


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """A store at the version that the page shows, as far as the visitor may see it."""

    store: Store | ProjectReader
    path: str
    version: int
    projects: tuple[str, ...] | None = None
    """Projects whose sessions are visible; None for all."""
    is_admin: bool = True
    """The visitor may verify the whole store and write to it."""

    def of_project(self, project: str | None) -> StoreSnapshot:
        """Return the snapshot with the sessions of one project only; None changes nothing."""
        if project is None:
            return self
        visible = self.projects is None or project in self.projects
        chosen = (project,) if visible else ()
        return replace(self, store=ProjectReader(_opened(), chosen), projects=chosen)


@st.cache_resource(show_spinner=False, max_entries=4, hash_funcs={StoreUrl: str})
def open_store(name: StoreName) -> Store:
    """Open a store; one handle serves all browser sessions."""
    return store_opening.open_store(name)


def open_snapshot() -> StoreSnapshot:
    """Open the configured store; where it is missing or cannot be read, show a message and stop the page."""
    name = default_store()
    if not store_opening.store_exists(name):
        show_empty(f"The store {name} does not exist yet.")
    with report_read_errors("The store cannot be opened", f"The store is {name}."):
        store = open_store(name)
        access = visitor.require().access
        reader = store if access.projects is None else ProjectReader(store, access.projects)
        return StoreSnapshot(reader, str(name), store.version(), access.projects, access.is_admin)
    raise AssertionError("contained() stops the page")


def _opened() -> Store:
    return open_store(default_store())


def may_write(snapshot: StoreSnapshot) -> bool:
    """Return whether the visitor may add notes: not where the dashboard was started to read only."""
    return snapshot.is_admin and can_write()


def whole_store() -> Store:
    """Return the whole store, to verify and to write to. Raises `StoreError` where the visitor is not an admin.

    Asks again who the visitor is: a button of an earlier drawing may be pressed after a role was removed.
    """
    if not visitor.current().access.is_admin:
        raise StoreError("only an admin of this dashboard may do this")
    return _opened()


def can_write() -> bool:
    """Return whether this dashboard may write to the store."""
    name = _opened().address
    return not os.environ.get(READ_ONLY_VARIABLE) and (isinstance(name, StoreUrl) or os.access(name, os.W_OK))


def find_content(snapshot: StoreSnapshot, query: ContentFilter) -> ContentHits:
    """Return the captured content that matches; new content is indexed first, for a moment.

    The rest follows when the page is drawn again, which it is because the store has changed.
    """
    if can_write():
        store = _opened()
        deadline = time.monotonic() + INDEX_SECONDS
        try:
            while time.monotonic() < deadline and store.index_text():
                pass
        except READ_ERRORS:
            logger.warning(
                "captured content cannot be indexed now: this search is slower, and the next one tries again",
                exc_info=True,
            )
    return snapshot.store.find_content(query)


def rerun_on_change(
    snapshot: StoreSnapshot, *, page: str | None = None, content: Callable[[StoreSnapshot], object] | None = None
) -> None:
    """Draw the page again when the store has changed; while it has not, each poll costs one small read.

    *content* returns what the page shows: it is drawn again only where that has changed too. A poll that the
    browser sent before it saw the last address of *page* is skipped: drawn with the older address, the page would
    return to it.
    """
    version, drawn = snapshot.version, None if content is None else content(snapshot)

    @st.fragment(run_every=REFRESH_SECONDS)
    def watch() -> None:
        nonlocal version
        try:
            changed = snapshot.store.has_changed_since(version)
            if changed and content is not None:
                fresh = replace(snapshot, version=snapshot.store.version())
                if content(fresh) == drawn:
                    changed, version = False, fresh.version
        except READ_ERRORS:
            logger.warning("the store cannot be read now: the page stays as it is and tries again", exc_info=True)
            return
        if changed and (page is None or not address.changed_elsewhere(page)):
            st.rerun()

    watch()


def _path_and_version(snapshot: StoreSnapshot) -> tuple[object, int]:
    return _path(snapshot), snapshot.version


def _path(snapshot: StoreSnapshot) -> tuple[str, tuple[str, ...] | None]:
    return snapshot.path, snapshot.projects  # what one visitor may see is never drawn for another


@st.cache_data(show_spinner=False, max_entries=32, hash_funcs={StoreSnapshot: _path_and_version})
def fleet(snapshot: StoreSnapshot, query: SessionFilter, since: float, midnight: float) -> Fleet:
    """Return `read_fleet`, cached while neither the store, the day nor the start of liveness changes."""
    return read_fleet(snapshot.store, query, since, midnight=midnight)


@st.cache_data(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _path_and_version})
def project_names(snapshot: StoreSnapshot) -> list[str]:
    """Return the projects that the visitor may choose from, cached while the store does not change."""
    return list(snapshot.store.project_names())


@st.cache_data(show_spinner=False, max_entries=4, hash_funcs={StoreSnapshot: _path_and_version})
def threshold_advice(snapshot: StoreSnapshot) -> list[ThresholdAdvice]:
    """Return `read_advice` of the latest sessions, cached while the store does not change."""
    return read_advice(snapshot.store, SessionFilter())


def _row_key(row: SessionRow) -> str:
    return repr(row)  # with its number of events and its last moment: another event makes another row


@st.cache_resource(
    show_spinner=False, max_entries=2 * MAXIMUM_SESSIONS, hash_funcs={StoreSnapshot: _path, SessionRow: _row_key}
)
def _session_health(snapshot: StoreSnapshot, row: SessionRow) -> SessionHealth:
    return read_session_health(snapshot.store, row, snapshot.store.turns(row.session_id))


@st.cache_data(show_spinner=False, max_entries=8, hash_funcs={StoreSnapshot: _path_and_version})
def context_health(snapshot: StoreSnapshot, query: SessionFilter, repository: str | None) -> ContextHealth:
    """Return the health of the latest sessions, cached while the store or the session does not change."""
    rows = compared_sessions(snapshot, query, repository)[:MAXIMUM_SESSIONS]
    return health_of([_session_health(snapshot, row) for row in rows])


@st.cache_data(show_spinner=False, max_entries=4, hash_funcs={StoreSnapshot: _path_and_version})
def compared_sessions(snapshot: StoreSnapshot, query: SessionFilter, repository: str | None) -> list[SessionRow]:
    """Return the latest sessions that match, of one *repository*, cached while the store does not change."""
    rows = latest_sessions(snapshot.store, query, limit=COMPARED_SESSIONS)
    return [row for row in rows if repository in (None, repository_name(row.repository, row.folder))]


@st.cache_data(show_spinner=False, max_entries=4, hash_funcs={StoreSnapshot: _path_and_version})
def composition(snapshot: StoreSnapshot, since: float, repository: str | None) -> Composition:
    """Return the content by name from *since* on, cached while the store does not change."""
    return snapshot.store.composition(since=since, repository=repository)


@st.cache_data(show_spinner=False, max_entries=4, hash_funcs={StoreSnapshot: _path_and_version})
def recent_sessions(snapshot: StoreSnapshot, limit: int) -> list[SessionRow]:
    """Return the most recent sessions, cached while the store does not change."""
    return list(snapshot.store.sessions(SessionFilter(order="recent", limit=limit)))


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _path, SessionRow: _row_key})
def timeline(snapshot: StoreSnapshot, row: SessionRow) -> Timeline:
    """Return `read_timeline`, cached while this session does not change; shared, so not to be changed."""
    return read_timeline(snapshot.store, row.session_id)


@st.cache_resource(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _path, SessionRow: _row_key})
def compressions(snapshot: StoreSnapshot, row: SessionRow) -> tuple[EvaluatedCompression, ...]:
    """Return `read_compressions`, cached while this session does not change."""
    return read_compressions(snapshot.store, row.session_id)


def cached_for_session(
    snapshot: StoreSnapshot, row: SessionRow, name: str, draw: Callable[[], Drawing]
) -> Drawing:
    """Return the result of *draw*, cached while this session does not change.

    *name* identifies the drawing and all that it depends on in addition to the session, such as the palette.
    """
    drawing: Drawing = _drawn((_path(snapshot), _row_key(row), name), draw)
    return drawing


@st.cache_resource(show_spinner=False, max_entries=64)
def _drawn(key: tuple[object, str, str], _draw: Callable[[], Any]) -> Any:  # noqa: ARG001  # the cache's key
    return _draw()


@st.cache_data(show_spinner=False, max_entries=16, hash_funcs={StoreSnapshot: _path_and_version})
def firings(snapshot: StoreSnapshot, filters: AlertFilters, since: float, _zone: tzinfo) -> Firings:
    """Return `read_firings`, cached while neither the store nor the start of liveness changes."""
    return read_firings(snapshot.store, filters, since, _zone)


def live_since_now() -> float:
    """Return since when a session must have had an event to be live; constant for half a minute, for caches."""
    return live_since(time.time() // LIVENESS_SECONDS * LIVENESS_SECONDS)
