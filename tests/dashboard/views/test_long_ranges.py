"""Trends and audit over the copy in ClickHouse, and over the store where it does not answer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest
from tests.servers.clickhouse import PASSWORD, USER, ClickHouseServer

from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.reads.project_reader import ProjectReader
from windowpane_dashboard.page.long_ranges import long_ranges

OpenPage = Callable[..., AppTest]
PageText = Callable[[AppTest], str]


@pytest.fixture
def copied(
    small_store: SqliteStore,
    clickhouse: ClickHouse,
    clickhouse_server: ClickHouseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> SqliteStore:
    """A store with its configured copy, which holds more: retention has deleted sessions since."""
    copy = StoreCopy(small_store, clickhouse, Schema(clickhouse.database))
    copy.open()
    while copy.copy_batch():
        pass
    assert small_store.prune(before=time.time() - 3_000) == 2
    for name, value in (
        ("URL", clickhouse_server.url),
        ("USER", USER),
        ("PASSWORD", PASSWORD),
        ("_DATABASE", clickhouse.database),
    ):
        monkeypatch.setenv(f"WINDOWPANE_CLICKHOUSE_{name}", value)
    return small_store


def total(page_text: PageText, app: AppTest) -> int:
    """Return the number of matching events that the audit page states."""
    (number,) = re.findall(r"([\d,]+) matching events", page_text(app))
    return int(number.replace(",", ""))


def test_the_audit_page_searches_the_copy(copied: SqliteStore, open_page: OpenPage, page_text: PageText) -> None:
    app = open_page("audit", session="short")
    everything = open_page("audit")

    assert not app.exception
    assert {cell.partition("#")[2] for cell in app.dataframe[0].value["session"]} == {"short"}
    assert total(page_text, everything) > copied.count_events(EventFilter())
    downloaded = [row for batch in long_ranges(copied).export_batches(EventFilter()) for row in batch]
    assert len(downloaded) == total(page_text, everything)
    assert "ClickHouse" not in page_text(app)


def test_the_trends_page_reads_the_copy(copied: SqliteStore, open_page: OpenPage, page_text: PageText) -> None:
    app = open_page("trends", top="file")

    assert not app.exception
    assert "Over the sessions of this range" in page_text(app)


@pytest.mark.parametrize("page", ["trends", "audit"])
def test_pages_show_the_store_while_clickhouse_is_down(
    copied: SqliteStore,
    clickhouse_server: ClickHouseServer,
    open_page: OpenPage,
    page_text: PageText,
    page: str,
) -> None:
    clickhouse_server.kill()

    app = open_page(page, **({"top": "file"} if page == "trends" else {}))

    assert not app.exception
    assert not app.error
    assert "ClickHouse did not answer; this page shows what the store holds." in page_text(app)
    if page == "audit":
        assert total(page_text, app) == copied.count_events(EventFilter())
    else:
        assert "Over the latest 200 sessions" in page_text(app)


def test_a_reader_of_some_projects_has_their_sums_from_the_copy(copied: SqliteStore) -> None:
    nothing, untitled = (long_ranges(ProjectReader(copied, [project])) for project in ("none", ""))

    assert nothing.trends(days=30) == nothing.tool_leaderboard(days=30) == []
    assert nothing.count_events(EventFilter()) == 0
    assert untitled.uses_copy
    assert untitled.trends(days=30) == copied.trends(days=30) != []
    assert untitled.count_events(EventFilter()) == copied.count_events(EventFilter())
    assert list(untitled.export_batches(EventFilter())) == list(copied.export_batches(EventFilter()))
