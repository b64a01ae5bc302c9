"""Claude Code's traps, each with the few rows that show it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from windowpane.sources.base import (
    Broken,
    Cleared,
    Compacted,
    Content,
    FileStats,
    ModelCalled,
    Problem,
    Record,
    Removed,
    SessionOpened,
)
from windowpane.sources.claude_code import ClaudeCodeReader

MODEL = "claude-sonnet-4-5"
Json = dict[str, Any]


class Transcript:
    """Builds rows and reads them."""

    def __init__(self, session: str = "s") -> None:
        self._session = session
        self.rows: list[Json] = []

    def _row(self, kind: str, **more: Any) -> Transcript:
        number = len(self.rows)
        row = {
            "type": kind,
            "sessionId": self._session,
            "uuid": f"u{number}",
            "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        }
        self.rows.append(row | more)
        return self

    def user(self, content: Any, **more: Any) -> Transcript:
        return self._row("user", message={"role": "user", "content": content}, **more)

    def result(self, call_id: str, output: Any = "done", **more: Any) -> Transcript:
        return self.user([{"type": "tool_result", "tool_use_id": call_id, "content": output}], **more)

    def reply(self, message_id: str, *blocks: Json, stop: str | None = None, **more: Any) -> Transcript:
        model = more.pop("model", MODEL)
        usage = more.pop("usage", {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5})
        message = {
            "id": message_id,
            "role": "assistant",
            "model": model,
            "content": list(blocks),
            "usage": usage,
            "stop_reason": stop,
        }
        return self._row("assistant", message=message, **more)

    def system(self, subtype: str, **more: Any) -> Transcript:
        return self._row("system", subtype=subtype, **more)

    def other(self, kind: str, **more: Any) -> Transcript:
        return self._row(kind, **more)

    def read(self, tmp_path: Path, *, complete: bool = True, tail: bytes = b"") -> Read:
        path = tmp_path / "transcript.jsonl"
        path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in self.rows) + tail)
        return Read(path, complete=complete)


class Read:
    def __init__(self, path: Path, *, complete: bool = True) -> None:
        self.stats = FileStats()
        self.problems: list[Problem] = []
        reader = ClaudeCodeReader(complete=complete)
        self.records: list[Record] = list(reader.read(path, stats=self.stats, problems=self.problems))

    def of(self, *kinds: type[Record]) -> list[Any]:
        return [record for record in self.records if isinstance(record, kinds)]

    @property
    def order(self) -> list[str]:
        """Content types and other records in order, sessions left out."""
        return [
            record.content_type if isinstance(record, Content) else type(record).__name__
            for record in self.records
            if not isinstance(record, SessionOpened)
        ]


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def call(call_id: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": "a.py"}}


def usage(output: int, **more: int) -> Json:
    return {"input_tokens": 10, "output_tokens": output} | more


def test_lines_of_one_call_are_one_call(tmp_path: Path) -> None:
    """Repeated usage is counted once, with the largest of each figure, whatever stands between the lines."""
    read = (
        Transcript()
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


def test_open_call_of_a_growing_file_is_held_back(tmp_path: Path) -> None:
    """Neither a stop reason nor a tool result shows that all lines of a call are there; a user's message does."""
    started = Transcript().user("go").reply("m1", call("t1"), stop="tool_use").result("t1")

    assert not started.read(tmp_path, complete=False).of(ModelCalled)
    assert len(started.read(tmp_path, complete=True).of(ModelCalled)) == 1
    assert len(started.user("more").read(tmp_path, complete=False).of(ModelCalled)) == 1


def test_end_of_turn_rows_close_the_call(tmp_path: Path) -> None:
    """What Claude Code writes after a reply shows that it is whole."""
    read = Transcript().user("go").reply("m1", text("a")).system("turn_duration").read(tmp_path, complete=False)

    assert read.order == ["user_message", "assistant_response", "ModelCalled"]


