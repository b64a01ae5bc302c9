"""A store written by an earlier state of the code opens, verifies and gives the same rows."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.store.conformance.test_fleet import compressed_in_task

from windowpane.core.events import ContentCompressed
from windowpane.store.embedded import SqliteStore
from windowpane.store.interface import EventFilter
from windowpane.store.migrations import available, migrate
from windowpane.store.search import fts5
from windowpane.store.search.content import ContentFilter, ContentHits
from windowpane.store.search.events import whole_text_of
from windowpane.store.sqlite.dialect import SqliteDatabase

DATA = Path(__file__).parent / "older_store"
PEAKS = {
    "recorded": {"peak_used_tokens": 2_023, "peak_utilization": 0.061737060546875},
    "ended": {"peak_used_tokens": 3_929, "peak_utilization": 0.119903564453125},
}
"""Peaks by the provider's totals, which the older code took from estimates where these were higher."""
NOT_DESCRIBED = dict.fromkeys(
    ("title", "title_source", "folder", "repository", "branch", "agent_version", "label", "project"), ""
) | {"subagent_cost_dollars": None, "same_as": ""}
"""Names of a session that the older code did not record."""
NOT_COUNTED = {"compressions_in_task": 0, "subagent_cost_dollars": None}
NO_CACHE_BREAKS = {"cache_breaks": 0, "cache_break_tokens": 0, "cache_break_dollars": None}
KEY = b"a key for the store of a test"


@pytest.fixture
def older(tmp_path: Path) -> Iterator[SqliteStore]:
    """A copy of the older store, opened for writing."""
    path = tmp_path / "windowpane.db"
    path.write_bytes(gzip.decompress((DATA / "store.db.gz").read_bytes()))
    opened = SqliteStore(path, audit_key=KEY)
    yield opened
    opened.close()


def rows_of(store: SqliteStore) -> Any:
    """The rows as plain JSON types, as the older code wrote them to `rows.json`."""
    replay = store.replay("r1")
    assert replay is not None
    rows = {
        "sessions": [asdict(row) for row in store.sessions()],
        "turns": [asdict(row) for row in store.turns("ended")],
        "window": [asdict(row) for row in store.blocks_at("ended", 5)],
        "removed": [row.block_id for row in store.removed_blocks("ended", 99)],
        "alerts": [asdict(row) for row in store.alerts()],
        "found": [event.seq for event in store.events(EventFilter(text="utilization"))],
        "facets": store.facets(),
        "replay": asdict(replay),
        "endpoints": [asdict(endpoint) for endpoint in store.endpoints()],
    }
    return json.loads(json.dumps(rows, default=dict))


def test_an_older_store_gives_the_rows_it_gave(older: SqliteStore) -> None:
    expected = json.loads((DATA / "rows.json").read_text())
    for row in expected["sessions"]:
        row.update(NOT_DESCRIBED | NO_CACHE_BREAKS | NOT_COUNTED | PEAKS.get(row["session_id"], {}))
    for row in expected["window"]:
        row["target"] = None
    for row in expected["endpoints"]:
        row["machine"] = ""
    size = asdict(older.size())

    assert rows_of(older) == {name: expected[name] for name in rows_of(older)}
    assert {name: size[name] for name in expected["size"]} == expected["size"]


def test_an_older_store_verifies_against_its_exported_heads(older: SqliteStore) -> None:
    expected = json.loads((DATA / "rows.json").read_text())
    found = older.verify(heads_file=DATA / "heads.jsonl")

    assert found.keyed
    assert found.projections
    document = json.loads(json.dumps(asdict(found)))
    assert {name: document[name] for name in expected["verification"]} == expected["verification"]


def test_the_projection_of_older_events_is_the_same(older: SqliteStore) -> None:
    before = rows_of(older)
    older.rebuild_projections()

    assert rows_of(older) == before


def test_an_older_store_is_continued(older: SqliteStore, make_session: Any) -> None:
    texts = [older.content(row.digest) for row in older.blocks_at("ended", 5)]
    older.append(make_session("s1"))
    older.heads()

    assert any(texts)
    assert older.verify(heads_file=DATA / "heads.jsonl").intact


def test_an_older_store_gets_count_sources(tmp_path, make_session):
    """Opening a store of the first release fills the new column from the turns, as a rebuild does."""
    path = tmp_path / "old.db"
    store = SqliteStore(path)
    store.append(make_session(turns=2))
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in ("sessions_parent",):
            connection.execute(f"DROP INDEX {name}")
        connection.execute("ALTER TABLE sessions DROP COLUMN count_source")
        connection.execute("DELETE FROM migrations WHERE name = 'm003_add_count_source'")
    connection.close()

    again = SqliteStore(path)
    migrated = again.session("s1")
    again.rebuild_projections()

    assert migrated.count_source == "usage"
    assert again.session("s1") == migrated
    again.close()


def test_an_old_store_is_folded_once(store, make_session, tmp_path) -> None:
    store.append(make_session("s", turns=5))
    expected = daily(store)
    with store._writing() as writer:
        writer.connection.execute("DELETE FROM session_days")
        writer.connection.execute("INSERT INTO stale_sessions SELECT key FROM sessions")
    assert store.trends(days=5) == []

    SqliteStore(store.path).close()

    assert daily(store) == expected
    assert store.verify().intact


def daily(store: SqliteStore) -> Any:
    """Every stored sum by day."""
    return store._read(
        "SELECT * FROM daily WHERE sessions > 0 ORDER BY day, agent, model, release, project, pruned"
    )


def texts(hits: ContentHits) -> list[str]:
    return [hit.snippet.line for hit in hits.hits]


def index_all(store: SqliteStore) -> None:
    while store.index_text():
        pass


