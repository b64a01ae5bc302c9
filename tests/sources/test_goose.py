"""Sessions of Goose, in its database and in files of earlier releases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from reads import Json, Read, read_rows

from windowpane.cli import main
from windowpane.sources.discovery import all_readers, reader_for
from windowpane.sources.goose.reader import GooseDatabaseReader, GooseLinesReader
from windowpane.sources.locations import default_folders
from windowpane.sources.records import Compacted, ContentAdded, ModelCalled, SessionDescribed, SessionOpened

SCHEMA = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT FALSE,
  session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  accumulated_input_tokens INTEGER, model_config_json TEXT, parent_session_id TEXT
);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
  created_timestamp INTEGER NOT NULL, metadata_json TEXT
);
"""
HIDDEN = {"userVisible": True, "agentVisible": False}
INJECTED = {"userVisible": False, "agentVisible": True}


def text(written: str) -> Json:
    return {"type": "text", "text": written}


def message(role: str, *content: Json, at: int = 1_770_000_000, **metadata: Any) -> Json:
    return {"role": role, "created": at, "content": list(content), "metadata": metadata}


REQUEST = {"type": "toolRequest", "id": "t1", "toolCall": {"status": "success", "value": {"name": "shell"}}}
RESPONSE = {"type": "toolResponse", "id": "t1", "toolResult": {"status": "success", "value": [text("done")]}}
TURN = (message("user", text("go")), message("assistant", text("ok"), REQUEST), message("user", RESPONSE))


def database(folder: Path, sessions: dict[str, Json], *messages: Json) -> Path:
    path = folder / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        for name, fields in sessions.items():
            columns = {"id": name, "working_dir": "/work", **fields}
            marks = ", ".join("?" * len(columns))
            connection.execute(
                f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({marks})", (*columns.values(),)
            )
            for stated in messages:
                row = (name, stated["role"], json.dumps(stated["content"]), stated["created"] * 1000)
                values = (*row, json.dumps(stated["metadata"]))
                columns_of = "session_id, role, content_json, created_timestamp, metadata_json"
                connection.execute(f"INSERT INTO messages ({columns_of}) VALUES (?, ?, ?, ?, ?)", values)
    return path


def test_a_database_holds_all_sessions(tmp_path: Path, monkeypatch: Any) -> None:
    """Sub-agents name their parent; the model is that of the session; usage per call is not recorded."""
    folder = tmp_path / "goose" / "sessions"
    folder.mkdir(parents=True)
    child = {
        "session_type": "sub_agent",
        "parent_session_id": "a",
        "model_config_json": '{"model_name": "gpt-5"}',
    }
    path = database(folder, {"a": {"name": "Fix it"}, "b": child}, *TURN)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    read = Read(reader_for(path, all_readers()), path)

    assert [(o.session_key, o.agent, o.parent_key) for o in read.of(SessionOpened)] == [
        ("a", "goose", None),
        ("b", "goose-agent", "a"),
    ]
    assert read.of(SessionDescribed)[0] == SessionDescribed("Fix it", folder="/work")
    assert [(call.usage, call.model) for call in read.of(ModelCalled)] == [(None, ""), (None, "gpt-5")]
    assert read.of(ContentAdded)[0].at == 1_770_000_000
    assert path in default_folders()
    assert ["usage" in str(problem) for problem in read.problems] == [True]


def test_calls_that_name_no_message_are_not_assigned(tmp_path: Path) -> None:
    """Recent releases list the calls of a session by the second; the problem names the table, once."""
    path = database(tmp_path, {"a": {}, "b": {}}, *TURN)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE usage_ledger (session_id TEXT, created_timestamp INTEGER, input_tokens INTEGER)"
        )
    read = Read(GooseDatabaseReader(), path)

    assert ["usage_ledger" in str(problem) for problem in read.problems] == [True]
    assert {call.usage for call in read.of(ModelCalled)} == {None}


def test_rows_and_a_file_give_the_same_records(tmp_path: Path) -> None:
    """Earlier releases keep a session in a file that is named by it."""
    read = read_rows(GooseLinesReader(), tmp_path, [{"working_dir": "/work"}, *TURN])
    rows = Read(GooseDatabaseReader(), database(tmp_path, {"transcript": {}}, *TURN))

    assert read.order == ["user_message", "assistant_response", "tool_call", "ModelCalled", "tool_result"]
    assert [r for r in read.records if not isinstance(r, SessionOpened)] == [
        r for r in rows.records if not isinstance(r, SessionOpened)
    ]
    assert reader_for(tmp_path / "transcript.jsonl", all_readers()).format == "goose"


def test_compactions_are_found_after_later_ones_too(tmp_path: Path) -> None:
    """A later compaction hides the summary of the one before, whose messages the model had seen."""
    first, second = "Your context was compacted. The", "Your context was compacted at the user's request. The"
    unseen = {"userVisible": False, "agentVisible": False}
    read = read_rows(
        GooseLinesReader(),
        tmp_path,
        [
            {"working_dir": "/work"},
            message("user", text("go"), **HIDDEN),
            message("assistant", text("ok"), **HIDDEN),
            message("user", text("one"), **unseen),
            message("assistant", text(first), **unseen),
            message("assistant", text("more"), **HIDDEN),
            message("user", text("two"), **INJECTED),
            message("assistant", text(second), **INJECTED),
            message("user", text("aside"), **HIDDEN),
        ],
    )

    assert [(c.trigger, c.summary) for c in read.of(Compacted)] == [("auto", "one"), ("manual", "two")]
    assert read.order == [
        "user_message",
        "assistant_response",
        "ModelCalled",
        "Compacted",
        "memory_injection",
        "assistant_response",
        "ModelCalled",
        "Compacted",
        "memory_injection",
    ]
    assert read.stats.compactions == 2


def test_the_import_states_that_a_reader_is_experimental(tmp_path: Path) -> None:
    """A reader that was never compared with a recording is named."""
    path = database(tmp_path, {"a": {}, "b": {}}, *TURN)
    result = CliRunner().invoke(main, ["import", str(path), "--store", str(tmp_path / "windowpane.db")])

    assert result.exit_code == 0, result.output
    assert "experimental" in result.stderr
    assert result.stderr.count("usage of single calls") == 1
    assert "2 sessions" in result.stdout


def test_damaged_rows_are_reported(tmp_path: Path) -> None:
    """A row without a list of content is a message without content."""
    path = database(tmp_path, {"a": {}}, *TURN)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE messages SET content_json = '{' WHERE id = 1")
        connection.execute("UPDATE messages SET content_json = 7, metadata_json = x'ff' WHERE id = 2")
    read = Read(GooseDatabaseReader(), path)

    assert [problem.field for problem in read.problems][1:3] == [
        "message 1.content_json",
        "message 2.content_json",
    ]
    assert read.order == ["tool_result"]
