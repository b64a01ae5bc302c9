"""The tables: created once, extended by later releases, with a retention that can change."""

from __future__ import annotations

import re

import pytest

from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy
from windowpane.store.clickhouse.tables import TABLES, TURNS


def opened(store, clickhouse, **options) -> None:
    StoreCopy(store, clickhouse, Schema(clickhouse.database, **options)).open()


def engine_of(clickhouse, table: str) -> str:
    values = {"database": clickhouse.database, "table": table}
    statement = (
        "SELECT engine_full FROM system.tables WHERE database = {database:String} AND name = {table:String}"
    )
    ((engine,),) = clickhouse.query(statement, values)
    return engine


def test_the_tables_are_created_once(store, clickhouse):
    opened(store, clickhouse)
    opened(store, clickhouse)

    tables = clickhouse.query("SELECT name FROM system.tables WHERE database = currentDatabase()")
    assert {name for (name,) in tables} == {table.name for table in TABLES}


def test_columns_of_a_later_release_are_added(store, clickhouse):
    opened(store, clickhouse)
    clickhouse.execute("ALTER TABLE turns DROP COLUMN burn_rate")

    opened(store, clickhouse)

    columns = clickhouse.query(
        "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'turns'"
    )
    assert {name for (name,) in columns} == {column.name for column in TURNS.columns}


def test_the_retention_of_the_copy_can_change(store, clickhouse):
    for days, expected in ((30, "toIntervalDay(30)"), (90, "toIntervalDay(90)"), (None, None)):
        opened(store, clickhouse, retention_days=days)

        assert (" TTL " in engine_of(clickhouse, "events")) == (expected is not None)
        assert expected is None or expected in engine_of(clickhouse, "events")
        assert " TTL " not in engine_of(clickhouse, "daily")


def test_expired_rows_are_deleted_and_those_without_a_time_are_kept(store, make_session, clickhouse, copy_store):
    store.append(make_session("old", turns=2, start=1e9))
    store.append([event._replace(at=None) for event in make_session("timeless", turns=2)])
    copy_store(store)

    opened(store, clickhouse, retention_days=30)
    clickhouse.execute("OPTIMIZE TABLE events FINAL")

    assert clickhouse.query("SELECT DISTINCT session_id FROM events") == [("timeless",)]
    assert clickhouse.query("SELECT sum(sessions) FROM daily FINAL") == [(1,)]


def test_the_tables_of_a_cluster_are_replicated_behind_distributed_ones(clickhouse):
    statements = list(Schema("copy", cluster="main", retention_days=400).create())

    for statement in statements:
        assert "ON CLUSTER 'main'" in statement
        clickhouse.define(f"EXPLAIN AST {statement}")
    for table in TABLES:
        (local,) = [one for one in statements if f"copy.{table.name}_local ON" in one]
        (distributed,) = [one for one in statements if f"copy.{table.name} ON" in one]
        assert f"ReplicatedReplacingMergeTree('/clickhouse/tables/{{shard}}/copy/{table.name}'" in local
        assert distributed.endswith(f"Distributed('main', 'copy', '{table.name}_local', {table.sharding})")


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_rows_of_one_key_are_on_one_shard(table):
    """Otherwise a repeated row would be on two shards, where nothing replaces it."""
    sharding = set(re.findall(r"\((\w+)\)", table.sharding))

    assert sharding <= set(table.order_by.split(", ")) or table.name == "events"
