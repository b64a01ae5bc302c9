"""Sessions of opencode in its database and in the folders of earlier releases."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read

from windowpane.exceptions import SourceError
from windowpane.sources.imports.importer import import_file, import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.remembered_files import RememberedFiles
from windowpane.sources.imports.watch import Watcher
from windowpane.sources.installed_agents.locations import default_folders
from windowpane.sources.transcripts.databases import SessionState
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.opencode.reader import OpencodeDatabaseReader, OpencodeStorageReader
from windowpane.sources.transcripts.records import ModelCalled, SessionOpened
from windowpane.store.embedded import SqliteStore

SCHEMA = """
CREATE TABLE session (
  id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
  title text NOT NULL, version text NOT NULL, revert text, time_created integer NOT NULL,
  time_updated integer NOT NULL
);
CREATE TABLE message (
  id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL
);
CREATE TABLE part (
  id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL
);
"""
TOKENS = {"input": 100, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def reply(at: int) -> Json:
    times = {"created": at, "completed": at + 1}
    return {"role": "assistant", "modelID": "gpt-5", "tokens": TOKENS, "time": times}


class Database:
    """A database as opencode writes it: in WAL mode, open while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(SCHEMA)
        self.parts = 0

    def add_session(self, name: str, created: int, parent: str | None = None) -> None:
        values = (name, "p", parent, "slug", "/work", "Fix it", "1.3.0", None, created, created)
        self.connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def add_message(self, session: str, name: str, info: Json, *parts: Json) -> None:
        at = info["time"]["created"]
        values = (name, session, at, at, json.dumps(info))
        self.connection.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", values)
        for part in parts:
            self.parts += 1
            row = (f"prt_{self.parts:04}", name, session, at, at, json.dumps(part))
            self.connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)

    def add_turn(self, session: str, number: int, at: int, *, ended: bool = True) -> None:
        asked = {"role": "user", "time": {"created": at}, "model": {"modelID": "gpt-5"}}
        self.add_message(session, f"msg_{number}a", asked, {"type": "text", "text": f"Question {number}"})
        times = {"created": at + 1} | ({"completed": at + 2} if ended else {})
        answer = {"role": "assistant", "modelID": "gpt-5", "tokens": TOKENS, "time": times}
        text = {"type": "text", "text": f"Answer {number}"}
        finish = {"type": "step-finish", "reason": "stop", "tokens": TOKENS, "cost": 0.5}
        self.add_message(session, f"msg_{number}b", answer, {"type": "step-start"}, text, finish)

    def files(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.path.parent.iterdir() if file.suffix != ".db-shm"}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    folder = tmp_path / "opencode"
    folder.mkdir()
    made = Database(folder / "opencode.db")
    with closing(made.connection):
        yield made


def old(hours: int = 1) -> int:
    return int((time.time() - 3_600 * hours) * 1_000)


