"""Pages read the copy where it is up to date, else the store, and state which."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.store.clickhouse.copies import EVERYTHING

from windowpane.exceptions import ClickHouseError
from windowpane.store.clickhouse import fallback
from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.fallback import RETRY_SECONDS, Copy, ReadsWithFallback
from windowpane.store.clickhouse.reads import ClickHouseReader
from windowpane.store.filters import EventFilter
from windowpane.store.reads.export import ExportRow


class Clock:
    """A clock that stands still until it is moved."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def nowhere(port: int) -> ClickHouse:
    return ClickHouse(f"http://127.0.0.1:{port}", database="windowpane", connect_seconds=1)


def test_the_store_is_read_while_clickhouse_does_not_answer(store, make_session, free_port, caplog):
    store.append(make_session())
    reads = ReadsWithFallback(store, Copy(ClickHouseReader(nowhere(free_port()))), copied=store)

    assert reads.note == "ClickHouse did not answer; this page shows what the store holds."
    assert not reads.uses_copy
    assert "cannot be reached ([Errno 111] Connection refused)" in caplog.text
    assert reads.trends(days=30) == store.trends(days=30) != []
    assert reads.tool_leaderboard(days=30) == store.tool_leaderboard() != []
    assert reads.events_or_damage(EventFilter()) == store.events_or_damage(EventFilter())
    assert reads.count_events(EventFilter()) == store.count_events(EventFilter())
    assert reads.facets() == store.facets()
    assert list(reads.export_batches(EVERYTHING)) == list(store.export_batches(EVERYTHING))


def test_after_a_failure_pages_do_not_wait_for_clickhouse(store, make_session, free_port, monkeypatch):
    store.append(make_session())
    attempts = []
    clock = Clock()
    copy = Copy(ClickHouseReader(nowhere(free_port())), monotonic=clock)
    query = ClickHouse.query
    monkeypatch.setattr(ClickHouse, "query", lambda *given: (attempts.append(given), query(*given))[1])

    for moved in (0.0, 1.0, RETRY_SECONDS - 2.0, 2.0):
        clock.now += moved
        assert ReadsWithFallback(store, copy, copied=store).note.startswith("ClickHouse did not answer")

    assert len(attempts) == 2


def test_without_clickhouse_the_store_is_read(store, make_session):
    store.append(make_session())
    reads = ReadsWithFallback(store)

    assert reads.trends(days=30) == store.trends(days=30)
    assert (reads.note, reads.uses_copy) == ("", False)


def test_a_copy_that_is_behind_is_read_with_a_line(store, make_session, clickhouse, copy_store, monkeypatch):
    """One that lacks much is not read at all: a page would miss what happened today."""
    store.append(make_session("s1"))
    copy_store(store)
    copy = Copy(ClickHouseReader(clickhouse))
    assert ReadsWithFallback(store, copy, copied=store).note == ""
    later = make_session("s2", turns=1)
    store.append(later)

    behind = ReadsWithFallback(store, copy, copied=store)
    monkeypatch.setattr(fallback, "MAXIMUM_LAG_EVENTS", len(later) - 1)
    far_behind = ReadsWithFallback(store, copy, copied=store)

    missing = f"ClickHouse lacks the latest {len(later)} events"
    assert (behind.note, behind.uses_copy) == (f"{missing}.", True)
    assert behind.count_events(EventFilter()) + len(later) == store.count_events(EventFilter())
    assert (far_behind.note, far_behind.uses_copy) == (f"{missing}; this page shows what the store holds.", False)
    assert far_behind.count_events(EventFilter()) == store.count_events(EventFilter())


def test_a_database_without_a_copy_of_the_store_is_not_read(
    store, make_session, clickhouse, copy_store, tmp_path
):
    from windowpane.store.embedded import SqliteStore

    copy_store(store)
    other = SqliteStore(tmp_path / "other.db")
    other.append(make_session())

    reads = ReadsWithFallback(other, Copy(ClickHouseReader(clickhouse)), copied=other)

    assert reads.note == "ClickHouse has no copy of this store; this page shows what the store holds."
    assert reads.trends(days=30) == other.trends(days=30)
    other.close()


def test_an_export_continues_with_the_store_where_clickhouse_fails(store, make_session):
    store.append(make_session("s1"))
    rows = [row for batch in store.export_batches(EVERYTHING) for row in batch]

    class Failing(ClickHouseReader):
        def position(self, store: str) -> int:
            return rows[-1].seq

        def export_batches(self, query: EventFilter) -> Iterator[list[ExportRow]]:
            yield rows[:10]
            raise ClickHouseError("http://127.0.0.1", "connection reset")

    reads = ReadsWithFallback(store, Copy(Failing(nowhere(1))), copied=store)

    assert [row for batch in reads.export_batches(EVERYTHING) for row in batch] == rows
    assert not reads.uses_copy


def test_a_refused_login_is_reported_without_the_password(clickhouse_server):
    connection = ClickHouse(clickhouse_server.url, database="windowpane", user="windowpane", password="wrong one")

    with pytest.raises(ClickHouseError, match="AUTHENTICATION_FAILED") as raised:
        connection.query("SELECT 1")

    assert clickhouse_server.url in str(raised.value)
    assert "wrong one" not in str(raised.value)
    assert "\n" not in str(raised.value)
