"""Statements for many rows at once: their forms, and the order of rows with the same key."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "psycopg", reason="psycopg is not installed: pip install 'windowpane-observability[postgres]'"
)

from windowpane.store.postgres.bulk_statements import Conflicts, ManyRows, for_many_rows, translated
from windowpane.store.projections import alerts, block_drafts, session_drafts, trends, turns
from windowpane.store.writes import chain, received
from windowpane.store.writes import write as writes


def many(sql: str) -> ManyRows:
    found = for_many_rows(sql)
    assert found is not None
    return found


def test_an_insert_takes_an_array_for_each_column() -> None:
    insert = many('INSERT INTO agents (name, "references") VALUES (?, ?)')

    assert insert.statement == b'INSERT INTO agents (name, "references") SELECT * FROM unnest(%b, %b)'
    assert (insert.columns, insert.conflicts) == ('name, "references"', Conflicts.FAIL)


def test_an_update_takes_an_array_for_each_placeholder() -> None:
    update = many(
        "UPDATE blocks SET at = ?, n = n + 1, b = coalesce(b, ?), by = 'a = ?' WHERE session = ? AND id = ?"
    )

    assert update.statement == (
        b"UPDATE blocks SET at = new.v1, n = n + 1, b = coalesce(b, new.v2), by = 'a = ?' "
        b"FROM unnest(%b, %b, %b, %b) AS new (v1, v2, v3, v4) WHERE session = new.v3 AND id = new.v4"
    )
    assert (update.columns, update.key) == ("at, b, session, id", (2, 3))


@pytest.mark.parametrize(
    "sql", ["UPDATE store SET next_seq = ?", "DELETE FROM a WHERE b = ?", "UPDATE a SET b = b + ? WHERE c > ?"]
)
def test_other_statements_run_for_each_row(sql: str) -> None:
    assert for_many_rows(sql) is None
    assert translated(sql) == sql.replace("?", "%s").encode()


def test_rows_with_the_same_key_follow_one_another() -> None:
    upsert = many("INSERT INTO turns (a, b, c) VALUES (?, ?, ?) ON CONFLICT (b, a) DO UPDATE SET c = excluded.c")

    assert (upsert.key, upsert.conflicts) == ((1, 0), Conflicts.UPDATE)
    rows = [(1, 1, "first"), (1, 2, "other"), (1, 1, "second"), (1, 1, "third")]
    assert list(upsert.runs(rows)) == [rows[:2], rows[2:3], rows[3:]]
    skipped = many("INSERT INTO turns (a) VALUES (?) ON CONFLICT DO NOTHING")
    assert list(skipped.runs([(1,), (1,)])) == [[(1,), (1,)]]


def test_rows_that_differ_only_below_a_bound_are_carried_out_in_order() -> None:
    statement = many("UPDATE blocks SET a = a + ? WHERE session = ? AND event_seq < ?")
    rows = [(1, 7, 3), (1, 8, 3), (1, 7, 4)]

    assert list(statement.runs(rows)) == [rows[:2], rows[2:]]


@pytest.mark.parametrize(
    "sql",
    [
        writes._INSERT_EVENT, writes._COUNT, session_drafts._INSERT, session_drafts._UPDATE, turns._SAVE,
        trends._UPSERT, block_drafts._INSERT, block_drafts._REMOVE, block_drafts._REFER, block_drafts._REGRET,
        alerts._FIRE, alerts._RESOLVE, chain._INSERT, received._SAVE,
    ],
)  # fmt: skip
def test_the_statements_of_the_write_path_take_many_rows(sql: str) -> None:
    assert for_many_rows(sql) is not None
