"""Sessions of Goose, in its database and in files of earlier releases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from reads import Json, Read, read_rows

from windowpane.cli import main
from windowpane.core.events import Usage
from windowpane.sources.installed_agents.locations import default_folders
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.goose.reader import GooseDatabaseReader, GooseLinesReader
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    SessionDescribed,
    SessionOpened,
)

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


LEDGER = """
CREATE TABLE usage_ledger (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER NOT NULL, model TEXT,
  input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER,
  cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0
);
INSERT INTO usage_ledger (session_id, created_timestamp, input_tokens, cost_source, is_compaction) VALUES
  ('a', 1, 900, 'carried_forward', 0), ('a', 2, 800, NULL, 1);
"""
CALL = (
    "INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens, "
    "cache_read_tokens, cache_write_tokens, cost, cost_source) VALUES (?, 3, 'gpt-5', 100, 9, 60, 10, 0.5, 'x')"
)


@pytest.mark.parametrize(("rows", "totals"), [(1, [100]), (2, [None])])
def test_a_ledger_with_a_row_for_each_reply_is_its_usage(
    tmp_path: Path, rows: int, totals: list[int | None]
) -> None:
    path = database(tmp_path, {"a": {}}, *TURN)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(LEDGER)
        connection.executemany(CALL, [("a",)] * rows)
    read = Read(GooseDatabaseReader(), path)
    (call,) = read.of(ModelCalled)

    assert [call.usage and call.usage.input_total] == totals
    if rows == 1:
        assert (call.usage, call.model, call.cost_dollars) == (Usage(30, 9, 60, 10), "gpt-5", 0.5)
    assert ["usage of single calls" in str(problem) for problem in read.problems] == [True] * (rows - 1)


def test_the_last_message_of_a_reply_states_its_usage(tmp_path: Path) -> None:
    usage = {
        "inputTokens": 100,
        "outputTokens": 9,
        "cacheReadTokens": 60,
        "cacheWriteTokens": 10,
        "cost": 0.5,
        "elapsedMs": 1500,
    }
    inference = {"provider": "openai", "requestedModel": "gpt-5", "resolvedModel": "gpt-5-2026"}
    thought = [{"type": "thinking", "thinking": word, "signature": ""} for word in ("Let ", "me ", "see")]
    messages = (
        message("user", text("go")),
        message("assistant", *thought),
        message("assistant", text("ok"), REQUEST, usage=usage, inference=inference),
        message("user", RESPONSE),
        message("assistant", text("done"), usage=usage),
        message("assistant", {"type": "error", "kind": "other", "message": "failed"}),
    )
    read = Read(GooseDatabaseReader(), database(tmp_path, {"a": {}}, *messages))
    first, second = read.of(ModelCalled)

    assert (first.usage, first.model) == (Usage(30, 9, 60, 10), "gpt-5-2026")
    assert (first.cost_dollars, first.latency_seconds) == (0.5, 1.5)
    assert second.usage == first.usage
    assert [content.text for content in read.of(ContentAdded) if content.content_type == "thinking"] == [
        "Let me see"
    ]
    assert read.problems == []


def test_a_summary_of_an_old_tool_call_replaces_it(tmp_path: Path) -> None:
    old = {"type": "toolRequest", "id": "t0", "toolCall": {"value": {"name": "shell"}}}
    found = {"type": "toolResponse", "id": "t0", "toolResult": {"value": {"content": [text("x")]}}}
    context = message("user", text("<context>"), **INJECTED, turnContext=True)
    messages = (
        message("user", text("go")),
        message("assistant", old, **HIDDEN),
        message("user", found, **HIDDEN),
        message("assistant", REQUEST),
        message("user", RESPONSE),
        context,
        message("user", text("a shell call found x"), **INJECTED),
        message("assistant", text("done")),
    )
    read = Read(GooseDatabaseReader(), database(tmp_path, {"a": {}}, *messages))

    assert [removed.keys for removed in read.of(ContentRemoved)] == [("m1", "m2")]
    assert read.order[-4:] == ["ContentRemoved", "memory_injection", "assistant_response", "ModelCalled"]
    assert read.order.count("memory_injection") == 2
    assert read.of(Compacted) == []


def test_an_exported_session_is_the_same_as_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    session = {"id": "a", "working_dir": "/work", "name": "Fix it", "conversation": list(TURN), "usage": {}}
    path.write_text(json.dumps(session))
    read = Read(reader_for(path, all_readers()), path)
    rows = Read(GooseDatabaseReader(), database(tmp_path, {"a": {"name": "Fix it"}}, *TURN))

    assert read.of(SessionOpened)[0].session_key == "a"
    assert read.records[1:] == rows.records[1:]


def test_rows_and_a_file_give_the_same_records(tmp_path: Path) -> None:
    read = read_rows(GooseLinesReader(), tmp_path, [{"working_dir": "/work"}, *TURN])
    rows = Read(GooseDatabaseReader(), database(tmp_path, {"transcript": {}}, *TURN))

    assert read.order == ["user_message", "assistant_response", "tool_call", "ModelCalled", "tool_result"]
    assert [r for r in read.records if not isinstance(r, SessionOpened)] == [
        r for r in rows.records if not isinstance(r, SessionOpened)
    ]
    assert reader_for(tmp_path / "transcript.jsonl", all_readers()).format == "goose"


def test_compactions_are_found_after_later_ones_too(tmp_path: Path) -> None:
    first = "Your context was compacted. The previous message contains a summary"
    second = "The previous message is a structured summary of the session so far, produced at the user's request"
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
    path = database(tmp_path, {"a": {}, "b": {}}, *TURN)
    result = CliRunner().invoke(main, ["import", str(path), "--store", str(tmp_path / "windowpane.db")])

    assert result.exit_code == 0, result.output
    assert "experimental" in result.stderr
    assert result.stderr.count("usage of single calls") == 1
    assert "2 sessions" in result.stdout


def test_damaged_rows_are_reported(tmp_path: Path) -> None:
    path = database(tmp_path, {"a": {}}, *TURN)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE messages SET content_json = '{' WHERE id = 1")
        connection.execute("UPDATE messages SET content_json = 7, metadata_json = x'ff' WHERE id = 2")
    read = Read(GooseDatabaseReader(), path)

    assert [problem.field for problem in read.problems][:2] == [
        "message 1.content_json",
        "message 2.content_json",
    ]
    assert read.order == ["tool_result"]
