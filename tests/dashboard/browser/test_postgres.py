"""The dashboard on a PostgreSQL store: fleet, a session, and what other processes write while a page is open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.store_names import StoreUrl
from windowpane.store.copying import copy_store
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.open import open_reader, open_store

pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.browser, pytest.mark.matrix, pytest.mark.server]


def test_fleet_and_session_are_drawn_and_follow_the_store(
    site: Callable[..., Any], recorded: Path, postgres_url: str
) -> None:
    source, store = open_reader(recorded), open_store(postgres_url)
    copy_store(source, store)
    source.close()
    sessions = store.sessions(SessionFilter())
    here = site(StoreUrl(postgres_url))

    page = here.open()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    here.assert_shows(f"{len(sessions)} sessions")
    events = [one.event for one in store.events(EventFilter(session_id=sessions[0].session_id, limit=40))]
    context = events[0].context
    copied = type(context)(*[
        f"copy of {getattr(context, name)}" if name in ("session_id", "stream_id") else getattr(context, name)
        for name in context.__dataclass_fields__
    ])  # fmt: skip
    store.append([event._replace(context=copied) for event in events])
    here.assert_shows(f"{len(sessions) + 1} sessions")

    page = here.open("session", session=sessions[0].session_id)
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    for part in ("Lost or contradicted", "In the window", "Log"):
        here.assert_shows(part)
    store.close()
