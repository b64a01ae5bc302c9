"""Sessions of opencode as exported documents."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read

from windowpane.core.codec import encode
from windowpane.models.tokens import counter_for
from windowpane.sources.transcripts.formats.opencode.reader import OpencodeExportReader
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    Rewound,
    SessionDescribed,
    SessionOpened,
)

PRUNED = "opencode/export_pruned_37-364f83fa16-0.json"
START = 1_770_000_000_000
PLAYBACK = PlaybackSettings(digest=str, counter_for=partial(counter_for, wait=True))


def request(number: int, *parts: Json, **info: Any) -> Json:
    return {
        "info": {"id": f"msg_{number}", "role": "user", "time": {"created": START + number * 1000}, **info},
        "parts": list(parts),
    }


def reply(number: int, *parts: Json, **info: Any) -> Json:
    created = START + number * 1000
    tokens = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 900, "write": 0}}
    finish = {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.25}
    return {
        "info": {
            "id": f"msg_{number}", "role": "assistant", "modelID": "gpt-5.3-codex", "tokens": tokens,
            "time": {"created": created, "completed": created + 500}, **info,
        },
        "parts": [{"type": "step-start"}, *parts, finish],
    }  # fmt: skip


def text(written: str, **more: Any) -> Json:
    return {"type": "text", "text": written, **more}


def tool(call_id: str, output: str = "done", **state: Any) -> Json:
    time = {"start": START, "end": START, **state.pop("time", {})}
    state = {"status": "completed", "input": {"a": 1}, "output": output, "time": time, **state}
    return {"type": "tool", "callID": call_id, "tool": "task", "state": state}


def read(folder: Path, *messages: Json, complete: bool = True, **info: Any) -> Read:
    path = folder / "export.json"
    session = {"id": "ses_1", "title": "Fix it", "directory": "/work", "version": "1.2.24", **info}
    path.write_text(json.dumps({"info": session, "messages": list(messages)}))
    return Read(OpencodeExportReader(complete=complete), path)


def test_a_session_is_described_by_its_title_and_folder(tmp_path: Path) -> None:
    described = read(tmp_path, request(0, text("hi")), parentID="ses_0")
    untitled = read(tmp_path, request(0, text("hi")), title="New session - 2026-03-10T00:00:00.000Z")

    assert described.of(SessionDescribed) == [
        SessionDescribed(title="Fix it", folder="/work", agent_version="1.2.24")
    ]
    assert described.of(SessionOpened)[0].parent_key == "ses_0"
    assert untitled.of(SessionDescribed)[0].title == ""


def test_results_enter_after_the_call_and_name_the_sub_agents_session(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        request(0, text("go"), text("injected", synthetic=True)),
        reply(1, text("on it"), tool("c1", metadata={"sessionId": "ses_child"})),
    )

    assert result.order == [
        "user_message", "memory_injection", "assistant_response", "tool_call",
        "ModelCalled", "tool_result",
    ]  # fmt: skip
    (call,) = result.of(ModelCalled)
    assert (call.usage.input_total, call.usage.output_tokens, call.cost_dollars) == (1000, 20, 0.25)
    assert result.records[-1].child_key == "ses_child"


def test_reasoning_beside_the_output_is_added_where_the_total_shows_it(tmp_path: Path) -> None:
    tokens = {"total": 125, "input": 100, "output": 20, "reasoning": 5, "cache": {"read": 0, "write": 0}}
    message = reply(1, text("x"))
    message["parts"][-1]["tokens"] = tokens
    (call,) = read(tmp_path, request(0, text("go")), message).of(ModelCalled)

    assert call.usage.output_tokens == 25


def test_redacted_ids_never_merge_calls(tmp_path: Path) -> None:
    result = read(tmp_path, request(0, text("go")), reply(1, tool("REDACTED"), tool("REDACTED")), id="REDACTED")
    calls = [content.tool_call_id for content in result.of(ContentAdded) if content.content_type == "tool_call"]

    assert len(set(calls)) == 2
    assert result.of(SessionOpened)[0].session_key.startswith("unnamed-")


def test_pruned_outputs_leave_the_window_at_their_time(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        request(0, text("go")),
        reply(1, tool("c1", time={"compacted": START + 1800})),
        request(2, text("more")),
    )

    assert [type(record).__name__ for record in result.records[-2:]] == ["ContentRemoved", "ContentAdded"]
    assert result.of(ContentRemoved)[0].keys == ("m1.p1",)
    assert result.stats.evictions == 1


@pytest.mark.parametrize(("tail", "kept"), [(None, ()), ("msg_2", ("m2.p0", "m3.p1.call", "m3.p1"))])
def test_a_summary_replaces_what_came_before_its_tail(tmp_path: Path, tail: str | None, kept: tuple[str]) -> None:
    asked = {"type": "compaction", "auto": True} | ({"tail_start_id": tail} if tail else {})
    result = read(
        tmp_path,
        request(0, text("go")), reply(1, text("done")), request(2, text("more")), reply(3, tool("c1")),
        request(4, asked), reply(5, text("We did it."), summary=True),
    )  # fmt: skip
    (compacted,) = result.of(Compacted)

    assert (compacted.trigger, compacted.summary) == ("auto", "We did it.")
    assert compacted.kept_keys == (*kept, "m4.p0") if kept else compacted.kept_keys == ()
    assert result.stats.compactions == 1


def test_a_failed_summary_is_no_compaction(tmp_path: Path) -> None:
    failed = reply(5, text("We"), summary=True, error={"name": "APIError"})

    assert read(tmp_path, request(4, {"type": "compaction", "auto": False}), failed).of(Compacted) == []


def test_a_reverted_session_continues_after_the_message_before(tmp_path: Path) -> None:
    result = read(
        tmp_path, request(0, text("go")), reply(1, text("done")), request(2, text("no")),
        revert={"messageID": "msg_2"},
    )  # fmt: skip

    assert result.of(Rewound) == [Rewound("m1.p1")]


def test_a_reply_in_progress_is_held_back(tmp_path: Path) -> None:
    going = reply(1, text("so fa"), time={"created": START})
    messages = (request(0, text("go")), going)

    assert read(tmp_path, *messages, complete=False).of(ModelCalled) == []
    assert len(read(tmp_path, *messages).of(ModelCalled)) == 1


def test_unknown_parts_are_reported_once(tmp_path: Path) -> None:
    odd = {"type": "hologram"}

    assert len(read(tmp_path, request(0, odd, odd), reply(1, odd)).problems) == 1


def test_a_longer_export_continues_the_events_of_a_shorter_one(sessions_dir: Path, tmp_path: Path) -> None:
    document = json.loads((sessions_dir / PRUNED).read_text())
    whole = _events(tmp_path, document)
    for length in range(1, len(document["messages"]), 15):
        until = document["messages"][length]["info"]["time"]["created"]
        part = copy.deepcopy(document)
        del part["messages"][length:]
        for message in part["messages"]:
            for piece in message["parts"]:
                if piece.get("state", {}).get("time", {}).get("compacted", 0) >= until:
                    del piece["state"]["time"]["compacted"]
        events = _events(tmp_path, part)

        assert events == whole[: len(events)], f"cut after message {length}"


def _events(folder: Path, document: Json) -> list[bytes]:
    path = folder / "growing.json"
    path.write_text(json.dumps(document))
    records = Read(OpencodeExportReader(complete=False), path).records
    key = document["info"]["id"]
    return [encode(event) for event in session_events(records, key=key, source="opencode", playback=PLAYBACK)]
