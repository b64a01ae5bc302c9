"""Sessions of opencode in the table of its newer releases, with every type of row and of content."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reads import Json, Read
from test_opencode_stores import SCHEMA

from windowpane.core.events import Usage
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.opencode.reader import OpencodeStorageReader
from windowpane.sources.transcripts.formats.opencode.session import OpencodeSession
from windowpane.sources.transcripts.formats.opencode.session_messages import SessionMessages
from windowpane.sources.transcripts.json_document import DocumentLog, JsonObject
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    SessionDescribed,
    SessionOpened,
)

TABLE = """CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
    seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)"""
START = 1_770_000_000_000
TOKENS = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 900, "write": 0}}


def tool(status: str, **more: Any) -> Json:
    state = {"status": status, "input": {"path": "a.py"}, "structured": {}, "content": []} | more.pop("state", {})
    time = {"created": START, "ran": START + 1, "completed": START + 2} | more.pop("time", {})
    return {"type": "tool", "id": "call_AbCdEfGhJkMnPqRsTuVw", "name": "read", "state": state, "time": time}


def step(*content: Json, **more: Any) -> tuple[str, Json]:
    model = {"id": "gpt-5.3-codex", "providerID": "openai"}
    stated = {"agent": "build", "model": model, "content": list(content), "tokens": TOKENS, "cost": 0.25}
    return "assistant", stated | {"finish": "stop", "time": {"created": START, "completed": START + 9}} | more


def at(kind: str, **data: Any) -> tuple[str, Json]:
    return kind, {"time": {"created": START}, **data}


PICTURE = {"type": "file", "mime": "image/png", "uri": "file:///x"}
WHOLE = [
    at("agent-switched", agent="plan"),
    at("model-switched", model={"id": "gpt-5.3-codex", "providerID": "openai"}),
    at("system", text="The date is today."),
    at("user", text="Read a.py", files=[{"uri": "file:///a.png", "mime": "image/png"}]),
    step(
        {"type": "reasoning", "id": "r", "text": "I should read it."},
        {"type": "text", "id": "t", "text": "Reading."},
        tool("completed", state={"content": [{"type": "text", "text": "print(1)"}, PICTURE]}),
    ),
    step(tool("error", state={"error": {"type": "unknown", "message": "no such file"}})),
    step(tool("running"), tool("pending", state={"input": "{"})),
    at("shell", callID="c", command="ls", output="a.py"),
    at("synthetic", text="A file changed.", sessionID="ses_1"),
    step(tool("completed", state={"content": [{"type": "text", "text": "old"}]}, time={"pruned": START + 50})),
    at(
        "compaction",
        reason="auto",
        summary="They read a file.",
        recent="user: Read a.py",
        time={"created": START + 99},
    ),
    at("user", text="And now?"),
    step({"type": "text", "id": "t", "text": "Done."}, error={"type": "aborted", "message": "by the user"}),
    at("from-the-future", text="?"),
    at("from-the-future", text="?"),
]


def database(folder: Path, rows: list[tuple[str, Any]], *, old_tables: bool = True) -> Path:
    path = folder / "opencode.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(SCHEMA + TABLE)
        values = ("ses_1", "p", None, "slug", "/work", "Fix it", "1.9.0", None, START, START)
        connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        for number, (kind, data) in enumerate(rows):
            row = (f"m{len(rows) - number:03}", "ses_1", kind, number, START, START, json.dumps(data))
            connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if not old_tables:
            connection.executescript("DROP TABLE message; DROP TABLE part")
    return path


SECOND = """CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text,
    directory text NOT NULL, title text, version text NOT NULL, cost real, revert text,
    time_created integer NOT NULL, time_updated integer NOT NULL, fork_session_id text)"""


def second(path: Path, key: str, *, drop: bool) -> None:
    """Add what release 2 adds: its own table of sessions, beside the earlier ones or in place of them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(SECOND)
        values = (key, "p", "ses_0", "slug", "/new", "New title", "2.0.12", 0.5, None, START, START + 50, None)
        connection.execute("INSERT INTO session_v2 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        if drop:
            connection.executescript("DROP TABLE session; DROP TABLE message; DROP TABLE part")


@pytest.mark.parametrize("drop", [True, False])
def test_release_2_has_another_table_of_sessions(tmp_path: Path, *, drop: bool) -> None:
    path = database(tmp_path, WHOLE)
    if not drop:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            old = json.dumps({"role": "user", "time": {"created": START}})
            for key in ("ses_1", "ses_old"):
                values = (key, "p", None, "slug", "/old", "Old title", "1.9.0", None, START - 9, START - 9)
                connection.execute("INSERT OR IGNORE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
                columns = "(id, session_id, time_created, time_updated, data)"
                row = (f"m_{key}", key, START - 9, START - 9, old)
                connection.execute(f"INSERT INTO message {columns} VALUES (?, ?, ?, ?, ?)", row)
    second(path, "ses_1", drop=drop)
    reader = reader_for(path, all_readers(complete=True))
    read = Read(reader, path)
    opened = {one.session_key: one for one in read.of(SessionOpened)}
    (described,) = [one for one in read.of(SessionDescribed) if one.title == "New title"]

    assert set(opened) == ({"ses_1"} if drop else {"ses_1", "ses_old"})
    assert (opened["ses_1"].parent_key, described.folder, described.agent_version) == ("ses_0", "/new", "2.0.12")
    assert len(read.of(ModelCalled)) == 7
    assert len(read.of(Compacted)) == 1


@pytest.mark.parametrize("old_tables", [True, False])
def test_a_session_in_the_newer_table_is_read(tmp_path: Path, *, old_tables: bool) -> None:
    path = database(tmp_path, WHOLE, old_tables=old_tables)
    read = Read(reader_for(path, all_readers(complete=True)), path)

    assert [(one.content_type, one.text) for one in read.of(ContentAdded)] == [
        ("memory_injection", "The date is today."),
        ("user_message", "Read a.py"), ("media", None),
        ("thinking", "I should read it."), ("assistant_response", "Reading."),
        ("tool_call", '{"path": "a.py"}'), ("tool_result", "print(1)"),
        ("tool_call", '{"path": "a.py"}'), ("tool_result", "no such file"),
        ("tool_call", '{"path": "a.py"}'), ("tool_call", '"{"'),
        ("tool_result", "[Tool execution was interrupted]"), ("tool_result", "[Tool execution was interrupted]"),
        ("memory_injection", "ls\na.py"), ("memory_injection", "A file changed."),
        ("tool_call", '{"path": "a.py"}'), ("tool_result", "old"),
        ("user_message", "And now?"),
    ]  # fmt: skip
    calls = read.of(ModelCalled)
    assert [call.usage for call in calls[:4]] == [Usage(100, 20, 900, reasoning_tokens=5)] * 4
    assert [call.cost_dollars for call in calls[:4]] == [0.25] * 4
    (compacted,) = read.of(Compacted)
    assert (compacted.trigger, compacted.summary) == ("auto", "They read a file.\n\nuser: Read a.py")
    assert len(read.of(ContentRemoved)) == 1
    assert sum("from-the-future" in problem.problem for problem in read.problems) == 1


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "time",
    "text",
    "content",
    "tokens",
    "model",
    "state",
    "error",
    "files",
    "summary",
    "input",
    "status",
    "id",
)


def damaged(value: Any, draw: st.DrawFn) -> Any:
    """Replace some values at any depth by others of any type."""
    if draw(st.integers(0, 9)) == 0:
        return draw(ANYTHING)
    if isinstance(value, dict):
        return {name: damaged(item, draw) for name, item in value.items() if draw(st.integers(0, 15))}
    return [damaged(item, draw) for item in value] if isinstance(value, list) else value


@st.composite
def damaged_rows(draw: st.DrawFn) -> list[tuple[str, Any]]:
    return [(kind, damaged(data, draw)) for kind, data in WHOLE if draw(st.booleans())]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=damaged_rows())
