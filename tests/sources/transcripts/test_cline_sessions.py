"""Sessions of Cline in the store that its program and its editor extensions share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from reads import Json, Read

from windowpane.cli import main
from windowpane.core.events import Usage
from windowpane.sources.installed_agents.locations import default_folders
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.cline.session_reader import ClineSessionReader
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    SessionDescribed,
    SessionOpened,
)

START = 1_785_701_064_000
MANIFEST = {
    "version": 1,
    "session_id": "1785701058566_vnwtz",
    "source": "cli",
    "started_at": "2026-08-02T20:04:18.566Z",
    "status": "completed",
    "provider": "cline-pass",
    "model": "glm-5.2",
    "cwd": "/work",
    "workspace_root": "/work",
    "metadata": {"title": "Fix the test"},
}
METRICS = {"inputTokens": 100, "outputTokens": 9, "cacheReadTokens": 60, "cacheWriteTokens": 10, "cost": 0.5}
CALL = {
    "type": "tool_use",
    "id": "own-1",
    "call_id": "call_abcdefghijklmnopqrst",
    "name": "read_files",
    "input": {},
}
RESULT = {"type": "tool_result", "tool_use_id": "own-1", "name": "read_files", "content": "found"}


def text(written: str) -> Json:
    return {"type": "text", "text": written}


def user(*blocks: Json | str, at: int = 0, **more: object) -> Json:
    return {"id": f"msg_{at}", "role": "user", "content": list(blocks), "ts": START + at * 1_000, **more}


def reply(*blocks: Json | str, at: int = 0, **more: object) -> Json:
    return user(*blocks, at=at, **more) | {"role": "assistant"}


class Session:
    """The folder of one session."""

    def __init__(self, tmp_path: Path, *messages: Json, key: str = "1785701058566_vnwtz", **more: object) -> None:
        self.key = key
        self.path = tmp_path / "sessions" / key
        self.path.mkdir(parents=True)
        self.write(".json", MANIFEST | {"session_id": key} | more)
        self.messages(key, *messages, agent="lead", system_prompt="You are Cline.")

    def write(self, suffix: str, value: object) -> None:
        (self.path / (self.key + suffix)).write_text(json.dumps(value))

    def messages(self, stem: str, *messages: Json, **more: object) -> None:
        document = {"version": 1, "updated_at": "2026-08-02T20:05:00Z", "sessionId": self.key, **more}
        (self.path / f"{stem}.messages.json").write_text(json.dumps(document | {"messages": list(messages)}))

    def read(self) -> Read:
        return Read(ClineSessionReader(), self.path)


TURN = (
    user(text('<user_input mode="act">go</user_input>')),
    reply({"type": "thinking", "thinking": "hm"}, CALL, at=1, metrics=METRICS, modelInfo={"id": "glm-5.3"}),
    user(RESULT, at=2),
    reply(text("done"), at=3, metrics=METRICS | {"cacheReadTokens": 0, "cacheWriteTokens": 0}),
)


def test_a_session_folder_is_one_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(tmp_path, *TURN)
    read = session.read()
    first, second = read.of(ModelCalled)
    monkeypatch.setenv("CLINE_DATA_DIR", str(tmp_path))

    assert list(files_of([tmp_path])) == [session.path]
    assert reader_for(session.path, all_readers()).format == "cline"
    assert reader_for(session.path / f"{session.key}.messages.json", all_readers()).format == "cline"
    assert session.path.parent in default_folders()
    assert (first.usage, first.cost_dollars, first.model) == (Usage(30, 9, 60, 10), 0.5, "glm-5.3")
    assert (second.usage, second.model) == (Usage(100, 9), "glm-5.2")
    assert read.order == [
        "system_prompt",
        "user_message",
        "thinking",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "assistant_response",
        "ModelCalled",
    ]
    assert {c.tool_call_id for c in read.of(ContentAdded)} == {None, "call_abcdefghijklmnopqrst"}
    assert read.of(SessionDescribed) == [SessionDescribed("Fix the test", folder="/work")]
    assert read.problems == []


def test_sub_agents_are_child_sessions(tmp_path: Path) -> None:
    spawned = reply(CALL, at=1, childSessions=[{"toolCallId": "own-1", "sessionId": "1785701058566_vnwtz__sub"}])
    session = Session(tmp_path, user(text("go")), spawned, user(RESULT, at=2))
    session.messages("sub", *TURN, agent="subagent", taskType="subagent_task")
    session.messages("ann__t1", *TURN, agent="teammate", taskType="team")
    read = session.read()

    assert [(opened.session_key, opened.agent, opened.parent_key) for opened in read.of(SessionOpened)] == [
        (session.key, "cline", None),
        (f"{session.key}__teamtask__ann__t1", "cline-agent", session.key),
        (f"{session.key}__sub", "cline-agent", session.key),
    ]
    (result,) = [c for c in read.of(ContentAdded) if c.content_type == "tool_result" and c.child_key]
    assert result.child_key == f"{session.key}__sub"
    assert len([call for call in read.of(ModelCalled) if call.usage]) == 4


def test_the_latest_compaction_is_in_a_file_beside(tmp_path: Path) -> None:
    session = Session(tmp_path, *TURN, user(text("more"), at=4))
    kind = {"kind": "compaction_summary", "tokensBefore": 900, "generatedAt": START + 3_500}
    sent = [user(text("Context summary: done"), metadata=kind), TURN[3] | {"id": "other"}]
    session.write(".compaction.json", {"version": 1, "source_message_count": 4, "messages": sent})
    read = session.read()
    (compacted,) = read.of(Compacted)

    assert (compacted.summary, compacted.kept_keys) == ("Context summary: done", ("m3",))
    assert compacted.at == START / 1_000 + 3.5
    assert read.order[-2:] == ["Compacted", "user_message"]
    assert read.stats.compactions == 1


def test_a_truncation_writes_no_summary(tmp_path: Path) -> None:
    session = Session(tmp_path, *TURN)
    state = {
        "version": 1,
        "updated_at": "2026-08-02T20:06:00Z",
        "source_message_count": 4,
        "messages": [*TURN[2:]],
    }
    session.write(".compaction.json", state)

    assert [removed.keys for removed in session.read().of(ContentRemoved)] == [("m0", "m1")]
    assert session.read().of(Compacted) == []


def test_sums_of_several_calls_are_not_the_usage_of_one(tmp_path: Path) -> None:
    """The last reply has the sum since the user's message if the provider states none of single calls."""
    first = {name: value for name, value in TURN[1].items() if name != "metrics"}
    read = Session(tmp_path, TURN[0], first, *TURN[2:]).read()

    assert [call.usage for call in read.of(ModelCalled)] == [None, None]
    assert ["usage" in str(problem) for problem in read.problems] == [True]


