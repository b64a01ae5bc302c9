"""Claude Code's traps, each with the few rows that show it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from reads import Read

from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import (
    Broken,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    ModelCalled,
    SessionOpened,
)

Json = dict[str, Any]
MakeTranscript = Callable[..., Any]
ReadTranscript = Callable[[Path], Any]


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def call(call_id: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": "a.py"}}


def usage(output: int, **more: int) -> Json:
    return {"input_tokens": 10, "output_tokens": output} | more


def test_lines_of_one_call_are_one_call(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .user("go")
        .reply("m1", text("a"), usage=usage(1))
        .reply("m1", call("t1"), usage=usage(1))
        .result("t1")
        .reply("m1", call("t2"), usage=usage(40))
        .result("t2")
        .reply("m2", text("b"), usage=usage(7))
        .read(tmp_path)
    )

    assert [record.usage.output_tokens for record in read.of(ModelCalled)] == [40, 7]
    assert read.stats.usage["output_tokens"] == 47
    assert read.order == [
        "user_message",
        "assistant_response",
        "tool_call",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "tool_result",
        "assistant_response",
        "ModelCalled",
    ]


def test_a_call_of_several_runs_is_billed_whole_and_its_last_run_is_the_window(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    """A call with the provider's own tools: its usage is the sum of its runs, more than the window holds."""
    runs = [{**usage(1_171, cache_read_input_tokens=109_972), "type": "message"},
            {**usage(14_153), "type": "advisor_message"},
            {**usage(397, cache_read_input_tokens=113_148), "type": "message"}]  # fmt: skip
    total = {"input_tokens": 20, "output_tokens": 1_568, "cache_read_input_tokens": 223_120}
    stated = {**total, "iterations": runs}
    read = transcript().user("go").reply("m1", text("a"), usage=stated).read(tmp_path)

    (called,) = read.of(ModelCalled)
    assert (called.usage.input_total, called.window_tokens) == (223_140, 113_158)
    assert read.stats.peak_context == 113_158


def test_open_call_of_a_growing_file_is_held_back(tmp_path: Path, transcript: MakeTranscript) -> None:
    started = transcript().user("go").reply("m1", call("t1"), stop="tool_use").result("t1")

    assert not started.read(tmp_path, complete=False).of(ModelCalled)
    assert len(started.read(tmp_path, complete=True).of(ModelCalled)) == 1
    assert len(started.user("more").read(tmp_path, complete=False).of(ModelCalled)) == 1


@pytest.mark.parametrize("version", ["2.1.332", "2.2.0", "2.1.333-beta.1"])
def test_a_release_that_writes_whole_messages_has_its_last_call_counted(
    version: str, tmp_path: Path, transcript: MakeTranscript
) -> None:
    started = transcript(version=version).user("go").reply("m1", call("t1"), stop="tool_use")

    assert not started.read(tmp_path, complete=False).of(ModelCalled)
    assert len(started.result("t1").read(tmp_path, complete=False).of(ModelCalled)) == 1
    started.reply("m2", {"type": "thinking", "thinking": "so"}, stop="end_turn")
    assert len(started.read(tmp_path, complete=False).of(ModelCalled)) == 1
    read = started.reply("m2", text("done"), stop="end_turn").read(tmp_path, complete=False)
    assert len(read.of(ModelCalled)) == 2
    assert not read.problems


def test_a_last_call_of_an_earlier_release_is_held_back(tmp_path: Path, transcript: MakeTranscript) -> None:
    ended = transcript(version="2.1.331").user("go").reply("m1", text("done"), stop="end_turn")

    assert not ended.read(tmp_path, complete=False).of(ModelCalled)