def test_rows_of_any_shape_are_read_as_far_as_they_go(tmp_path: Path, rows: list[tuple[str, Any]]) -> None:
    log = DocumentLog(tmp_path / "opencode.db", FileStats(), [])
    converted = SessionMessages(log)
    messages = [
        message
        for number, (kind, data) in enumerate(rows)
        for message in converted.message(f"m{number}", kind, data if isinstance(data, dict) else {})
    ]

    info = JsonObject({"id": "ses_1"}, "session ses_1", log)
    records = list(OpencodeSession(FileStats(), complete=True).read(info, messages))

    assert isinstance(records[0], SessionOpened)


def test_a_session_of_the_first_releases_is_read(tmp_path: Path) -> None:
    storage = tmp_path / "storage" / "session"
    asked = {"id": "msg_1", "role": "user", "parts": [{"type": "text", "text": "Read a.py"}],
             "metadata": {"sessionID": "ses_1", "time": {"created": START}, "tool": {}}}  # fmt: skip
    call = {
        "state": "result",
        "toolCallId": "toolu_1",
        "toolName": "read",
        "args": {"a": 1},
        "result": "print(1)",
    }
    answer = {"id": "msg_2", "role": "assistant",
              "parts": [{"type": "step-start"}, {"type": "tool-invocation", "toolInvocation": call}],
              "metadata": {"time": {"created": START, "completed": START + 5}, "tool": {},
                           "assistant": {"system": ["Be brief."], "modelID": "claude-sonnet-4-20250514",
                                         "tokens": TOKENS, "cost": 0.5}}}  # fmt: skip
    later = {"id": "msg_3", "role": "assistant", "modelID": "m", "time": {"created": START, "completed": START}}
    for path, value in {
        "info/ses_1.json": {"id": "ses_1", "title": "Read it", "time": {"created": START}},
        "message/ses_1/msg_1.json": asked, "message/ses_1/msg_2.json": answer, "message/ses_1/msg_3.json": later,
        "part/ses_1/msg_3/prt_1.json": {"type": "text", "text": "It prints."},
    }.items():  # fmt: skip
        (storage / path).parent.mkdir(parents=True, exist_ok=True)
        (storage / path).write_text(json.dumps(value))

    read = Read(OpencodeStorageReader(complete=True), storage / "message" / "ses_1")

    texts = [content.text for content in read.of(ContentAdded)]
    assert texts == ["Read a.py", '{"a": 1}', "print(1)", "It prints."]
    assert read.of(ModelCalled)[0].usage == Usage(100, 20, 900, reasoning_tokens=5)
    assert read.of(ModelCalled)[0].cost_dollars == 0.5
    assert read.problems == []
