"""Stores in PostgreSQL: schema, months, writers beside each other, commits of unknown outcome."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from windowpane.core.codec import encode
from windowpane.core.events import Event
from windowpane.core.store_names import StoreUrl
from windowpane.exceptions import (
    ConfigurationError,
    EventsRefusedError,
    OlderStoreError,
    SchemaVersionError,
    StoreBusyError,
    StoreError,
)
from windowpane.store import copying, migrations, tables
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_reader, open_store
from windowpane.store.postgres import connections, errors, months, write_count
from windowpane.store.postgres.store import PostgresReader, PostgresStore
from windowpane.store.store import Store
from windowpane.store.writes.received import ReceivedBatch

LOST = r"shutting down|cannot be reached"


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """An empty store in a database."""
    with closing(open_store(postgres_url)) as opened:
        yield opened


def rows(url: str, sql: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def end_connection(url: str, database) -> None:
    """Let the server end a connection, as when it restarts."""
    rows(url, f"SELECT pg_terminate_backend({database.connection.info.backend_pid}, 5000)")


def stored(store: Store, **query: str) -> list[Event]:
    return [one.event for one in store.events(EventFilter(limit=100_000, **query))]


# -- schema ---------------------------------------------------------------------------------------------------


def test_several_processes_may_open_a_new_store_at_once(postgres_url: str, make_session) -> None:
    opened: list[Store] = []
    threads = [threading.Thread(target=lambda: opened.append(open_store(postgres_url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(opened) == 4
    for number, one in enumerate(opened):
        one.append(make_session(f"s{number}", turns=1))
        one.close()
    with closing(open_store(postgres_url)) as store:
        assert store.size().sessions == 4
        assert store.verify().intact


def test_a_store_of_a_newer_release_is_refused(store: Store, postgres_url: str) -> None:
    rows(postgres_url, "INSERT INTO schema_versions VALUES (999, 0)")

    for opening in (PostgresReader, PostgresStore):
        with pytest.raises(SchemaVersionError, match="by a newer release"):
            opening(postgres_url)


def test_a_store_from_before_the_first_release_is_refused(store: Store, postgres_url: str) -> None:
    rows(postgres_url, "DROP TABLE schema_versions")

    for opening in (PostgresReader, PostgresStore):
        with pytest.raises(SchemaVersionError, match=r"before release 0\.1\.0.*Name a new store"):
            opening(postgres_url)


def test_a_store_of_an_older_release_is_migrated(
    store: Store, postgres_url: str, make_session, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(make_session("s1"))

    def migrate(database) -> None:
        for statement in database.dialect.create_table(tables.table("note", "id integer, text text", key="id")):
            database.execute(statement)
        column = tables.Column.parse("mood text default 'calm'")
        database.execute(f"ALTER TABLE sessions ADD COLUMN {database.dialect.define(column)}")

    monkeypatch.setattr(migrations, "MIGRATIONS", {2: migrate})
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 2)
    with pytest.raises(OlderStoreError, match="open it once for writing"):
        PostgresReader(postgres_url)
    PostgresStore(postgres_url).close()

    with closing(PostgresReader(postgres_url)) as reader:
        assert reader.session("s1") is not None
    assert rows(postgres_url, "SELECT mood FROM sessions") == [("calm",)]
    assert rows(postgres_url, "SELECT max(version) FROM schema_versions") == [(2,)]


def test_a_running_agent_continues_in_a_store_that_was_migrated(
    store: Store, postgres_url: str, make_session
) -> None:
    rows(postgres_url, "INSERT INTO schema_versions VALUES (999, 0)")
    assert store._shared.writer is not None
    end_connection(postgres_url, store._shared.writer.connection)
    with suppress(StoreError):
        store.append(make_session("s1"))
    store.append(make_session("s2"))

    assert store.session("s2") is not None


def test_a_database_without_a_store_is_not_read(postgres_url: str) -> None:
    with pytest.raises(StoreError, match="no store here; import a session or start an agent"):
        open_reader(postgres_url)
    assert rows(postgres_url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []


def test_a_text_with_nul_is_stored_without_it(store: Store, make_session) -> None:
    events = make_session(turns=2)
    store.append([event._replace(context=replace(event.context, agent="a\0b")) for event in events])

    row = store.session("s1")
    assert row is not None
    assert row.agent == "a\N{REPLACEMENT CHARACTER}b"
    assert stored(store)[0].context.agent == "a\0b"
    assert store.verify().intact
    store.append(make_session("nul\0"))
    assert store.session("nul\0") is not None


# -- months ---------------------------------------------------------------------------------------------------


def test_a_month_has_a_partition_and_is_dropped_whole(store: Store, postgres_url: str, make_session) -> None:
    store.append(make_session("first", turns=4, end=False))
    store.append(make_session("both", turns=2, end=False))
    with store._writing() as writer:
        months.open_month(writer.connection, "2999-01")
        months.open_month(writer.connection, "2999-01")
    more = make_session("both", turns=4)
    assert store.import_session(lambda: more).appended > 0
    store.append(make_session("later", turns=3, start=2e9))

    assert [event.n for event in stored(store, session_id="both")] == list(range(len(more)))
    assert store.verify().intact
    partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass"
    assert rows(postgres_url, partitions) == [(2,)]
    last = stored(store, session_id="both")[-1].at
    assert last is not None
    assert store.prune(before=last + 1) == 2

    assert rows(postgres_url, partitions) == [(1,)]
    assert [row.session_id for row in store.sessions()] == ["later"]
    assert store.verify().intact


def test_pruning_by_size_deletes_no_more_than_it_must(store: Store, make_session) -> None:
    for number in range(10):
        store.append(make_session(f"s{number}", turns=6, start=1e9 + number))
    size = store.size().bytes

    assert store.prune(max_bytes=round(size * 0.65)) == 4
    assert store.size().sessions == 6


# -- writers --------------------------------------------------------------------------------------------------


def test_a_writer_waits_for_another_for_a_limited_time(postgres_url: str, make_session) -> None:
    with closing(open_store(postgres_url, busy_seconds=0.2)) as store, closing(open_store(postgres_url)) as other:
        with other._writing(), pytest.raises(StoreBusyError, match="another process keeps the store locked"):
            store.append(make_session("s1"))
        store.append(make_session("s1"))
        assert store.session("s1") is not None


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_of_unknown_outcome_stores_no_event_twice(
    store: Store, postgres_url: str, make_session, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    session = make_session(turns=5)
    engine = store._engine
    commit = engine._commit

    def breaking(database) -> None:
        if committed:
            database.execute("COMMIT")
        end_connection(postgres_url, database)
        commit(database)

    monkeypatch.setattr(engine, "_commit", breaking)
    with pytest.raises(StoreError, match=LOST):
        store.append(session[:20])
    monkeypatch.setattr(engine, "_commit", commit)
    store.append(session)

    assert list(map(encode, stored(store))) == list(map(encode, session))
    assert store.verify().intact


def test_a_connection_lost_in_a_transaction_stores_nothing_of_it(
    store: Store, postgres_url: str, make_session
) -> None:
    def write() -> None:
        with store._writing() as writer:
            writer.append(make_session("lost"))
            end_connection(postgres_url, writer.connection)
            writer.append(make_session("more"))

    with pytest.raises(StoreError, match=LOST):
        write()
    store.append(make_session("s1"))
    assert [row.session_id for row in store.sessions()] == ["s1"]
    assert store.verify().intact


def test_an_error_of_a_statement_that_waits_undoes_the_transaction(store: Store, make_session) -> None:
    def write() -> None:
        with store._writing() as writer:
            writer.append(make_session("undone", turns=1))
            writer.connection.executemany("INSERT INTO agents (name) VALUES (?)", [("twice",), ("twice",)])

    with pytest.raises(EventsRefusedError, match="duplicate key"):
        write()
    store.append(make_session("s1", turns=1))

    assert [row.session_id for row in store.sessions()] == ["s1"]
    assert store.verify().intact


def test_a_batch_of_many_sessions_takes_no_more_statements(
    store: Store, make_session, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(make_session("warm", turns=3))  # what is asked once
    counts = []
    for sessions in (2, 60):
        made = [make_session(f"{sessions}-{number}", turns=3) for number in range(sessions)]
        for part in (slice(12), slice(12, None)):
            with monkeypatch.context() as patched:
                sent = count_statements(patched)
                store.append([event for events in made for event in events[part]])
            counts.append(len(sent))

    assert counts[2] <= counts[0] + 4  # a COPY waits for the statements before it, and needs a savepoint
    assert counts[3] <= counts[1] + 4
    assert store.verify().intact


def test_an_index_takes_few_statements_for_many_texts(
    postgres_url: str, make_session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(postgres_url, capture=True, redact=str)) as store:
        store.append([event for number in range(60) for event in make_session(f"s{number}", turns=6)])
        with monkeypatch.context() as patched:
            sent = count_statements(patched)
            indexed = store.index_text()

    assert indexed > 1_000
    assert len(sent) < 60


def test_the_indexes_for_search_are_built_after_a_copy(postgres_url: str, make_session, tmp_path: Path) -> None:
    indexes = "SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%USING gin%' ORDER BY 1"
    with (
        closing(open_store(str(tmp_path / "source.db"), capture=True, redact=str)) as source,
        closing(open_store(postgres_url)) as target,
    ):
        source.append(make_session("s1", turns=4))
        expected = rows(postgres_url, indexes)

        def stop(progress: copying.Progress) -> None:
            if progress.part == "search index":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copying.copy_store(source, target, on_progress=stop)
        assert rows(postgres_url, indexes) == []
        copying.copy_store(source, target)

    assert len(expected) == 2
    assert rows(postgres_url, indexes) == expected


def test_a_damaged_event_is_indexed_as_empty(store: Store, postgres_url: str) -> None:
    with closing(store._engine.open_writer()) as database:
        for texts in ([(1, "")], [(2, ""), (3, "two words")], [(4, f"{'long' * 600} word")]):
            with store._engine.transaction(database):
                database.dialect.event_index.add(database, texts)

    assert rows(postgres_url, "SELECT seq, length(words) FROM events_text ORDER BY seq") == [
        (1, 0), (2, 0), (3, 2), (4, 2)
    ]  # fmt: skip


def count_statements(patched: pytest.MonkeyPatch) -> list[object]:
    """Return the list that every further statement is added to."""
    sent: list[object] = []
    execute, copy = psycopg.Cursor.execute, psycopg.Cursor.copy
    patched.setattr(
        psycopg.Cursor,
        "execute",
        lambda self, query, *rest, **more: sent.append(query) or execute(self, query, *rest, **more),
    )
    patched.setattr(
        psycopg.Cursor, "copy", lambda self, query, *rest: sent.append(query) or copy(self, query, *rest)
    )
    return sent


def test_a_plan_of_a_small_table_does_not_read_a_large_one(store: Store, postgres_url: str, make_session) -> None:
    counted = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'sessions'"
    for number in range(8):
        store.append([event for one in range(40) for event in make_session(f"s{number}-{one}", turns=1)])
    store.close()

    wait_until(lambda: rows(postgres_url, f"{counted} AND n_tup_ins = 320") != [])  # counted a little later
    assert rows(postgres_url, counted)[0][0] < 320


def test_pages_are_planned_for_what_they_read(store: Store) -> None:
    """By default the server takes two seconds to compile a list of 16 ms, and reads tables whole for a part."""
    assert setting(store, "jit") == "off"
    assert setting(store, "random_page_cost") == "1.1"
    with store._writing() as writer:
        assert writer.connection.execute("SHOW jit").fetchone() == ("off",)


def setting(store: Store, name: str) -> str:
    """Return a setting of a reading connection."""
    with store._engine.lend() as connection:
        return str(connection.execute(f"SHOW {name}").fetchone()[0])


def test_what_was_received_is_durable_with_its_own_commit(
    store: Store, postgres_url: str, make_session, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = postgres_url.rpartition("/")[2]
    rows(postgres_url, f'ALTER DATABASE "{database}" SET synchronous_commit = off')
    with closing(open_store(postgres_url)) as receiving:
        engine, settings = receiving._engine, []
        commit = engine._commit

        def reading(database) -> None:
            settings.extend(database.execute("SELECT current_setting('synchronous_commit')").fetchone())
            commit(database)

        monkeypatch.setattr(engine, "_commit", reading)
        receiving.receive([ReceivedBatch(make_session("s1"))])
        receiving.append(make_session("s2"))
        receiving.flush()

    assert settings == ["on", "off", "on"]


def test_days_are_summed_for_each_kind_of_change(store: Store, postgres_url: str) -> None:
    counts = "2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0"
    insert = (
        f"INSERT INTO session_days SELECT session, day, 'a', 'm', '', {counts}, peak FROM "
        "(VALUES (1, 1, 950), (2, 1, -1), (3, 2, 100)) AS new (session, day, peak) ON CONFLICT "
        "(session, day, agent, model, release) DO UPDATE SET calls = session_days.calls + 1"
    )
    sums = "SELECT day, calls, sessions, peaks, peak_sum_millis, red_sessions FROM daily ORDER BY day"
    for _ in range(2):
        rows(postgres_url, insert)

    assert rows(postgres_url, sums) == [(1, 6, 2, 1, 950, 1), (2, 3, 1, 1, 100, 0)]
    rows(postgres_url, "DELETE FROM session_days WHERE session <> 2")
    assert rows(postgres_url, sums) == [(1, 3, 1, 0, 0, 0), (2, 0, 0, 0, 0, 0)]


def test_a_forked_child_has_its_own_connections(store: Store, postgres_url: str, make_session) -> None:
    store.append(make_session("parent"))
    assert store._shared.writer is not None
    backend = store._shared.writer.connection.connection.info.backend_pid
    with store._engine.lend() as database:
        reading = database.connection.info.backend_pid
    child = os.fork()
    if child == 0:
        try:
            store.append(make_session("child"))
            store.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    store.append(make_session("later"))
    assert {row.session_id for row in store.sessions()} == {"parent", "child", "later"}
    assert store._shared.writer.connection.connection.info.backend_pid == backend
    with store._engine.lend() as database:
        assert database.connection.info.backend_pid == reading
    assert store.verify().intact


# -- errors ---------------------------------------------------------------------------------------------------


def test_an_error_shows_no_password() -> None:
    address = StoreUrl("postgresql://agent:s3cret@127.0.0.1:1/w?sslmode=bad")
    for url in (address, StoreUrl("postgresql://agent:s3 cret@[broken/w")):
        with pytest.raises(StoreError) as raised:
            open_store(url)
        assert "cret" not in str(raised.value)
        assert "agent:***@" in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            psycopg.errors.DiskFull("could not extend file"),
            "the disk of the server is full; nothing of this batch",
        ),
        (psycopg.errors.ReadOnlySqlTransaction("no"), "the server takes no writes: it is a standby"),
        (psycopg.errors.InsufficientPrivilege("no"), "the user lacks a permission"),
        (psycopg.errors.TooManyConnections("sorry"), "the server has no free connection; try again"),
        (psycopg.OperationalError("timeout expired"), "the server cannot be reached .timeout expired"),
    ],
)
def test_an_error_of_the_server_has_a_remedy(error: psycopg.Error, text: str) -> None:
    with (
        pytest.raises(StoreError, match=f"^postgresql://db/w: {text}"),
        errors.reporting(StoreUrl("postgresql://db/w")),
    ):
        raise error


def test_an_old_server_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MINIMUM_VERSION", 990_000)
    with pytest.raises(StoreError, match=r"the server is PostgreSQL \d+; expected 99 or newer"):
        open_store(postgres_url)


def test_a_missing_driver_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"needs psycopg .*pip install '.*\[postgres\]'"):
        open_store("postgresql://db/w")


def test_a_missing_database_is_named(postgres_server) -> None:
    with pytest.raises(StoreError, match="there is no such database; create it with `createdb`"):
        open_store(postgres_server.url("missing"))


def test_a_user_who_may_not_connect_is_refused(postgres_url: str) -> None:
    rows(postgres_url, "DROP ROLE IF EXISTS outsider; CREATE ROLE outsider NOLOGIN")
    with pytest.raises(StoreError, match="the user may not connect; check the user of the URL"):
        open_store(postgres_url.replace("postgres@", "outsider@"))


def test_a_server_that_takes_no_writes_is_read(store: Store, postgres_url: str, make_session) -> None:
    store.append(make_session("s1"))
    store.close()
    database = postgres_url.rpartition("/")[2]
    rows(postgres_url, f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')

    with closing(open_store(postgres_url)) as again, pytest.raises(StoreError, match="takes no writes"):
        again.append(make_session("s2"))
    with closing(open_reader(postgres_url)) as reader:
        assert [row.session_id for row in reader.sessions()] == ["s1"]


def test_an_error_names_the_permission_that_a_user_lacks(store: Store, postgres_url: str) -> None:
    rows(postgres_url, "DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    with pytest.raises(StoreError, match="the user lacks a permission; make it the owner of the database"):
        open_reader(postgres_url.replace("postgres@", "stranger@"))


# -- announced writes -----------------------------------------------------------------------------------------


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_reader_learns_of_writes_without_a_query(
    store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_reader(postgres_url)) as reader:
        before = reader.version()
        assert not reader.has_changed_since(before)
        wait_until(lambda: reader._engine.announced_version() is not None)
        monkeypatch.setattr(reader._engine, "lend", lambda: pytest.fail("a query was sent"))
        assert not reader.has_changed_since(before)
        store.admit_agent("a")
        wait_until(lambda: reader.has_changed_since(before))


def test_changes_are_queried_while_nothing_listens(
    store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_count, "RETRY_SECONDS", 0.5)
    with closing(open_reader(postgres_url)) as reader:
        reader.has_changed_since(0)
        wait_until(lambda: reader._engine.announced_version() is not None)
        rows(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT writes%'",
        )
        wait_until(lambda: reader._engine.announced_version() is None)
        before = reader.version()
        store.admit_agent("a")
        assert reader.has_changed_since(before)
        wait_until(lambda: reader._engine.announced_version() is not None)
        assert reader.has_changed_since(before)
