"""Spool files: written whole, bounded, private, taken in exactly once."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.core.codec import encode
from windowpane.core.events import Event, EventContext, SessionStarted
from windowpane.exceptions import EventsRefusedError, StoreError
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.keys import AuditKeys
from windowpane.store.writes.spool import Spool, waiting_files

KEY = b"a key of at least sixteen bytes"


def spool(path: Path, *, key: bytes | None = None, **options) -> Spool:
    return Spool(path, keys=AuditKeys(key), redact=None, **options)


def take_in(store: SqliteStore, spooled: Spool) -> int:
    return sum(store.take_in(content) for path in spooled.files() if (content := spooled.read(path)))


def test_events_are_taken_in_once_and_in_order(store, make_session):
    session = make_session(turns=6)
    store.append(session[:10])
    spooled = spool(store.path)

    assert spooled.write(session[5:]) == len(session) - 5
    assert take_in(store, spooled) == len(session) - 10
    assert take_in(store, spooled) == 0

    taken = [item.event for item in store.events(EventFilter(limit=10_000))]
    assert list(map(encode, taken)) == list(map(encode, session))
    assert store.verify().intact


def test_a_write_that_waits_for_a_lock_stores_no_spooled_event(store, make_session):
    """It would succeed after the events were taken in, and store them twice."""
    session = make_session()
    errors: list[StoreError] = []

    def append() -> None:
        try:
            store.append(session)
        except StoreError as error:
            errors.append(error)

    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=append)
        waiting.start()
        store.refuse_events()
        spool(store.path).write(session)
        other.execute("ROLLBACK")
        waiting.join(30)
    with closing(SqliteStore(store.path)) as opened:
        taken = take_in(opened, spool(store.path))

        assert [str(error) for error in errors] == [f"{store.path}: the events are spooled"]
        assert taken == len(session) == len(opened.events(EventFilter(limit=10_000)))


def test_events_are_accepted_again_where_spooling_failed(store, make_session):
    session = make_session()
    store.refuse_events()
    with pytest.raises(StoreError, match="are spooled"):
        store.append(session)
    store.refuse_events(refuse=False)
    store.append(session)

    assert store.verify().intact
    assert len(store.events(EventFilter(limit=10_000))) == len(session)


def test_a_file_is_private_under_any_umask(tmp_path, make_session):
    path = tmp_path / "new" / "folder" / "w.db"
    before = os.umask(0)
    try:
        spool(path).write(make_session(turns=1))
    finally:
        os.umask(before)

    (file,) = waiting_files(path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_size_of_all_files_is_bounded(tmp_path, make_session):
    session = make_session(turns=6)
    spooled = spool(tmp_path / "w.db", maximum_bytes=4_000)

    first = spooled.write(session)
    second = spooled.write(session)

    assert 0 < first < len(session)
    assert second == 0
    assert sum(file.stat().st_size for file in spooled.files()) < 4_500


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"session.started", b"session.stopped"),
        lambda content: b"",
        lambda content: b"{}" + content,
        lambda content: os.urandom(500),
    ],
)
def test_a_damaged_file_is_set_aside(store, make_session, caplog, damage):
    spooled = spool(store.path)
    spooled.write(make_session(turns=2))
    (file,) = spooled.files()
    file.write_bytes(damage(file.read_bytes()))

    assert take_in(store, spooled) == 0

    assert store.size().events == 0
    assert not spooled.files()
    assert file.with_suffix(".set-aside").exists()
    assert str(file) in caplog.text


@pytest.mark.parametrize(("written", "opened"), [(None, KEY), (KEY, None), (KEY, KEY[::-1])])
def test_a_file_of_another_audit_key_is_not_taken_in(tmp_path, make_session, caplog, written, opened):
    """Otherwise anyone who can write into the folder could have events signed; the file stays for its key."""
    path = tmp_path / "w.db"
    spool(path, key=written).write(make_session(turns=2))
    store = SqliteStore(path, audit_key=opened)

    assert take_in(store, spool(path, key=opened)) == 0
    store.close()

    assert len(waiting_files(path)) == 1
    assert "audit key" in caplog.text


def test_a_file_of_an_old_audit_key_is_taken_in(tmp_path, make_session):
    path = tmp_path / "w.db"
    spool(path, key=KEY).write(make_session(turns=2))
    store = SqliteStore(path, audit_key=KEY[::-1], old_audit_keys=[KEY])

    assert take_in(store, Spool(path, keys=AuditKeys(KEY[::-1], (KEY,)), redact=None)) > 0
    assert store.verify().intact
    store.close()


def test_a_forged_file_is_set_aside_with_a_key(tmp_path, make_session):
    path = tmp_path / "w.db"
    spool(path).write(make_session(turns=2))
    (file,) = waiting_files(path)
    named = spool(path, key=KEY)
    named.write(make_session("other", turns=1))
    key_id = named.files()[1].read_bytes().split(b'"keyed_by":"')[1].split(b'"')[0]
    file.write_bytes(file.read_bytes().replace(b'"keyed_by":""', b'"keyed_by":"' + key_id + b'"'))

    assert named.read(file) is None
    assert file.with_suffix(".set-aside").exists()


def test_a_refused_session_does_not_affect_the_others(tmp_path, make_session):
    path = tmp_path / "w.db"
    keyed = SqliteStore(path, audit_key=KEY)
    keyed.append(make_session("old", turns=1))
    keyed.close()
    spooled = spool(path)
    old = make_session("old", turns=3)
    spooled.write([*old[5:], *make_session("new", turns=2)])
    store = SqliteStore(path)

    with pytest.raises(EventsRefusedError, match="audit chain"):
        take_in(store, spooled)

    assert store.session("new") is not None
    store.close()


def test_the_name_of_a_file_is_durable_too(tmp_path, make_session, monkeypatch):
    synced: list[bool] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    spool(tmp_path / "w.db").write(make_session(turns=1))

    assert synced == [False, True]


def test_links_and_folders_are_not_taken_for_spool_files(tmp_path, make_session):
    path = tmp_path / "w.db"
    spool(tmp_path / "other.db").write(make_session(turns=1))
    (tmp_path / "w.db.spool-1.jsonl").symlink_to(waiting_files(tmp_path / "other.db")[0])
    (tmp_path / "w.db.spool-2.jsonl").mkdir()

    assert waiting_files(path) == []
    assert waiting_files(tmp_path / "nowhere" / "w.db") == []


def test_a_spool_that_cannot_be_written_is_removed(tmp_path, make_session, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        spool(tmp_path / "w.db").write(make_session(turns=1))

    assert list(tmp_path.iterdir()) == []


def test_half_a_surrogate_pair_survives_the_spool(store):
    """As it does in the store."""
    event = Event(EventContext("s\ud800", "a", "m", 0, 1, "live", "s"), 0, 1.0, SessionStarted())
    spooled = spool(store.path)
    spooled.write([event])

    assert take_in(store, spooled) == 1