def test_a_compression_in_the_middle_of_a_task_is_counted(tmp_path, make_session):
    path = tmp_path / "windowpane.db"
    store = SqliteStore(path)
    for name, next_message in (("inside", False), ("between", True)):
        events = [event for event in make_session(name, turns=2) if event.type != "session.ended"]
        store.append(compressed_in_task(events, next_message=next_message))
    counted = {row.session_id: row.compressions_in_task for row in store.sessions()}
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE sessions DROP COLUMN compressions_in_task")
        connection.execute("DELETE FROM migrations WHERE name = 'm011_count_compressions_in_task'")
    connection.close()

    again = SqliteStore(path)

    assert counted == {"inside": 1, "between": 0}
    assert {row.session_id: row.compressions_in_task for row in again.sessions()} == counted
    again.close()


def test_the_cost_of_compressions_in_a_stored_session_is_added(tmp_path, make_session) -> None:
    path = tmp_path / "w.db"
    store = SqliteStore(path)
    paid = [
        event._replace(data=replace(event.data, cost_dollars=0.25))
        if isinstance(event.data, ContentCompressed)
        else event
        for event in compressed_in_task(make_session("paid", turns=2)[:-1], next_message=False)
    ]
    store.append(paid)
    store.append(make_session("other", turns=2))
    whole, days = [row.cost_dollars for row in store.sessions()], store.trends(days=10)
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE sessions SET cost_dollars = nullif(cost_dollars - 0.25, 0) WHERE session_id = 'paid'"
        )
        connection.execute("UPDATE session_days SET cost_micros = cost_micros - 250000 WHERE session = 1")
        connection.execute("DELETE FROM migrations WHERE name = 'm023_add_cost_of_compressions'")
    connection.close()

    again = SqliteStore(path)

    assert [row.cost_dollars for row in again.sessions()] == whole
    assert again.trends(days=10) == days
    assert sum(day.cost_dollars for day in days) == pytest.approx(sum(cost or 0.0 for cost in whole))
    again.close()


def test_the_texts_of_an_older_store_wait_to_be_indexed(tmp_path, make_session) -> None:
    store = SqliteStore(tmp_path / "w.db", capture=True, redact=str)
    store.append(make_session())
    index_all(store)
    store.close()
    with closing(sqlite3.connect(store.path)) as connection, connection:
        for table in ("content_queue", "content_numbers", "contents_text"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM migrations WHERE name = 'm008_add_content_index'")

    older = SqliteStore(store.path)

    before = older.find_content(ContentFilter("ainly 5"))
    assert (texts(before), before.waiting) == (["certainly 5"], before.texts)
    index_all(older)
    after = older.find_content(ContentFilter("ainly 5"))
    assert (texts(after), after.waiting) == (["certainly 5"], 0)
    older.close()


def test_the_sums_of_an_older_store_get_their_projects(tmp_path: Path) -> None:
    path = tmp_path / "windowpane.db"
    migrations = available()
    earlier = [one for one in migrations if one.name < "m021"]
    connection = sqlite3.connect(path, isolation_level=None, factory=SqliteDatabase)
    migrate(connection, path, earlier)
    for key, project in ((1, "shop"), (2, "")):
        insert(connection, "sessions", key=key, session_id=f"s{key}", current=1, project=project)
        insert(connection, "session_days", session=key, day=1, agent="a", model="m", calls=key)
    insert(connection, "daily", day=1, agent="a", model="m", pruned=1, calls=50, sessions=3)
    insert(connection, "project_days", project="bank", day=1, agent="a", model="m", calls=20, sessions=1)

    migrate(connection, path)

    rows = connection.execute("SELECT project, pruned, calls, sessions FROM daily ORDER BY project, pruned")
    assert rows.fetchall() == [("", 0, 2, 1), ("", 1, 30, 2), ("bank", 1, 20, 1), ("shop", 0, 1, 1)]
    connection.execute("UPDATE session_days SET project = 'bank', calls = 5 WHERE session = 1")
    connection.execute("DELETE FROM session_days WHERE session = 2")
    rows = connection.execute("SELECT project, calls, sessions FROM daily WHERE pruned = 0 ORDER BY project")
    assert rows.fetchall() == [("", 0, 0), ("bank", 5, 1), ("shop", 0, 0)]
    connection.close()


def test_a_pruned_session_is_removed_from_an_earlier_index(tmp_path: Path, make_session, monkeypatch) -> None:
    store = SqliteStore(tmp_path / "w.db")
    store.append(make_session("s1", turns=4))
    monkeypatch.setattr(fts5.Fts5EventIndex, "add", add_whole)
    index_all(store)
    monkeypatch.undo()
    store.append(make_session("s2", turns=4))
    index_all(store)
    assert store.count_events(EventFilter(text="used_by_component")) > 0

    assert store.prune(max_bytes=1) == 2

    with store._writing() as writer:
        writer.connection.execute(fts5._VOCABULARY)
        assert writer.connection.execute("SELECT term FROM temp.events_words").fetchall() == []
    store.close()


def add_whole(index: fts5.Fts5EventIndex, database: SqliteDatabase, texts: Iterable[tuple[int, str]]) -> None:
    """Index whole events, as earlier releases did."""
    rows = [
        (seq, database.execute("SELECT body FROM events WHERE seq = ?", (seq,)).fetchone()) for seq, _ in texts
    ]
    database.executemany(fts5._INSERT, [(seq, whole_text_of(body)) for seq, (body,) in rows])


def insert(connection: SqliteDatabase, table: str, **values: Any) -> None:
    """Insert a row whose other required columns are 0 or empty."""
    for _, name, kind, required, default, _ in connection.execute(f"PRAGMA table_info({table})").fetchall():
        if required and default is None:
            values.setdefault(name, "" if kind in ("TEXT", "BLOB") else 0)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