@pytest.mark.parametrize("origin", [None, (), (user(text("other"), at=4),)], ids=["absent", "ended", "continued"])
def test_calls_that_a_fork_repeats_count_once(tmp_path: Path, origin: tuple[Json, ...] | None) -> None:
    is_there = origin is not None
    if origin is not None:
        Session(tmp_path, *TURN, *origin, key="1_first")
    metadata = {"fork": {"forkedFromSessionId": "1_first"}}
    fork = Session(
        tmp_path, *TURN, user(text("more"), at=5), reply(text("ok"), metrics=METRICS), metadata=metadata
    )
    read = fork.read()

    assert len(read.of(ModelCalled)) == (1 if is_there else 3)
    assert len(read.of(ContentAdded)) == 8
    assert ["fork" in problem.field for problem in read.problems] == [True] * (not is_there)


def test_damaged_files_are_reported(tmp_path: Path) -> None:
    odd = (7, {"role": "tool"}, {"role": "error", "content": "x"}, user({"type": "novel"}, {"type": 7}), reply(7))
    session = Session(tmp_path, *odd)
    session.write(".compaction.json", [7])
    session.write(".json", 7)
    (session.path / "sub.messages.json").write_text("{")
    read = session.read()

    assert len(read.of(SessionOpened)) == 1
    assert [problem.field for problem in read.problems] == [
        "messages[0]",
        "messages[1].role",
        "content",
        "content",
        "",
        "",
    ]


def test_an_import_reads_the_store_without_complaints_of_its_index(tmp_path: Path) -> None:
    Session(tmp_path, *TURN)
    result = CliRunner().invoke(
        main, ["import", str(tmp_path / "sessions"), "--store", str(tmp_path / "windowpane.db")]
    )

    assert result.exit_code == 0, result.output
    assert "1 session" in result.stdout
    assert "experimental" in result.stderr
