"""Tasks of Cline and Roo Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read

from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.cline.reader import ClineReader
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    SessionDescribed,
    SessionOpened,
)

START = 1_770_000_000_000


def user(number: int, *blocks: Any, **more: Any) -> Json:
    return {"role": "user", "content": list(blocks), "ts": START + number * 1_000, **more}


def reply(number: int, *blocks: Any, **more: Any) -> Json:
    return user(number, *blocks, **more) | {"role": "assistant"}


def text(written: str) -> Json:
    return {"type": "text", "text": written}


def request(number: int, *, index: int | None = None, **tokens: Any) -> Json:
    shown = {"ts": START + number * 1_000, "type": "say", "say": "api_req_started", "text": json.dumps(tokens)}
    return shown if index is None else shown | {"conversationHistoryIndex": index}


class Folder:
    """The folder of one task."""

    def __init__(self, tmp_path: Path, *messages: Json) -> None:
        self.path = tmp_path / "saoudrizwan.claude-dev" / "tasks" / "1770000000000"
        self.path.mkdir(parents=True)
        self.write("api_conversation_history.json", list(messages))

    def write(self, name: str, value: object) -> Folder:
        (self.path / name).write_text(json.dumps(value))
        return self

    def read(self) -> Read:
        return Read(ClineReader(), self.path)


QUESTION = user(0, text("<task>go</task>"), text("<environment_details>\n<model>claude-x</model>"))
CALL = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text("done")]}


def test_a_task_folder_is_one_recording(tmp_path: Path) -> None:
    folder = Folder(tmp_path, QUESTION, reply(2, CALL), user(3, RESULT), reply(5, text("ok")))
    folder.write("ui_messages.json", [request(1, index=-1, tokensIn=10, tokensOut=5, cacheReads=90, cost=0.5)])
    read = folder.read()

    assert list(files_of([tmp_path])) == [folder.path]
    assert reader_for(folder.path, all_readers()).format == "cline"
    assert reader_for(folder.path / "api_conversation_history.json", all_readers()).format == "cline"
    assert read.order == [
        "user_message",
        "memory_injection",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "assistant_response",
        "ModelCalled",
    ]
    first, second = read.of(ModelCalled)
    assert (first.usage.input_total, first.cost_dollars, first.model) == (100, 0.5, "claude-x")
    assert second.usage is None
    assert [problem.field for problem in read.problems] == ["ui_messages.json"]


@pytest.mark.parametrize(
    ("protocol", "reads", "total"), [({}, 90, 190), ({"apiProtocol": "openai"}, 90, 100)], ids=["own", "openai"]
)
def test_the_input_is_counted_as_the_agent_counts_it(
    tmp_path: Path, protocol: Json, reads: int, total: int
) -> None:
    folder = Folder(tmp_path, QUESTION, reply(2, text("ok")))
    folder.write("ui_messages.json", [request(1, tokensIn=100, tokensOut=5, cacheReads=reads, **protocol)])

    assert folder.read().of(ModelCalled)[0].usage.input_total == total


def test_a_failed_request_is_not_the_call_of_the_next_reply(tmp_path: Path) -> None:
    folder = Folder(tmp_path, QUESTION, reply(4, text("ok")))
    folder.write("ui_messages.json", [request(1, tokensIn=0), request(2, tokensIn=70, tokensOut=1)])

    assert [call.usage.input_total for call in folder.read().of(ModelCalled)] == [70]


def test_a_condensation_retains_what_it_did_not_replace(tmp_path: Path) -> None:
    summary = reply(4, text("we did it"), isSummary=True, condenseId="c1")
    folder = Folder(
        tmp_path, user(0, text("keep")), reply(1, text("ok"), condenseParent="c1"), summary, user(5, text("more"))
    )
    shown = {"say": "condense_context", "contextCondense": {"prevContextTokens": 900, "newContextTokens": 90}}
    folder.write("ui_messages.json", [shown])
    (compacted,) = folder.read().of(Compacted)

    assert (compacted.tokens_before, compacted.tokens_after, compacted.summary) == (900, 90, "we did it")
    assert compacted.kept_keys == ("m0.0",)


def test_truncated_messages_leave_the_window(tmp_path: Path) -> None:
    marker = user(3, text("[truncated]"), isTruncationMarker=True, truncationId="t1")
    marked = Folder(tmp_path / "roo", QUESTION, reply(1, text("ok"), truncationParent="t1"), marker)
    ranged = Folder(
        tmp_path / "cline",
        QUESTION,
        reply(1, text("a")),
        user(2, text("b")),
        reply(3, text("c")),
        user(4, text("d")),
    )
    shown = [request(9, index=3) | {"conversationHistoryDeletedRange": [1, 2]} for _ in range(2)]
    ranged.write("ui_messages.json", shown)

    assert [removed.keys for removed in marked.read().of(ContentRemoved)] == [("m1.0",)]
    assert [removed.keys for removed in ranged.read().of(ContentRemoved)] == [("m1.0", "m2.0")]
    assert ranged.read().order.index("ContentRemoved") == 7


def test_the_second_version_of_the_messages_is_read(tmp_path: Path) -> None:
    call = {"type": "tool-call", "toolCallId": "t1", "toolName": "read_file", "input": {"path": "a"}}
    output = {"type": "content", "value": [text("done"), {"type": "media", "data": ""}]}
    result = {"type": "tool-result", "toolCallId": "t1", "toolName": "read_file", "output": output}
    plain = {"type": "tool-result", "toolCallId": "t1", "output": {"type": "text", "value": "more"}}
    folder = Folder(tmp_path)
    messages = [
        QUESTION,
        reply(1, {"type": "reasoning", "text": "hm"}, call),
        user(2, result, plain) | {"role": "tool"},
    ]
    folder.write("api_conversation_history.json", {"version": 2, "messages": messages})
    read = folder.read()

    assert reader_for(folder.path / "api_conversation_history.json", all_readers()).format == "cline"
    assert read.order[2:] == ["thinking", "tool_call", "ModelCalled", "tool_result", "tool_result"]
    assert [(c.text, c.tool_name, c.media) for c in read.of(ContentAdded)[-2:]] == [
        ("done", "read_file", 1),
        ("more", "read_file", 0),
    ]


def test_forks_of_the_extension_are_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path, QUESTION)
    folder.write("history_item.json", {"workspace": "/work"})
    moved = tmp_path / "zoocodeorganization.zoo-code"
    (tmp_path / "saoudrizwan.claude-dev").rename(moved)
    read = Read(ClineReader(), moved / "tasks" / "1770000000000")

    assert [opened.agent for opened in read.of(SessionOpened)] == ["zoo-code"]


def test_a_sub_task_is_a_child_and_names_its_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path, QUESTION)
    folder.write("history_item.json", {"parentTaskId": "root", "workspace": "/work", "title": "Fix"})
    folder.write("task_metadata.json", {"environment_history": [{"cline_version": "3.40"}]})
    (opened,) = folder.read().of(SessionOpened)

    assert (opened.agent, opened.parent_key, opened.agent_version) == ("roo-code", "root", "3.40")
    assert folder.read().of(SessionDescribed) == [SessionDescribed("Fix", "user", folder="/work")]


@pytest.mark.parametrize(
    "value", [None, 7, "x", {}, [7], [{"content": 7}], [{"say": "api_req_started", "text": 7}]]
)
def test_wrong_types_are_skipped(tmp_path: Path, value: object) -> None:
    folder = Folder(tmp_path, QUESTION, {"role": 7}, reply(1, 7, {"type": 7}, {"type": "tool_use", "id": 7}))
    for name in ("ui_messages.json", "task_metadata.json", "history_item.json"):
        folder.write(name, value)

    assert len(folder.read().of(ContentAdded)) == 3


def test_tasks_of_2024_state_the_usage_when_a_request_ends(tmp_path: Path) -> None:
    messages = [QUESTION, reply(2, CALL), user(3, RESULT), reply(5, text("ok"))]
    folder = Folder(tmp_path, *({"role": one["role"], "content": one["content"]} for one in messages))
    ended = {"ts": START, "type": "say", "say": "api_req_finished"}
    first = json.dumps({"tokensIn": 10, "tokensOut": 4, "cacheReads": 3, "cacheWrites": 2, "cost": 0.25})
    second = json.dumps({"tokensIn": 20, "tokensOut": 5, "cost": 0.5})
    shown = [
        request(1, request="go"),
        ended | {"text": first},
        request(3, request="go"),
        ended | {"text": second},
    ]
    folder.write("claude_messages.json", shown)
    read = folder.read()

    assert [(call.usage.input_total, call.cost_dollars) for call in read.of(ModelCalled)] == [
        (15, 0.25),
        (20, 0.5),
    ]
    assert (read.stats.usage["tokensIn"], read.problems) == (30, [])
