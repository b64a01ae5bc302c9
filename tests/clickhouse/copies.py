"""A store and its copy, compared row for row."""

from __future__ import annotations

from typing import Any

from windowpane.clickhouse.connection import ClickHouse
from windowpane.clickhouse.reads import ClickHouseReader
from windowpane.store.interface import EventFilter, SessionFilter
from windowpane.store.records import ToolUse
from windowpane.store.sqlite import SqliteStore

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
    for by_target in (True, False):
        copied = reader.tool_leaderboard(by_target=by_target, limit=1_000)
        assert sorted(map(rounded, copied)) == sorted(
            map(rounded, store.tool_leaderboard(by_target=by_target, limit=1_000))
        )
    assert reader.facets() == store.facets()
    for query in filters(store):
        assert reader.events_or_damage(query) == store.events_or_damage(query), query
        assert reader.count_events(query) == store.count_events(query), query
    assert list(reader.export_batches(EVERYTHING)) == list(store.export_batches(EVERYTHING))


def rounded(use: ToolUse) -> tuple[Any, ...]:
    """Return the values with the cost as far as a sum of floats is the same in any order."""
    cost = None if use.dollars is None else float(f"{use.dollars:.9g}")
    return (use.tool, use.target, use.blocks, use.tokens, use.carried_tokens, cost or 0.0, use.sessions)


def counts(clickhouse: ClickHouse) -> dict[str, int]:
    """Return the rows of each table that a reader sees."""
    rows = {
        table: clickhouse.query(f"SELECT count() FROM {table} FINAL WHERE NOT removed")
        for table in ("turns", "alerts", "session_days", "tool_use")
    }
    rows |= {table: clickhouse.query(f"SELECT count() FROM {table} FINAL") for table in ("events", "sessions")}
    return {table: int(count) for table, ((count,),) in rows.items()}
