"""The copy holds what the store holds: nothing lost and nothing twice, wherever it was interrupted."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest
from clickhouse_connect import get_client
from tests.sampling import EVERYTHING
from tests.servers.clickhouse import PASSWORD, USER
from tests.store.clickhouse.copies import assert_equal, counts
from tests.store.conformance.test_same_sessions import TOOL_CALLS, record

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    Event,
    EventContext,
    SessionStarted,
    TurnStarted,
)
from windowpane.exceptions import ClickHouseError, StoreError
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.store.clickhouse import derived
from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.reads import ClickHouseReader
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy
from windowpane.store.clickhouse.tables import CopyTable
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.postgres.store import PostgresStore
from windowpane.store.records import DamagedEvent

DAY = 86_400.0
LONG = pytest.mark.skipif(not EVERYTHING, reason="long: make test-all")


class QuarterCounter:
    """A quarter of a token per character."""

    source = "estimate"

    def count(self, text: str) -> int:
        return len(text) // 4


def fill(store: SqliteStore, make_session, *, sessions: int = 3) -> None:
    """Store sessions of several days, without times, and with an alert that is resolved."""
    for number in range(sessions):
        store.append(make_session(f"s{number}", turns=5, start=1.7e9 + number * DAY))
    store.append([event._replace(at=None) for event in make_session("timeless", turns=2)])
    events = make_session("alerted", turns=3, end=False)
    fired = AlertFired("utilization", "critical", 2, 0.95, 0.9, "The window is full.")
    resolved = AlertResolved("utilization", "critical", 2, 0.4, 0.9)
    last = events[-1]
    more = [last._replace(n=last.n + n, data=data) for n, data in enumerate((fired, resolved), 1)]
    store.append([*events, *more])


@pytest.mark.parametrize("rows", [20_000, pytest.param(100_000, marks=LONG)])
def test_a_copy_of_many_rows_at_once_is_complete(store, clickhouse, copy_store, rows):
    context = EventContext("large", "agent", "gpt-4o", 1, 1, "live", "large")
    events = [Event(context, n, 1.7e9 + n, TurnStarted() if n else SessionStarted()) for n in range(rows)]
    store.append(events)

    copy_store(store, batch_events=rows)

    assert counts(clickhouse)["events"] == rows
    ((numbers,),) = clickhouse.query("SELECT uniqExact(seq) FROM events FINAL")
    assert numbers == rows


def test_parameters_of_a_query_may_be_sent_as_a_form(clickhouse_server, clickhouse):
    client = get_client(
        host="127.0.0.1", port=clickhouse_server.port, username=USER, password=PASSWORD,
        form_encode_query_params=True,
    )  # fmt: skip
    text = "a 'quoted' \\ text\nand ü" * 1_000

    with closing(client):
        ((same,),) = client.query("SELECT {text:String}", parameters={"text": text}).result_rows

    assert same == text


def test_a_copy_returns_what_the_store_returns(store, make_session, clickhouse, copy_store):
    fill(store, make_session)

    copy_store(store, batch_events=90)

    assert_equal(store, clickhouse)


def test_the_sums_do_not_count_a_session_that_another_record_counts_for(store, clickhouse, copy_store):
    store.append(record("proxy", tool_calls=TOOL_CALLS))
    copy_store(store)
    store.import_session(lambda: record("claude_code", tool_calls=TOOL_CALLS))

    copy_store(store)

    reader = ClickHouseReader(clickhouse)
    assert reader.trends(days=7) == store.trends(days=7)
    assert [use.blocks for use in reader.tool_leaderboard()] == [use.blocks for use in store.tool_leaderboard()]


def test_a_copy_of_recorded_sessions_returns_what_the_store_returns(store, sessions_dir, clickhouse, copy_store):
    playback = PlaybackSettings(digest=store.digester(), counter_for=lambda model: QuarterCounter())
    folders = [sessions_dir / name for name in ("codex", "pi", "tau_bench")]
    import_paths(folders, store, playback=playback, readers=all_readers(complete=True))

    copy_store(store)

    assert_equal(store, clickhouse)
    assert counts(clickhouse)["events"] == store.size().events > 1_000


def test_a_copy_of_a_postgresql_store_returns_what_the_store_returns(
    make_session, postgres_url, clickhouse, copy_store
):
    with closing(PostgresStore(postgres_url)) as store:
        fill(store, make_session, sessions=1)

        copy_store(store)

        assert_equal(store, clickhouse)


def test_sessions_that_grow_are_followed(store, make_session, clickhouse, copy_store):
    events = make_session("s1", turns=9)
    position = 0
    for end in range(10, len(events), 43):
        store.append(events[position:end])
        position = end

        copy_store(store)

    assert_equal(store, clickhouse)
    rows = clickhouse.query("SELECT turn, used_final FROM turns FINAL WHERE session_id = 's1' ORDER BY turn")
    assert rows == [(row.turn, row.used_final) for row in store.turns("s1")]


def test_copying_everything_again_changes_nothing(store, make_session, clickhouse, copy_store):
    fill(store, make_session)
    copy = copy_store(store)
    before = counts(clickhouse)

    copy.position = 50
    while copy.copy_batch():
        pass

    assert counts(clickhouse) == before
    assert_equal(store, clickhouse)


def test_two_copiers_do_not_disturb_each_other(store, make_session, clickhouse):
    fill(store, make_session, sessions=1)
    copies = [StoreCopy(store, clickhouse, Schema(clickhouse.database), batch_events=size) for size in (60, 110)]
    for copy in copies:
        copy.open()
    while sum([copy.copy_batch() for copy in copies]):
        pass

    assert_equal(store, clickhouse)


class Interrupted(ClickHouse):
    """A connection that breaks at one statement: before the server ran it, or before its answer arrived."""

    def __init__(self, behind: ClickHouse, *, at: int, after: bool) -> None:
        self.database = behind.database
        self._behind = behind
        self._remaining = at
        self._after = after

    def query(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        return self._run(lambda: self._behind.query(statement, values))

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> None:
        self._run(lambda: self._behind.execute(statement, values))

    def define(self, statement: str) -> None:
        self._run(lambda: self._behind.define(statement))

    def describe(self, statement: str, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        return self._run(lambda: self._behind.describe(statement, values))

    def insert(self, table: CopyTable, rows: Sequence[Sequence[Any]]) -> None:
        self._run(lambda: self._behind.insert(table, rows))

    def _run(self, statement) -> Any:
        self._remaining -= 1
        broken = self._remaining == 0
        if broken and not self._after:
            raise ClickHouseError("test", "connection reset")
        result = statement()
        if broken:
            raise ClickHouseError("test", "connection reset")
        return result


@pytest.mark.parametrize("after", [pytest.param(False, id="before", marks=LONG), pytest.param(True, id="after")])
def test_a_copy_that_breaks_at_any_statement_is_complete(store, make_session, clickhouse, copy_store, after):
    fill(store, make_session, sessions=2)
    recorded = make_session("revised", turns=3)
    store.import_session(lambda: recorded)
    changed = [event._replace(at=event.at + DAY) for event in make_session("revised", turns=4)]
    store.import_session(lambda: changed)

    for at in range(1, 90):
        copy = StoreCopy(
            store, Interrupted(clickhouse, at=at, after=after), Schema(clickhouse.database), batch_events=400
        )
        with suppress(ClickHouseError):
            copy.open()
            while copy.copy_batch():
                pass
            break

    assert at > 15
    assert_equal(store, clickhouse)


def test_a_superseded_revision_counts_once(store, make_session, clickhouse, copy_store):
    """Rows that the new revision lacks are removed; the events of both stay, as in the store."""
    events = make_session("s1", turns=5)
    store.import_session(lambda: events)
    copy_store(store)
    moved = [event._replace(at=event.at + DAY) for event in make_session("s1", turns=6)]
    store.import_session(lambda: moved)

    copy_store(store)

    assert_equal(store, clickhouse)
    assert len(ClickHouseReader(clickhouse).trends(days=30)) == 1
    assert clickhouse.query("SELECT DISTINCT revision FROM turns FINAL WHERE NOT removed") == [(2,)]
    assert counts(clickhouse)["events"] == len(events) + len(moved)
    leaders = ClickHouseReader(clickhouse).tool_leaderboard(days=30)
    assert [(use.tool, use.sessions) for use in leaders] == [("read", 1)]


def test_sessions_that_were_folded_again_are_copied_again(store, make_session, clickhouse, copy_store):
    for name in ("old", "new"):
        store.append(make_session(name, turns=5))
    with closing(sqlite3.connect(store.path)) as earlier:
        for change in (
            "UPDATE sessions SET cost_dollars = 0.5 WHERE session_id = 'old'",
            "UPDATE session_days SET cost_micros = 500000 WHERE session = 1",
        ):
            earlier.execute(change)
        earlier.commit()
    copy_store(store)
    assert cost_of("old", clickhouse) == 0.5

    store.rebuild_projections()
    store.append(make_session("other", turns=1, start=1.7e9 + 40 * DAY))
    copy_store(store)

    row = store.session("old")
    assert row is not None
    assert cost_of("old", clickhouse) == row.cost_dollars != 0.5
    assert_equal(store, clickhouse)


def cost_of(session_id: str, clickhouse: ClickHouse) -> float:
    """The cost of a session in the copy."""
    ((cost,),) = clickhouse.query(f"SELECT cost_dollars FROM sessions FINAL WHERE session_id = '{session_id}'")
    return float(cost)


@LONG
def test_the_removal_of_a_revision_that_was_interrupted_is_summed(store, make_session, clickhouse, copy_store):
    store.import_session(lambda: make_session("s1", turns=5))
    copy_store(store)
    moved = [event._replace(at=event.at + DAY) for event in make_session("s1", turns=6)]
    store.import_session(lambda: moved)

    for at in range(7, 60):
        copy = StoreCopy(store, Interrupted(clickhouse, at=at, after=True), Schema(clickhouse.database))
        with suppress(ClickHouseError):
            copy.open()
            while copy.copy_batch():
                pass
            break

    assert_equal(store, clickhouse)


def test_tools_of_a_session_that_gets_a_time_move_to_its_day(store, make_session, clickhouse, copy_store):
    events = make_session("s1", turns=6)
    store.append([event._replace(at=None) for event in events[:60]])
    copy_store(store)
    store.append(events[60:])

    copy_store(store)

    assert_equal(store, clickhouse)
    (use,) = ClickHouseReader(clickhouse).tool_leaderboard(days=20_000)
    assert use.sessions == 1


def test_what_retention_deletes_stays_in_the_copy(store, make_session, clickhouse, copy_store):
    """The copy is the long record: its trends and events keep what the store has deleted since."""
    fill(store, make_session)
    copy_store(store)
    trends = store.trends(days=30)
    events = len(store.events(EventFilter(limit=100_000)))

    assert store.prune(before=1.7e9 + 2.5 * DAY) > 1
    store.append(make_session("later", turns=1, start=1.7e9 + 3 * DAY))
    copy_store(store)

    reader = ClickHouseReader(clickhouse)
    assert reader.trends(days=30) == store.trends(days=30) != trends
    assert reader.count_events(EventFilter()) > events > store.count_events(EventFilter())


def test_trends_from_before_the_copy_are_in_it(store, make_session, clickhouse, copy_store):
    fill(store, make_session)
    assert store.prune(before=1.7e9 + 1.5 * DAY) > 1
    expected = store.trends(days=30)

    copy_store(store)
    assert store.prune(before=1.7e9 + 2.5 * DAY) == 1
    copy_store(store)

    assert ClickHouseReader(clickhouse).trends(days=30) == store.trends(days=30) == expected


def test_another_store_is_refused(store, make_session, tmp_path, clickhouse, copy_store):
    """Its events have the same numbers and would replace those of the first."""
    store.append(make_session())
    copy_store(store)
    with closing(SqliteStore(tmp_path / "other.db")) as other:
        other.append(make_session("other"))

        with pytest.raises(StoreError, match=r"copy of another store.*set clickhouse.database"):
            copy_store(other)

    assert_equal(store, clickhouse)


def test_damaged_events_are_copied_as_they_are(store, make_session, clickhouse, copy_store):
    store.append(make_session("s1", turns=3))
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE events SET body = ? WHERE seq = 7", (b"\xff\xfe\x00 no event",))
        connection.execute("UPDATE events SET body = ? WHERE seq = 9", (b"{}",))

    copy_store(store)

    rows = ClickHouseReader(clickhouse).events_or_damage(EventFilter(limit=1_000))
    assert rows == store.events_or_damage(EventFilter(limit=1_000))
    assert [row.seq for row in rows if isinstance(row, DamagedEvent)] == [7, 9]


def test_broken_clocks_and_names_do_not_stop_the_copy(store, make_session, clickhouse, copy_store):
    times = [-5.0, 1e300, 0.0, 6.3e9]
    for number, at in enumerate(times):
        events = make_session(f"s{number}", turns=2)
        store.append([event._replace(at=at) for event in events])

    copy_store(store)

    assert_equal(store, clickhouse)


def test_a_large_batch_is_inserted_in_parts(store, make_session, clickhouse, monkeypatch):
    monkeypatch.setattr("windowpane.store.clickhouse.store_copy.INSERTED_ROWS", 25)
    inserted: list[int] = []
    insert = ClickHouse.insert
    monkeypatch.setattr(
        ClickHouse, "insert", lambda self, table, rows: (inserted.append(len(rows)), insert(self, table, rows))[1]
    )
    fill(store, make_session)
    copy = StoreCopy(store, clickhouse, Schema(clickhouse.database))
    copy.open()

    assert copy.copy_batch() == store.size().events

    assert max(inserted) < 25 + 10
    assert_equal(store, clickhouse)


def test_the_sums_of_a_day_are_made_from_the_rows_of_that_day(store, make_session, clickhouse, copy_store):
    for month in range(4):
        store.append(make_session(f"s{month}", turns=2, start=1.7e9 + 31 * month * DAY))
    copy_store(store)
    for statement in (derived.SUM_DAYS, derived.SUM_TOOLS):
        _, _, select = statement.partition(") SELECT")
        lines = clickhouse.query(
            f"EXPLAIN indexes = 1 SELECT{select}", {"days": [derived.date_of(int(1.7e9 // DAY))], "version": 9}
        )
        read = [line.split()[-1] for (line,) in lines if "Parts:" in line]
        assert read[-1] == "1/1", read
        assert any(part.startswith("1/") and part != "1/1" for part in read), read


def assert_projects_equal(store: SqliteStore, clickhouse) -> None:
    """The sums of each project, and of two together, are those of the store."""
    reader = ClickHouseReader(clickhouse)
    for projects in (("shop",), ("bank", ""), ()):
        assert reader.trends(days=30, projects=projects) == store.trends(days=30, projects=projects)
        copied, stored = (
            {replace(use, dollars=None) for use in uses}
            for uses in (
                reader.tool_leaderboard(days=9_000, projects=projects),
                store.tool_leaderboard(projects=projects),
            )
        )
        assert copied == stored


def test_the_sums_of_a_project_follow_its_sessions(store, make_session, clickhouse, copy_store):
    for number, project in enumerate(("shop", "bank", "", "shop")):
        store.append(make_session(f"s{number}", turns=1, start=1.7e9 + number * DAY))
        if project:
            store.assign_project(f"s{number}", project)
    store.prune(before=1.7e9 + DAY / 2)
    trends = store.trends(days=30, projects=("shop",))
    copy_store(store)
    assert ClickHouseReader(clickhouse).trends(days=30, projects=("shop",)) == trends
    assert_projects_equal(store, clickhouse)

    store.assign_project("s1", "shop")
    copy_store(store)
    assert ClickHouseReader(clickhouse).trends(days=30, projects=("bank",)) == []
    assert_projects_equal(store, clickhouse)
    assert_equal(store, clickhouse)


@LONG
def test_a_copy_of_an_earlier_release_gets_its_projects(store, make_session, clickhouse, copy_store):
    for number, project in enumerate(("shop", "bank", "shop")):
        store.append(make_session(f"s{number}", turns=3, start=1.7e9 + number * DAY))
        store.assign_project(f"s{number}", project)
    copy_store(store)
    for table in ("project_days", "project_tool_days"):
        clickhouse.execute(f"DROP TABLE {table} SYNC")
    for table in ("session_days", "tool_use"):
        clickhouse.execute(f"ALTER TABLE {table} DROP COLUMN project")

    copy_store(store)

    assert_projects_equal(store, clickhouse)
