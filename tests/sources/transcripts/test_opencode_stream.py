"""The events that `opencode run --format json` prints, in the form of release 1.18."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reads import Json, Read

from windowpane.core.events import Usage
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.opencode.stream import OpencodeStreamReader
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled, SessionOpened


def event(kind: str, at: int, message: str, *, session: str = "ses_1", **part: object) -> Json:
    stated = {
        "id": f"prt_{at}",
        "messageID": message,
        "sessionID": session,
        "type": kind.replace("_", "-"),
    } | part
    return {"type": kind, "timestamp": 1_790_616_253_000 + at, "sessionID": session, "part": stated}


def tokens(sent: int, generated: int, cached: int = 0) -> Json:
    return {
        "total": sent + generated + cached,
        "input": sent,
        "output": generated,
        "reasoning": 0,
        "cache": {"read": cached, "write": 0},
    }


def run(session: str = "ses_1") -> list[Json]:
    state = {"status": "completed", "input": {"filePath": "a"}, "output": "hello", "time": {"start": 1, "end": 2}}
    return [
        event("step_start", 1, "msg_1", session=session),
        event("tool_use", 2, "msg_1", session=session, type="tool", tool="read", callID="read:0", state=state),
        event(
            "step_finish",
            3,
            "msg_1",
            session=session,
            reason="tool-calls",
            tokens=tokens(53, 92, 16_960),
            cost=0.01,
        ),
        event("step_start", 4, "msg_2", session=session),
        event("text", 5, "msg_2", session=session, text="It says hello."),
        event("step_finish", 6, "msg_2", session=session, reason="stop", tokens=tokens(17_179, 41), cost=0.05),
    ]


def read(tmp_path: Path, rows: list[Json]) -> Read:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert isinstance(reader_for(path, all_readers()), OpencodeStreamReader)
    return Read(OpencodeStreamReader(), path)


def test_the_parts_of_each_message_are_one_call_with_its_usage_and_cost(tmp_path: Path) -> None:
    done = read(tmp_path, run())

    assert done.order == ["tool_call", "ModelCalled", "tool_result", "assistant_response", "ModelCalled"]
    assert [called.usage for called in done.of(ModelCalled)] == [Usage(53, 92, 16_960), Usage(17_179, 41)]
    assert [called.cost_dollars for called in done.of(ModelCalled)] == pytest.approx([0.01, 0.05])
    assert (done.stats.api_calls, done.stats.tool_calls, done.stats.usage["input"]) == (2, 1, 17_232)
    assert [problem.problem for problem in done.problems] == [
        "the recording does not state the messages of the user, nor the model"
    ]


def test_runs_that_were_appended_to_one_file_are_sessions_of_their_own(tmp_path: Path) -> None:
    done = read(tmp_path, [*run("ses_1"), {"type": "done"}, *run("ses_2")])

    assert [opened.session_key for opened in done.of(SessionOpened)] == ["ses_1", "ses_2"]
    assert (done.stats.sessions, done.stats.api_calls, done.stats.odd_lines) == (2, 4, 1)
    assert done.problems[0].line == 7


def test_a_run_that_failed_ends_with_a_call_without_usage(tmp_path: Path) -> None:
    failed = {
        "type": "error",
        "timestamp": 1_790_616_253_009,
        "sessionID": "ses_1",
        "error": {"name": "APIError"},
    }
    done = read(tmp_path, [*run()[:2], failed])

    (called,) = done.of(ModelCalled)
    assert (called.usage, called.stop_reason) == (None, "APIError")
    assert done.of(ContentAdded) == []
    assert done.stats.tool_calls == 1
