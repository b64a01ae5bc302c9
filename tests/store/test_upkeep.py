"""Migrations, damaged and foreign files, retention and full disks."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.exceptions import SchemaVersionError, StoreError
from windowpane.store import migrations
from windowpane.store.connection import open_reader, open_writer
from windowpane.store.interface import EventFilter, SessionFilter
from windowpane.store.sqlite import SqliteReader, SqliteStore


class AddNote:
    """A migration that works."""

    def apply(self, connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE note (text TEXT)")


class Fail:
    """A migration that fails half-way."""

    def apply(self, connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (text TEXT)")
        connection.execute("CREATE TABLE half (text TEXT)")


# -- migrations and files -------------------------------------------------------------------------------------


def test_every_migration_is_recorded_and_runs_once(store):
    """Opening again applies nothing."""
    names = [step.name for step in migrations.available()]
    with closing(open_writer(store.path)) as connection:
        assert migrations.applied(connection) == set(names)
        assert migrations.migrate(connection, store.path) == []
    assert names == sorted(names)
    assert names[0] == "m001_create_store"


def test_a_later_migration_is_applied_to_an_older_store(store):
    """What a store lacks is added, what it has stays."""
    listed = [*migrations.available(), migrations.NamedMigration("m900_add_note", AddNote())]
    with closing(open_writer(store.path)) as connection:
        assert migrations.migrate(connection, store.path, listed) == ["m900_add_note"]
        assert connection.execute("SELECT count(*) FROM note").fetchone() == (0,)


def test_a_migration_that_fails_leaves_nothing_behind(store):
    """Neither its tables nor its record."""
    listed = [*migrations.available(), migrations.NamedMigration("m900_fail", Fail())]
    with closing(open_writer(store.path)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrations.migrate(connection, store.path, listed)
        assert "m900_fail" not in migrations.applied(connection)
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)


@pytest.mark.parametrize("opened", [SqliteStore, SqliteReader])
def test_a_store_of_a_newer_release_is_refused(store, opened):
    """Neither read nor written, with the migration that is not known."""
    with closing(open_writer(store.path)) as connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_from_the_future', 0)")

    with pytest.raises(SchemaVersionError, match="m999_from_the_future"):
        opened(store.path)


def test_another_programs_database_is_refused_by_a_reader(tmp_path):
    """A database that is no store is named as such."""
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")

    with pytest.raises(StoreError, match=r"other\.db: is not a Windowpane store"):
        SqliteReader(tmp_path / "other.db")


def test_a_store_in_a_folder_that_cannot_be_written_is_still_read(tmp_path, make_session, monkeypatch):
    """Where SQLite can make no lock files the database is read as it stands."""
    store = SqliteStore(tmp_path / "w.db")
    store.append(make_session(turns=2))
    store.close()
    connect = sqlite3.connect

    def refuse_locks(address, **options):
        if "immutable" not in address:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(address, **options)

    monkeypatch.setattr(sqlite3, "connect", refuse_locks)
    with closing(open_reader(tmp_path / "w.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    """The error names the file and what to check."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)

    with pytest.raises(StoreError, match="cannot be created"):
        SqliteStore(folder / "w.db")


