"""The database file: schema versions, damaged and foreign files, privacy, flush and full disks."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.exceptions import OlderStoreError, SchemaVersionError, StoreError
from windowpane.store import migrations, tables
from windowpane.store.embedded import SqliteReader, SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.search.content import ContentFilter
from windowpane.store.sqlite.dialect import SQLITE
from windowpane.store.sqlite.engine import open_reader, open_writer

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


def later_release(monkeypatch: pytest.MonkeyPatch, migration: migrations.Migration) -> None:
    """Let the package be of a release whose schema version is 2."""
    monkeypatch.setattr(migrations, "MIGRATIONS", {2: migration})
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 2)


def version_of(store: SqliteStore) -> int | None:
    with closing(open_writer(store.path)) as connection:
        return connection.execute("SELECT max(version) FROM schema_versions").fetchone()[0]


# -- schema versions and files --------------------------------------------------------------------------------


def test_a_new_store_has_the_schema_version_of_this_release(store):
    assert version_of(store) == migrations.SCHEMA_VERSION
    with closing(open_writer(store.path)) as connection:
        created = {name for (name,) in connection.execute(TABLES)}
    assert {table.name for table in tables.TABLES} <= created


def test_a_store_of_an_older_release_is_migrated_once(store, make_session, monkeypatch):
    store.append(make_session(turns=2))
    runs = []

    def migrate(database):
        runs.append(database)
        for statement in database.dialect.create_table(tables.table("note", "id integer, text text", key="id")):
            database.execute(statement)
        column = tables.Column.parse("mood text default 'calm'")
        database.execute(f"ALTER TABLE sessions ADD COLUMN {database.dialect.define(column)}")

    later_release(monkeypatch, migrate)
    with pytest.raises(OlderStoreError, match="written by an older release; open it once for writing"):
        SqliteReader(store.path)
    SqliteStore(store.path).close()
    with closing(SqliteStore(store.path)) as migrated:
        assert migrated._read("SELECT mood FROM sessions") == [("calm",)]
        assert migrated._read("SELECT count(*) FROM note") == [(0,)]
        assert migrated.verify().intact
    assert len(runs) == 1
    assert version_of(store) == 2


def test_a_failed_migration_is_rolled_back(store, monkeypatch):
    def fail(database):
        for _ in range(2):
            database.execute("CREATE TABLE half (text TEXT)")

    later_release(monkeypatch, fail)
    with pytest.raises(StoreError, match="half"):
        SqliteStore(store.path)

    assert version_of(store) == 1
    with closing(open_writer(store.path)) as connection:
        assert ("half",) not in connection.execute(TABLES).fetchall()


@pytest.mark.parametrize("opened", [SqliteStore, SqliteReader])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("INSERT INTO schema_versions VALUES (999, 0)", r"by a newer release .*999.*upgrade the package"),
        ("DROP TABLE schema_versions", r"before release 0\.1\.0.*Name a new store, and import the sessions"),
        ("DELETE FROM schema_versions", r"schema_versions is empty.*Restore a copy"),
        ("UPDATE schema_versions SET version = 0", r"schema version is 0, .*Restore a copy"),
    ],
)
def test_a_store_of_an_unknown_version_is_refused_and_not_changed(store, opened, change, problem):
    store.close()
    with closing(open_writer(store.path)) as connection:
        connection.execute(change)
    before = store.path.read_bytes()

    with pytest.raises(SchemaVersionError, match=problem):
        opened(store.path)

    assert store.path.read_bytes() == before


def test_a_reader_rejects_the_database_of_another_program(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")

    with pytest.raises(StoreError, match=r"other\.db: is not a Windowpane store"):
        SqliteReader(tmp_path / "other.db")


def test_a_store_in_a_read_only_folder_is_readable(tmp_path, make_session, monkeypatch):
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
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)

    with pytest.raises(StoreError, match="cannot be created"):
        SqliteStore(folder / "w.db")


def test_a_folder_that_is_a_file_is_reported(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be created"):
        SqliteStore(tmp_path / "file" / "w.db")


def read_everything(path: Path) -> None:
    reader = SqliteReader(path)
    reader.sessions(SessionFilter())
    list(reader.scan())


def test_a_damaged_page_is_reported_with_the_path(store, make_session):
    store.append(make_session(turns=20))
    store.close()
    raw = bytearray(store.path.read_bytes())
    raw[8192 * 2 :] = os.urandom(len(raw) - 8192 * 2)
    store.path.write_bytes(raw)

    with pytest.raises(StoreError, match=r"windowpane\.db: not a readable database"):
        read_everything(store.path)
    assert store.path.read_bytes() == bytes(raw)


def test_a_closed_store_raises_a_store_error(store, make_session):
    store.close()
    store.close()

    with pytest.raises(StoreError, match="is closed"):
        store.append(make_session(turns=1))


# -- durability and space -------------------------------------------------------------------------------------


def test_flush_commits_with_full_synchronization_only_when_needed(store, make_session):
    statements: list[str] = []
    store._shared.writer.connection.set_trace_callback(statements.append)
    store.append(make_session(turns=1))
    store.flush()
    full = statements.index("PRAGMA synchronous = FULL")
    assert "COMMIT" in statements[full:]
    assert statements[-1] == "PRAGMA synchronous = NORMAL"
    statements.clear()
    store.flush()
    assert statements == []


def test_a_full_disk_stores_nothing_of_the_batch(store, make_session):
    store.append(make_session("fits", turns=2))
    connection = store._shared.writer.connection
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


def test_the_file_is_private_under_any_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "w.db")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "w.db").stat().st_mode) == 0o600
    store.close()


def test_the_file_is_private(store):
    for file in store.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_file_that_is_not_a_database_is_rejected_unchanged(tmp_path: Path):
    path = tmp_path / "notes.db"
    path.write_bytes(b"these are my notes, not a database\n" * 300)

    with pytest.raises(StoreError, match=r"notes\.db: not a readable database"):
        SqliteStore(path)

    assert path.read_bytes().startswith(b"these are my notes")


def test_a_missing_store_is_reported_by_a_reader(tmp_path: Path):
    with pytest.raises(StoreError, match="no store here"):
        SqliteReader(tmp_path / "none.db")

    assert not (tmp_path / "none.db").exists()


def test_no_content_is_stored_without_capture(store, make_session):
    store.append(make_session(turns=4))
    store.flush()

    assert store.size().contents == 0
    assert all(b"please 1" not in file.read_bytes() for file in store.path.parent.iterdir())


def test_without_trigrams_texts_are_read_one_by_one(tmp_path, make_session, monkeypatch):
    monkeypatch.setattr(SQLITE.content_index, "is_supported", False)
    store = SqliteStore(tmp_path / "w.db", capture=True, redact=str)
    store.append(make_session())
    store.index_text()

    result = store.find_content(ContentFilter("ainly 5"))

    assert [hit.snippet.line for hit in result.hits] == ["certainly 5"]
    assert result.waiting == result.texts
    store.close()