def test_end_of_turn_rows_close_the_call(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = transcript().user("go").reply("m1", text("a")).system("turn_duration").read(tmp_path, complete=False)

    assert read.order == ["user_message", "assistant_response", "ModelCalled"]


def test_synthetic_rows_are_not_calls(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = transcript().user("go").reply("m1", text("No response"), model="<synthetic>").read(tmp_path)

    assert read.order == ["user_message"]
    assert (read.stats.messages, read.stats.api_calls) == (2, 0)


def test_side_chains_are_child_sessions(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .user("go")
        .reply("m1", call("t1"))
        .user("subtask", isSidechain=True, uuid="side", parentUuid=None)
        .reply("m2", text("sub"), isSidechain=True, parentUuid="side")
        .user("other", isSidechain=True, agentId="a7")
        .result("t1")
        .reply("m3", text("end"))
        .read(tmp_path)
    )

    opened = {record.session_key: record.parent_key for record in read.of(SessionOpened)}
    assert opened == {"s": None, "s/side-side": "s", "s/agent-a7": "s"}
    assert read.stats.sessions == 3


def test_agent_progress_repeats_are_not_content(tmp_path: Path, transcript: MakeTranscript) -> None:
    message = {"type": "assistant", "message": {"id": "x", "usage": usage(9), "content": []}}
    read = (
        transcript()
        .user("go")
        .other("progress", data={"type": "agent_progress", "message": message})
        .reply("m1", text("a"))
        .read(tmp_path)
    )

    assert read.stats.api_calls == 1
    assert read.stats.messages == 2


def test_two_sessions_in_one_file_are_separated(tmp_path: Path, transcript: MakeTranscript) -> None:
    both = transcript("a").user("one").reply("m1", text("x"))
    both.rows += transcript("b").user("two").reply("m2", text("y")).rows
    both.rows[2]["uuid"], both.rows[3]["uuid"] = "v0", "v1"
    read = both.read(tmp_path)

    assert list(dict.fromkeys(record.session_key for record in read.of(SessionOpened))) == ["a", "b~a"]
    assert read.stats.sessions == 2


def test_row_written_again_is_used_once(tmp_path: Path, transcript: MakeTranscript) -> None:
    twice = transcript().user("go", uuid="same").user("go", uuid="same", version="2").user("other", uuid="same")
    read = twice.read(tmp_path)

    assert [content.text for content in read.of(ContentAdded)] == ["go", "other"]
    assert read.stats.messages == 2
    assert [problem.field for problem in read.problems] == ["uuid", "uuid"]


def test_injected_content_is_distinguished_from_the_user_s_text(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    read = (
        transcript()
        .user("caveat", isMeta=True)
        .other("attachment", attachment={"type": "nested_memory", "content": {"content": "rules"}})
        .other("attachment", attachment={"type": "skill_listing", "content": "skills"})
        .other("attachment", attachment={"type": "hook_additional_context", "content": ["a", "b"]})
        .other("attachment", attachment={"type": "hook_system_message", "content": "shown"})
        .user("go")
        .reply("m1", text("a"))
        .read(tmp_path)
    )

    injected = [content.text for content in read.of(ContentAdded) if content.content_type == "memory_injection"]
    assert injected == ["caveat", "rules", "skills", "a\nb"]
    assert read.stats.user_turns == 1


def test_images_are_counted_and_not_read(tmp_path: Path, transcript: MakeTranscript) -> None:
    image = {"type": "image", "source": {"data": "AAAA" * 1000}}
    read = (
        transcript()
        .user([image, text("look")])
        .reply("m1", {"type": "redacted_thinking", "data": "x"}, {"type": "thinking", "thinking": ""}, call("t"))
        .result("t", [text("seen"), image])
        .read(tmp_path)
    )

    contents = read.of(ContentAdded)
    assert [(content.content_type, content.media) for content in contents if content.media] == [
        ("media", 1),
        ("tool_result", 1),
    ]
    assert [content.text for content in contents if content.content_type == "thinking"] == [None, None]
    assert read.stats.max_tool_output_chars == 4


def test_model_is_named_before_the_content_of_its_reply(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .user("go")
        .reply("m1", text("a"))
        .reply("m2", text("b"), model="claude-opus-4-5")
        .read(tmp_path)
    )

    opened = [(place, record) for place, record in enumerate(read.records) if isinstance(record, SessionOpened)]
    last, record = opened[-2] if opened[-1][1].model == opened[-2][1].model else opened[-1]
    assert record.model == "claude-opus-4-5"
    assert isinstance(read.records[last + 1], ContentAdded)


def test_lost_lines_break_the_session(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = transcript().user("go").reply("m1", text("a")).read(tmp_path, tail=b'{"type":"user", rubbish\n')

    (broken,) = read.of(Broken)
    assert broken.line == 3
    assert len(read.of(ModelCalled)) == 1


def test_unfinished_line_of_a_growing_file_is_not_a_break(tmp_path: Path, transcript: MakeTranscript) -> None:
    started = transcript().user("go").reply("m1", text("a"))

    assert not started.read(tmp_path, complete=False, tail=b'{"type":"us').of(Broken)
    assert len(started.read(tmp_path, complete=True, tail=b'{"type":"us').of(Broken)) == 1


def test_rows_out_of_order_are_reported(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript().user("a").user("b", timestamp="2025-01-01T00:00:00Z").reply("m1", text("x")).read(tmp_path)
    )

    assert [(problem.line, problem.field) for problem in read.problems] == [(2, "timestamp")]
    assert len(read.of(ContentAdded)) == 3


def test_impossible_usage_counts_as_nothing(tmp_path: Path, transcript: MakeTranscript) -> None:
    odd = {"input_tokens": -5, "output_tokens": "7", "cache_read_input_tokens": 1.5}
    read = transcript().user("go").reply("m1", text("a"), usage=odd).read(tmp_path)

    (called,) = read.of(ModelCalled)
    assert called.usage is None
    assert read.stats.peak_context == 0


def test_file_named_by_a_session_is_that_sessions(
    tmp_path: Path, transcript: MakeTranscript, read_transcript: ReadTranscript
) -> None:
    new = "0cd9edf7-459c-4900-af40-cf2c64dea525"
    both = transcript("old").user("one")
    both.rows += transcript(new).user("two", uuid="v").rows
    path = tmp_path / f"{new}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in both.rows))

    assert [record.session_key for record in read_transcript(path).of(SessionOpened)] == [f"old~{new}", new]


def test_result_of_a_sub_agent_names_its_session(tmp_path: Path, transcript: MakeTranscript) -> None:
    done = {"status": "completed", "agentId": "a7"}
    read = (
        transcript()
        .user("go")
        .reply("m1", call("t1"), call("t2"))
        .result("t1", toolUseResult=done)
        .result("t2", toolUseResult=done | {"status": "async_launched"})
        .read(tmp_path)
    )

    results = [content for content in read.of(ContentAdded) if content.content_type == "tool_result"]
    assert [content.child_key for content in results] == ["s/agent-a7", None]


def test_rows_held_back_for_a_file_s_age_are_reported(tmp_path: Path, transcript: MakeTranscript) -> None:
    now = datetime.now(UTC).isoformat()
    transcript().user("go").reply("m1", text("a"), timestamp=now).read(tmp_path)
    path = tmp_path / "transcript.jsonl"
    problems: list[Problem] = []
    fresh = list(ClaudeCodeReader().read(path, stats=FileStats(), problems=problems))
    os.utime(path, (1_000_000_000, 1_000_000_000))
    idle = list(ClaudeCodeReader().read(path, stats=FileStats(), problems=problems))

    assert not any(isinstance(record, ModelCalled) for record in fresh)
    assert any(isinstance(record, ModelCalled) for record in idle)
    assert [(problem.severity, "held back" in problem.problem) for problem in problems] == [("odd", True)]


def test_a_new_copy_of_a_finished_session_is_finished(tmp_path: Path, transcript: MakeTranscript) -> None:
    transcript().user("go").reply("m1", text("a")).read(tmp_path)
    problems: list[Problem] = []
    copied = list(ClaudeCodeReader().read(tmp_path / "transcript.jsonl", stats=FileStats(), problems=problems))

    assert any(isinstance(record, ModelCalled) for record in copied)
    assert not problems


def test_the_release_of_claude_code_opens_the_session_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    rows = [
        {"type": "user", "uuid": f"u{n}", "sessionId": "s", "version": version, "message": {"content": "go"}}
        for n, version in enumerate(("2.1.20", "2.1.20", "2.1.21"))
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    records = ClaudeCodeReader(complete=True).read(path, stats=FileStats(), problems=[])

    assert [one.agent_version for one in records if isinstance(one, SessionOpened)] == ["2.1.20", "2.1.21"]


def test_rows_beside_the_conversation_are_known_or_reported_once(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    rows = transcript().user("go").other("cost-state", totalCostUSD=0.12).other("bridge-session").other("novelty")
    read = rows.other("novelty").reply("m1", text("a")).read(tmp_path)

    assert read.order == ["user_message", "assistant_response", "ModelCalled"]
    assert [problem.problem for problem in read.problems] == ["rows of the unknown type 'novelty' are skipped"]


def test_the_names_by_which_the_cost_is_counted_name_the_variant(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    for number, (names, sizes) in enumerate(
        (
            (("claude-opus-5[1m]", "claude-haiku-4-5"), [1_000_000]),
            (("claude-opus-5", "claude-opus-5[1m]"), []),
            (("claude-sonnet-5[1m]",), []),
        )
    ):
        rows = transcript(f"s{number}").user("go").reply("m1", text("a"), model="claude-opus-5")
        read = rows.other("cost-state", modelUsage={name: {} for name in names}).read(tmp_path)

        assert [one.limit_tokens for one in read.of(LimitStated)] == sizes


def test_the_newest_row_of_a_model_names_the_variant(tmp_path: Path, transcript: MakeTranscript) -> None:
    rows = transcript().user("go")
    for name in ("claude-opus-5[1m]", "claude-opus-5[1m]", "claude-haiku-4-5"):
        rows.other("attachment", attachment={"type": "model", "identity": {"modelId": name}})
    read = rows.read(tmp_path)

    assert [one.limit_tokens for one in read.of(LimitStated)] == [1_000_000, None]


def test_a_file_of_bookkeeping_alone_holds_no_session(tmp_path: Path) -> None:
    path = tmp_path / "0e9677a5-8813-4800-8b8b-e786d701c097.jsonl"
    path.write_text(
        '{"type":"history-suppression","sessionId":"s","cause":"fork_inherit","ts":"2026-08-26T17:32:07.036Z"}\n'
    )
    read = Read(reader_for(path, all_readers(complete=True)), path)

    assert (read.records, read.problems, read.stats.sessions) == ([], [], 0)


def test_a_conversation_that_went_on_in_the_background_is_reported_as_a_copy(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    inherited = transcript().other("history-suppression", cause="fork_inherit").user("go").reply("m1", text("a"))
    read = inherited.read(tmp_path)

    assert [problem.problem for problem in read.problems] == [
        "a fork of another session, whose file is not named: the calls it repeats count here too"
    ]


def test_messages_that_were_snipped_are_removed(tmp_path: Path, transcript: MakeTranscript) -> None:
    started = transcript().user("go", uuid="first").reply("m1", text("a"))
    read = started.system("snip_boundary", snipMetadata={"removedUuids": ["first"]}).user("more").read(tmp_path)

    assert read.order == ["user_message", "assistant_response", "ModelCalled", "ContentRemoved", "user_message"]
    assert [removed.keys for removed in read.of(ContentRemoved)] == [("first",)]
    assert read.stats.evictions == 1