def test_synthetic_rows_are_no_calls(tmp_path: Path) -> None:
    """Rows that Claude Code writes itself are counted as messages and are neither calls nor content."""
    read = Transcript().user("go").reply("m1", text("No response"), model="<synthetic>").read(tmp_path)

    assert read.order == ["user_message"]
    assert (read.stats.messages, read.stats.api_calls) == (2, 0)


def test_compaction_takes_its_summary_and_what_the_next_call_sends(tmp_path: Path) -> None:
    """Where the size afterwards is not recorded, it is the next call's, if nothing else came in."""
    read = (
        Transcript()
        .user("go")
        .reply("m1", text("a"))
        .system("compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 155_000})
        .user("the summary", isCompactSummary=True)
        .reply("m2", text("b"), usage=usage(5, cache_read_input_tokens=40_000))
        .read(tmp_path)
    )

    (compacted,) = read.of(Compacted)
    assert (compacted.trigger, compacted.tokens_before, compacted.tokens_after) == ("auto", 155_000, 40_010)
    assert compacted.summary == "the summary"
    assert read.order.index("Compacted") < read.order.index("ModelCalled", 3)
    assert read.stats.compactions == 1
    assert read.stats.user_turns == 1


def test_compaction_with_a_message_behind_it_has_no_size_afterwards(tmp_path: Path) -> None:
    """The next call then sends more than the compaction left."""
    read = (
        Transcript()
        .user("go")
        .reply("m1", text("a"))
        .system("compact_boundary", compactMetadata={"trigger": "manual", "preTokens": 1_000})
        .user("the summary", isCompactSummary=True)
        .user("next question")
        .reply("m2", text("b"))
        .read(tmp_path)
    )

    (compacted,) = read.of(Compacted)
    assert compacted.tokens_after is None
    assert read.order[-3:] == ["user_message", "assistant_response", "ModelCalled"]


def test_preserved_messages_are_kept(tmp_path: Path) -> None:
    """Newer releases name what a compaction kept, one by one or by the first and last of a segment."""
    named = {"trigger": "auto", "preTokens": 9, "postTokens": 4, "preservedMessages": {"allUuids": ["u1"]}}
    segment = {"trigger": "auto", "preTokens": 9, "preservedSegment": {"headUuid": "u1", "tailUuid": "u2"}}
    started = Transcript().user("a").user("b").user("c").user("d").reply("m", text("x"))

    started.system("compact_boundary", compactMetadata=named)
    (first,) = started.read(tmp_path).of(Compacted)
    started.system("compact_boundary", compactMetadata=segment)
    second = started.read(tmp_path).of(Compacted)[1]

    assert (first.kept_keys, first.tokens_after) == (("u1",), 4)
    assert second.kept_keys == ("u1", "u2")


def test_summary_without_a_boundary_is_a_compaction_of_what_came_before(tmp_path: Path) -> None:
    """Old releases write no boundary; at the start of a file a summary is only content."""
    started = Transcript().user("summary", isCompactSummary=True).user("go").reply("m1", text("a"))

    assert started.read(tmp_path).order[0] == "summary"
    assert len(started.user("new", isCompactSummary=True).read(tmp_path).of(Compacted)) == 1


def test_microcompaction_is_an_eviction_also_of_what_was_never_seen(tmp_path: Path) -> None:
    """Ids that are not in the file are passed on; the boundary's own count is what was freed."""
    details = {"trigger": "auto", "preTokens": 60_000, "tokensSaved": 21_000, "compactedToolIds": ["t1", "gone"]}
    read = (
        Transcript()
        .user("go")
        .reply("m1", call("t1"))
        .result("t1")
        .system("microcompact_boundary", microcompactMetadata=details)
        .read(tmp_path)
    )

    (removed,) = read.of(Removed)
    assert (removed.keys, removed.tokens_freed) == (("t1", "gone"), 21_000)
    assert read.stats.evictions == 2
    assert read.order.index("Removed") > read.order.index("tool_result")


def test_side_chains_are_child_sessions(tmp_path: Path) -> None:
    """Rows of a sub-agent belong to a session of their own, by agent id or by their chain."""
    read = (
        Transcript()
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


def test_agent_progress_repeats_are_not_content(tmp_path: Path) -> None:
    """Progress rows repeat a sub-agent's messages with usage and belong to no window."""
    message = {"type": "assistant", "message": {"id": "x", "usage": usage(9), "content": []}}
    read = (
        Transcript()
        .user("go")
        .other("progress", data={"type": "agent_progress", "message": message})
        .reply("m1", text("a"))
        .read(tmp_path)
    )

    assert read.stats.api_calls == 1
    assert read.stats.messages == 2


def test_two_sessions_in_one_file_are_told_apart(tmp_path: Path) -> None:
    """Each row goes to the session it names; what is not the file's own session is a fragment of one."""
    both = Transcript("a").user("one").reply("m1", text("x"))
    both.rows += Transcript("b").user("two").reply("m2", text("y")).rows
    both.rows[2]["uuid"], both.rows[3]["uuid"] = "v0", "v1"
    read = both.read(tmp_path)

    assert list(dict.fromkeys(record.session_key for record in read.of(SessionOpened))) == ["a", "b~a"]
    assert read.stats.sessions == 2


def test_clear_begins_an_empty_window(tmp_path: Path) -> None:
    """The command empties the window only where something was in it."""
    clear = "<command-name>/clear</command-name>"

    assert not Transcript().user(clear).reply("m", text("a")).read(tmp_path).of(Cleared)
    assert len(Transcript().user("a").reply("m", text("b")).user(clear).read(tmp_path).of(Cleared)) == 1


def test_row_written_again_is_used_once(tmp_path: Path) -> None:
    """A resumed session repeats rows; the same id with other content is remarked and used."""
    twice = Transcript().user("go", uuid="same").user("go", uuid="same", version="2").user("other", uuid="same")
    read = twice.read(tmp_path)

    assert [content.text for content in read.of(Content)] == ["go", "other"]
    assert read.stats.messages == 2
    assert [problem.field for problem in read.problems] == ["uuid", "uuid"]


def test_injected_content_is_told_from_what_the_user_wrote(tmp_path: Path) -> None:
    """Meta rows and attachments are injected; what is only shown to the user is not content."""
    read = (
        Transcript()
        .user("caveat", isMeta=True)
        .other("attachment", attachment={"type": "nested_memory", "content": {"content": "rules"}})
        .other("attachment", attachment={"type": "skill_listing", "content": "skills"})
        .other("attachment", attachment={"type": "hook_additional_context", "content": ["a", "b"]})
        .other("attachment", attachment={"type": "hook_system_message", "content": "shown"})
        .user("go")
        .reply("m1", text("a"))
        .read(tmp_path)
    )

    injected = [content.text for content in read.of(Content) if content.content_type == "memory_injection"]
    assert injected == ["caveat", "rules", "skills", "a\nb"]
    assert read.stats.user_turns == 1


def test_images_are_counted_and_not_read(tmp_path: Path) -> None:
    """An image is media, alone or in a tool result; hidden reasoning has no text."""
    image = {"type": "image", "source": {"data": "AAAA" * 1000}}
    read = (
        Transcript()
        .user([image, text("look")])
        .reply("m1", {"type": "redacted_thinking", "data": "x"}, {"type": "thinking", "thinking": ""}, call("t"))
        .result("t", [text("seen"), image])
        .read(tmp_path)
    )

    contents = read.of(Content)
    assert [(content.content_type, content.media) for content in contents if content.media] == [
        ("media", 1),
        ("tool_result", 1),
    ]
    assert [content.text for content in contents if content.content_type == "thinking"] == [None, None]
    assert read.stats.max_tool_output_chars == 4


def test_model_is_named_before_the_content_of_its_reply(tmp_path: Path) -> None:
    """A change of model is known before what the new one writes."""
    read = (
        Transcript()
        .user("go")
        .reply("m1", text("a"))
        .reply("m2", text("b"), model="claude-opus-4-5")
        .read(tmp_path)
    )

    opened = [(place, record) for place, record in enumerate(read.records) if isinstance(record, SessionOpened)]
    last, record = opened[-2] if opened[-1][1].model == opened[-2][1].model else opened[-1]
    assert record.model == "claude-opus-4-5"
    assert isinstance(read.records[last + 1], Content)


def test_lost_lines_break_the_session(tmp_path: Path) -> None:
    """A line that cannot be used is told with its number; the rest is read."""
    read = Transcript().user("go").reply("m1", text("a")).read(tmp_path, tail=b'{"type":"user", rubbish\n')

    (broken,) = read.of(Broken)
    assert broken.line == 3
    assert len(read.of(ModelCalled)) == 1


def test_unfinished_line_of_a_growing_file_is_not_a_break(tmp_path: Path) -> None:
    """The tool may be writing it; in a finished file it is a break."""
    started = Transcript().user("go").reply("m1", text("a"))

    assert not started.read(tmp_path, complete=False, tail=b'{"type":"us').of(Broken)
    assert len(started.read(tmp_path, complete=True, tail=b'{"type":"us').of(Broken)) == 1


def test_rows_out_of_order_are_reported(tmp_path: Path) -> None:
    """A time well before a row above it is remarked with its line."""
    read = (
        Transcript().user("a").user("b", timestamp="2025-01-01T00:00:00Z").reply("m1", text("x")).read(tmp_path)
    )

    assert [(problem.line, problem.field) for problem in read.problems] == [(2, "timestamp")]
    assert len(read.of(Content)) == 3


def test_impossible_usage_counts_as_nothing(tmp_path: Path) -> None:
    """Negative, fractional and textual counts are not tokens; a call without any has no usage."""
    odd = {"input_tokens": -5, "output_tokens": "7", "cache_read_input_tokens": 1.5}
    read = Transcript().user("go").reply("m1", text("a"), usage=odd).read(tmp_path)

    (called,) = read.of(ModelCalled)
    assert called.usage is None
    assert read.stats.peak_context == 0


def test_file_named_by_a_session_is_that_sessions(tmp_path: Path) -> None:
    """A resumed session begins with copied rows of an older one, which has a file of its own."""
    new = "0cd9edf7-459c-4900-af40-cf2c64dea525"
    both = Transcript("old").user("one")
    both.rows += Transcript(new).user("two", uuid="v").rows
    path = tmp_path / f"{new}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in both.rows))

    assert [record.session_key for record in Read(path).of(SessionOpened)] == [f"old~{new}", new]


def test_result_of_a_sub_agent_names_its_session(tmp_path: Path) -> None:
    """By the agent's id, once it has completed."""
    done = {"status": "completed", "agentId": "a7"}
    read = (
        Transcript()
        .user("go")
        .reply("m1", call("t1"), call("t2"))
        .result("t1", toolUseResult=done)
        .result("t2", toolUseResult=done | {"status": "async_launched"})
        .read(tmp_path)
    )

    results = [content for content in read.of(Content) if content.content_type == "tool_result"]
    assert [content.child_key for content in results] == ["s/agent-a7", None]


def test_what_is_held_back_for_a_files_age_is_said(tmp_path: Path) -> None:
    """A file just written holds its last call back and says so; the same file left alone does not."""
    Transcript().user("go").reply("m1", text("a")).read(tmp_path)
    path = tmp_path / "transcript.jsonl"
    problems: list[Problem] = []
    fresh = list(ClaudeCodeReader().read(path, stats=FileStats(), problems=problems))
    os.utime(path, (1_000_000_000, 1_000_000_000))
    idle = list(ClaudeCodeReader().read(path, stats=FileStats(), problems=problems))

    assert not any(isinstance(record, ModelCalled) for record in fresh)
    assert any(isinstance(record, ModelCalled) for record in idle)
    assert [(problem.severity, "held back" in problem.problem) for problem in problems] == [("odd", True)]
