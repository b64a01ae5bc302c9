"""A store and its copy, compared row for row."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.reads import ClickHouseReader
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.records import ToolUse

EVERYTHING = EventFilter(limit=1_000_000)


def filters(store: SqliteStore) -> list[EventFilter]:
    """Return filters of every kind, for sessions that the store has."""
    session = store.sessions(SessionFilter(order="recent"))[0].session_id
    return [
        EventFilter(limit=50),
        EventFilter(limit=50, newest_first=True),
        EventFilter(limit=20, after_seq=30, newest_first=False),
        EventFilter(limit=20, before_seq=60, newest_first=True),
        EventFilter(session_id=session, limit=10_000),
        EventFilter(session_id=session, types=("turn.ended", "block.added"), turn_from=2, turn_to=5),
        EventFilter(limit=50, at_from=5.0, at_to=2_000_000_000.0),
        EventFilter(session_id="no such session"),
        EventFilter(types=("no.such.type",)),
        EventFilter(text="block.added read", limit=50),
        EventFilter(text="tool_res", newest_first=True, limit=20),
        EventFilter(text="READ", types=("block.added",), limit=30),
        EventFilter(text="tool%"),
        EventFilter(text="o_l"),
        EventFilter(text="' \\ \t %"),
        EventFilter(session_id=session, text="gpt", turn_from=1, limit=10_000),
    ]


def assert_equal(store: SqliteStore, clickhouse: ClickHouse) -> None:
    """The copy returns what the store returns, in the same order."""
    reader = ClickHouseReader(clickhouse)
    for days in (1, 30, 20_000):
        assert reader.trends(days=days) == store.trends(days=days)
    copied, stored = (
        sorted(reads.tool_leaderboard(limit=1_000), key=lambda use: (use.tool, use.target))
        for reads in (reader, store)
    )
    assert list(map(_without_cost, copied)) == list(map(_without_cost, stored))
    assert all(map(_costs_the_same, copied, stored))
    assert reader.facets() == store.facets()
    for query in filters(store):
        assert reader.events_or_damage(query) == store.events_or_damage(query), query
        assert reader.count_events(query) == store.count_events(query), query
    assert list(reader.export_batches(EVERYTHING)) == list(store.export_batches(EVERYTHING))


def _costs_the_same(one: ToolUse, other: ToolUse) -> bool:
    if one.dollars is None or other.dollars is None:
        return one.dollars is other.dollars
    return isclose(one.dollars, other.dollars, rel_tol=1e-9)


def _without_cost(use: ToolUse) -> ToolUse:
    """Return a row without its cost, which is a sum of floats and differs in the last digit with their order."""
    return replace(use, dollars=None)


def counts(clickhouse: ClickHouse) -> dict[str, int]:
    """Return the rows of each table that a reader sees."""
    rows = {
        table: clickhouse.query(f"SELECT count() FROM {table} FINAL WHERE NOT removed")
        for table in ("turns", "alerts", "session_days", "tool_use")
    }
    rows |= {table: clickhouse.query(f"SELECT count() FROM {table} FINAL") for table in ("events", "sessions")}
    return {table: int(count) for table, ((count,),) in rows.items()}
