"""An open page that follows its store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from windowpane.core.times import live_since
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.page import store_access
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import read_fleet, visible_content

Poll = Callable[[], None]


class Page:
    """A page whose polls a test makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: SqliteStore) -> None:
        self.store, self.drawn = store, 0
        self.now = time.time()
        self.polls: list[Poll] = []
        monkeypatch.setattr(store_access.st, "fragment", lambda **_: self._fragment)
        monkeypatch.setattr(store_access.st, "rerun", self._draw_again)

    def draw(self) -> None:
        snapshot = StoreSnapshot(self.store, "w.db", self.store.version())
        store_access.rerun_on_change(snapshot, content=self.content)

    def content(self, snapshot: StoreSnapshot) -> object:
        since = live_since(self.now)
        query = FleetFilters().to_store(limit=3, since=since)
        return visible_content(read_fleet(snapshot.store, query, since), self.now)

    def poll(self) -> int:
        self.polls[-1]()
        return self.drawn

    def _fragment(self, poll: Poll) -> Poll:
        self.polls.append(poll)
        return poll

    def _draw_again(self) -> None:
        self.drawn += 1
        self.draw()


def test_the_fleet_is_drawn_again_only_where_something_shown_has_changed(
    monkeypatch: pytest.MonkeyPatch, small_store: SqliteStore, builders: Any
) -> None:
    page = Page(monkeypatch, small_store)
    old = page.now - 90_000
    small_store.append(builders.plain("listed", start=page.now - 100, turns=3, limit_tokens=90_000, end=False))
    page.draw()

    small_store.append(builders.plain("not listed", start=old, turns=1, limit_tokens=9_000_000, end=True))
    after_unlisted = page.poll()
    small_store.register_endpoint("127.0.0.1", 9464, pid=1, started_at=old)
    after_no_session = page.poll()
    small_store.append(builders.plain("new", start=page.now - 50, turns=3, limit_tokens=20_000, end=False))
    after_listed = page.poll()
    page.now += 90
    small_store.register_endpoint("127.0.0.1", 9465, pid=1, started_at=old)
    after_a_minute = page.poll()

    assert (after_unlisted, after_no_session, after_listed, after_a_minute) == (0, 0, 1, 2)


def test_content_is_read_once_for_each_change(monkeypatch: pytest.MonkeyPatch, small_store: SqliteStore) -> None:
    page, reads = Page(monkeypatch, small_store), list[int]()
    content = page.content

    def counted(snapshot: StoreSnapshot) -> object:
        reads.append(snapshot.version)
        return content(snapshot)

    monkeypatch.setattr(page, "content", counted)
    page.draw()
    small_store.register_endpoint("127.0.0.1", 9464, pid=1, started_at=1.0)
    for _ in range(3):
        page.poll()

    assert len(reads) == len(set(reads)) == 2