def test_a_folder_that_is_a_file_is_reported(tmp_path):
    """Whatever stands in the way, the error is a StoreError."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be created"):
        SqliteStore(tmp_path / "file" / "w.db")


def read_everything(path: Path) -> None:
    reader = SqliteReader(path)
    reader.sessions(SessionFilter())
    list(reader.scan())


def test_a_damaged_page_is_reported_with_the_path(store, make_session):
    """Reading a damaged database raises and changes nothing."""
    store.append(make_session(turns=20))
    store.close()
    raw = bytearray(store.path.read_bytes())
    raw[8192 * 2 :] = os.urandom(len(raw) - 8192 * 2)
    store.path.write_bytes(raw)

    with pytest.raises(StoreError, match=r"windowpane\.db: not a readable database"):
        read_everything(store.path)
    assert store.path.read_bytes() == bytes(raw)


def test_a_closed_store_says_so(store, make_session):
    """Appending after close is an error of ours, not of sqlite3; closing twice is fine."""
    store.close()
    store.close()

    with pytest.raises(StoreError, match="is closed"):
        store.append(make_session(turns=1))


# -- durability and space -------------------------------------------------------------------------------------


def test_flush_commits_with_full_synchronisation_and_only_when_needed(store, make_session):
    """The commit that flush makes is one SQLite calls fsync for; without new events there is none."""
    statements: list[str] = []
    store._writer.connection.set_trace_callback(statements.append)
    store.append(make_session(turns=1))
    store.flush()
    full = statements.index("PRAGMA synchronous = FULL")
    assert "COMMIT" in statements[full:]
    assert statements[-1] == "PRAGMA synchronous = NORMAL"
    statements.clear()
    store.flush()
    assert statements == []


def test_a_full_disk_stores_nothing_of_the_batch(store, make_session):
    """The batch that does not fit raises; what was stored before is whole and more can be stored later."""
    store.append(make_session("fits", turns=2))
    connection = store._writer.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(StoreError, match="disk is full"):
        store.append(make_session("too-large", turns=400))

    assert store.session("too-large") is None
    assert store.verify().intact
    connection.execute("PRAGMA max_page_count = 100000")
    store.append(make_session("later", turns=2))
    assert store.verify().intact
    assert store.session("later").turns == 2


def test_retention_deletes_whole_sessions_and_keeps_tombstones(store, make_session):
    """The oldest go first; their tombstones explain them, numbers are never used again."""
    for number in range(4):
        store.append(make_session(f"s{number}", turns=2, start=1e9 + number * 1e6))
    last_seq = max(item.seq for batch in store.scan() for item in batch)
    while store.index_text():
        pass

    assert store.prune(before=1e9 + 1.5e6) == 2

    assert [row.session_id for row in store.sessions(SessionFilter(order="recent"))] == ["s3", "s2"]
    assert store.turns("s0") == []
    assert sum(1 for head in store.heads() if head.kind == "pruned") == 2
    assert store.verify().intact
    assert store.size().events == sum(store.size().by_type.values())
    assert len(store.events(EventFilter(text="session.started"))) == 2
    store.append(make_session("new", turns=1))
    assert min(item.seq for item in store.events(EventFilter(session_id="new"))) == last_seq + 1


def test_sessions_without_times_do_not_keep_old_ones(store, make_session):
    """A recording that has no times is no reason to keep what is too old; its own age is unknown, so it stays."""
    store.append([event._replace(at=None) for event in make_session("timeless", turns=2)])
    for number in range(2):
        store.append(make_session(f"s{number}", turns=2, start=1e9 + number * 1e6))

    assert store.prune(before=1e9 + 0.5e6) == 1
    assert {row.session_id for row in store.sessions(SessionFilter())} == {"timeless", "s1"}
    assert store.prune(max_bytes=1) == 2


def test_retention_by_size_stops_when_it_fits(store, make_session):
    """Only as many sessions go as must."""
    for number in range(6):
        store.append(make_session(f"s{number}", turns=30, start=1e9 + number * 1e6))
    whole = store.size().bytes

    pruned = store.prune(max_bytes=whole * 2 // 3)

    assert 0 < pruned < 6
    assert store.size().bytes <= whole * 2 // 3
    assert store.session("s5") is not None


def test_what_is_pruned_is_folded_into_the_metric_base(store, make_session):
    """The fold sees every event of the session before it is gone, on top of the stored base."""
    counted = 0
    for session_id in ("s1", "s2"):
        events = make_session(session_id, turns=2)
        store.append(events)
        counted += len(events)

        store.prune(before=1e10, fold=lambda base, gone: str(int(base or b"0") + sum(1 for _ in gone)).encode())

        assert store.load_metric_base() == str(counted).encode()


def test_a_fold_may_ask_the_store_for_an_agents_label(store, make_session):
    """Agents nobody has counted yet are admitted within the transaction that deletes their sessions."""
    store.append(make_session("s1", turns=2))

    assert store.prune(before=1e10, fold=lambda _base, _gone: store.admit_agent("new-one").encode()) == 1

    assert store.load_metric_base() == b"new-one"
    assert store.verify().intact


def test_private_whatever_the_umask(tmp_path: Path):
    """The file's mode does not depend on the process's umask."""
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "w.db")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "w.db").stat().st_mode) == 0o600
    store.close()