class TestDatabase:
    def test_all_sessions_are_read_and_sub_agents_are_children(self, database: Database) -> None:
        database.add_session("ses_1", old(3))
        database.add_session("ses_2", old(2), parent="ses_1")
        database.add_turn("ses_1", 1, old(3))
        database.add_turn("ses_2", 2, old(2))
        before = database.files()
        read = Read(reader_for(database.path, all_readers()), database.path)

        assert [(o.session_key, o.parent_key) for o in read.of(SessionOpened)] == [
            ("ses_1", None),
            ("ses_2", "ses_1"),
        ]
        assert [call.cost_dollars for call in read.of(ModelCalled)] == [0.5, 0.5]
        assert read.problems == []
        assert database.files() == before

    def test_the_calls_of_a_fork_are_counted_once(self, database: Database, store: SqliteStore) -> None:
        at = old(3)
        call = {
            "type": "tool",
            "tool": "read",
            "callID": "call_1",
            "state": {"status": "completed", "output": "a"},
        }
        for name, created in (("ses_1", at), ("ses_2", at + 9_000), ("ses_3", at + 18_000)):
            database.add_session(name, created)
            database.add_turn(name, int(name[-1]) * 10, created)
        database.add_turn("ses_2", 8, at)
        database.add_message("ses_1", "msg_10b", reply(at + 1), call)
        database.add_message("ses_2", "msg_8b", reply(at + 1), call)
        database.add_turn("ses_3", 9, at - 5_000)
        read = Read(reader_for(database.path, all_readers()), database.path)
        playback = playback_settings(store.digester())
        import_file(database.path, AlertingStore(store), readers=all_readers(), playback=playback)
        rows = [store.session(f"opencode:{name}") for name in ("ses_1", "ses_2", "ses_3")]

        assert [row and (row.turns, row.cost_dollars, row.same_as) for row in rows] == [
            (1, 0.5, ""), (1, 0.5, ""), (2, 1.0, "")
        ]  # fmt: skip
        assert [problem.field for problem in read.problems] == ["session ses_3.time"]

    @pytest.mark.parametrize("kept", [("opencode.db",), ("opencode.db", "opencode.db-wal")])
    def test_a_copy_without_its_index_is_read_and_not_written(
        self, database: Database, tmp_path: Path, kept: tuple[str, ...]
    ) -> None:
        database.add_session("ses_1", old())
        database.add_turn("ses_1", 1, old())
        if len(kept) == 1:
            database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        copied = tmp_path / "copied"
        copied.mkdir()
        for name in kept:
            (copied / name).write_bytes((database.path.parent / name).read_bytes())

        assert len(Read(OpencodeDatabaseReader(), copied / "opencode.db").of(ModelCalled)) == 1
        assert sorted(file.name for file in copied.iterdir()) == sorted(kept)

    def test_an_exported_session_gives_the_same_records(self, database: Database, sessions_dir: Path) -> None:
        """Rows and document hold the same, so the session is one, wherever it is read."""
        path = sessions_dir / "opencode/export_pruned_37-364f83fa16-0.json"
        document = json.loads(path.read_text())
        info, session = document["info"], document["info"]["id"]
        database.add_session(session, info["time"]["created"])
        fields = (info["title"], info["directory"], info["version"])
        database.connection.execute("UPDATE session SET title = ?, directory = ?, version = ?", fields)
        for number, message in enumerate(document["messages"]):
            database.add_message(session, f"msg_{number:04}", message["info"], *message["parts"])

        from_rows = Read(OpencodeDatabaseReader(), database.path)
        exported = Read(reader_for(path, all_readers()), path)
        assert from_rows.records == exported.records
        assert from_rows.stats == exported.stats

    def test_a_damaged_row_and_database_are_reported(self, database: Database) -> None:
        database.add_session("ses_1", old())
        database.add_turn("ses_1", 1, old())
        database.connection.execute("UPDATE part SET data = '[1' WHERE id = 'prt_0003'")
        read = Read(OpencodeDatabaseReader(), database.path)
        damaged = database.path.with_name("damaged.db")
        damaged.write_bytes(b"SQLite format 3\0" + b"x" * 4_000)

        assert read.problems[0].field == "part prt_0003"
        with pytest.raises(SourceError):
            OpencodeDatabaseReader().sessions(damaged)

    def test_the_data_folder_can_be_moved(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(database.path.parent.parent))

        assert database.path in default_folders()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "windowpane.db")
    yield made
    made.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the sessions of databases that were read."""
    names: list[str] = []
    read_session: Callable[..., object] = OpencodeDatabaseReader.read_session

    def recorded(reader: OpencodeDatabaseReader, path: Path, key: str, **more: object) -> object:
        names.append(key)
        return read_session(reader, path, key, **more)

    monkeypatch.setattr(OpencodeDatabaseReader, "read_session", recorded)
    return names


class TestFollowing:
    def watcher(self, database: Database, store: SqliteStore) -> Watcher:
        return Watcher(
            [database.path],
            store,
            playback=playback_settings(store.digester()),
            since_seconds=3_600 * 3,
        )

    def test_a_change_is_noticed_in_the_log_and_reads_its_session_only(
        self, database: Database, store: SqliteStore, reads: list[str]
    ) -> None:
        for number in (1, 2, 30):
            database.add_session(f"ses_{number}", old(number))
            database.add_turn(f"ses_{number}", number, old(number))
        watcher = self.watcher(database, store)
        watcher.poll()
        first = reads.copy()
        del reads[:]
        watcher.poll()
        unchanged = reads.copy()
        database.add_turn("ses_1", 3, int(time.time() * 1_000))
        watcher.poll()

        assert (sorted(first), unchanged, reads) == (["ses_1", "ses_2"], [], ["ses_1"])
        row = store.session("opencode:ses_1")
        assert row is not None
        assert row.turns == 2

    def test_a_report_on_the_changed_sessions_alone_is_not_remembered(
        self, database: Database, store: SqliteStore
    ) -> None:
        for number in (1, 2):
            database.add_session(f"ses_{number}", old(number))
            database.add_turn(f"ses_{number}", number, old(number))
        for path in database.path.parent.glob("opencode.db*"):
            os.utime(path, (time.time() - 600, time.time() - 600))
        settings: dict[str, Any] = {
            "playback": playback_settings(store.digester()),
            "readers": all_readers(),
            "memory": RememberedFiles(store, playback_settings(store.digester())),
        }
        judged = AlertingStore(store)
        known = OpencodeDatabaseReader().sessions(database.path) | {"ses_2": SessionState(None, "before")}
        reports = [
            import_file(database.path, judged, imported=imported, **settings)
            for imported in (dict(known), None, None)
        ]

        assert [len(report.outcomes) for report in reports] == [1, 2, 2]

    def test_a_reply_in_progress_is_read_when_it_has_ended(self, database: Database, store: SqliteStore) -> None:
        database.add_session("ses_1", old())
        now = int(time.time() * 1_000)
        database.add_turn("ses_1", 1, now, ended=False)
        watcher = self.watcher(database, store)
        watcher.poll()
        before = store.session("opencode:ses_1")
        database.connection.execute("DELETE FROM part")
        database.add_turn("ses_1", 1, now)
        database.connection.execute("UPDATE message SET time_updated = time_updated + 5")
        watcher.poll()
        after = store.session("opencode:ses_1")

        assert before is not None
        assert after is not None
        assert (before.turns, after.turns) == (0, 1)


def test_a_folder_of_messages_is_one_recording(tmp_path: Path, store: SqliteStore) -> None:
    storage = tmp_path / "storage"
    info = {"id": "ses_1", "title": "Fix it", "directory": "/work", "time": {"created": old()}}
    asked = {"id": "msg_1", "role": "user", "time": {"created": old()}, "model": {"modelID": "gpt-5"}}
    answer = {
        "id": "msg_2",
        "role": "assistant",
        "tokens": TOKENS,
        "time": {"created": old(), "completed": old()},
    }
    text, finish = {"type": "text", "text": "hi"}, {"type": "step-finish", "tokens": TOKENS, "cost": 0.5}
    for name, value in {
        "session/p/ses_1.json": info,
        "message/ses_1/msg_1.json": asked,
        "message/ses_1/msg_2.json": answer,
        "part/msg_1/prt_1.json": text,
        "part/msg_2/prt_2.json": text,
        "part/msg_2/prt_3.json": finish,
    }.items():
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_text(json.dumps(value))
    folder = storage / "message" / "ses_1"
    read = Read(OpencodeStorageReader(complete=True), folder)
    playback = playback_settings(store.digester())
    reports = import_paths(
        [storage / "message"], AlertingStore(store), playback=playback, readers=all_readers(complete=True)
    )

    assert read.order == ["user_message", "assistant_response", "ModelCalled"]
    assert read.problems == []
    assert [[outcome.session_id for outcome in report.outcomes] for report in reports] == [["opencode:ses_1"]]
