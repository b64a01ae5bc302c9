"""The system prompt, tools and injected texts that Claude Code records since September 2026."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reads import Read, WordCounter, digest, read_rows

from windowpane.core.events import BlockAdded, BlocksEvicted, PressureMeasured
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.records import ContentAdded, ContentRemoved

Json = dict[str, Any]
MakeTranscript = Callable[..., Any]
SESSION = "3e1f7c0a-5b1d-4c58-9a53-1d2b7c9e4f60"
NEWEST = Path(__file__).with_name("data") / "newest" / "claude_code_2.1.332" / f"{SESSION}.jsonl"
PREFIX = "You are a Claude agent."
TOTAL = 100
"""The input that the provider reports of a reply built here."""


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def tool(name: str, description: str = "Does it.", **more: Any) -> Json:
    return {"name": name, "description": description, "input_schema": {"type": "object"}, **more}


def snapshot(*tools: Json, prompt: str = "Be brief.") -> Json:
    """Return a snapshot as it is written after a call; without tools, as it is written before."""
    stated = [{"name": one["name"], "description": one["description"], "schema": one} for one in tools]
    known = {"tools": stated, "cliPrefix": PREFIX} if tools else {}
    return {"type": "prompt_snapshot", "systemPrompt": [prompt, "# Delivering work"], **known}


def loaded(*tools: Json) -> Json:
    return {"type": "deferred_tools_record", "entries": list(tools)}


def started(transcript: MakeTranscript, *tools: Json) -> Any:
    """Return the start of a session: two snapshots around the first reply, which calls a tool."""
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    return (
        transcript()
        .user("go")
        .other("attachment", attachment=snapshot())
        .reply("m1", text("a"), call, stop="tool_use")
        .result("t1")
        .other("attachment", attachment=snapshot(*(tools or (tool("Read"), tool("mcp__notes__find")))))
    )


def before_messages(read: Read) -> list[tuple[str | None, str | None]]:
    """Return the name and text of the system prompts and tools that were added."""
    static = ("system_prompt", "tool_definition")
    return [(one.tool_name, one.text) for one in read.of(ContentAdded) if one.content_type in static]


def played(read: Read, key: str = "s") -> list[Any]:
    playback = PlaybackSettings(digest=digest, counter_for=lambda model: WordCounter())
    events = session_events(read.records, key=key, source="claude_code", playback=playback)
    return [event.data for event in events]


def measured(read: Read, key: str = "s") -> list[PressureMeasured]:
    """Return the windows that the calls sent."""
    return [data for data in played(read, key) if isinstance(data, PressureMeasured) and data.phase == "final"]


def test_a_call_sends_the_prompt_and_tools_of_the_snapshot_after_it(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    read = started(transcript).user("thanks").read(tmp_path)

    assert before_messages(read) == [
        (None, PREFIX),
        (None, "Be brief.\n\n# Delivering work"),
        ("Read", json.dumps(tool("Read"))),
        ("mcp__notes__find", json.dumps(tool("mcp__notes__find"))),
    ]
    assert read.order == [
        "user_message",
        *["system_prompt"] * 2,
        *["tool_definition"] * 2,
        "assistant_response",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "user_message",
    ]
    assert not read.problems


def test_the_provider_s_total_is_split_into_what_is_recorded_and_the_rest(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    (call,) = measured(started(transcript).user("thanks").read(tmp_path))

    tools = [json.dumps(tool(name)) for name in ("Read", "mcp__notes__find")]
    counted = [len(" ".join(texts).split()) for texts in (["go"], [PREFIX, "Be brief. # Delivering work"], tools)]
    assert call.used_by_component["message_history"] == counted[0]
    assert call.used_by_component["system_prompt"] == counted[1]
    assert call.used_by_component["tool_definitions"] == counted[2]
    assert call.used_by_component["unattributed"] == TOTAL - sum(counted)


def test_first_reply_of_a_growing_file_waits_for_its_tools(tmp_path: Path, transcript: MakeTranscript) -> None:
    replied = transcript().user("go").other("attachment", attachment=snapshot()).reply("m1", text("a"))

    assert replied.read(tmp_path, complete=False).order == ["user_message"]
    stated = replied.other("attachment", attachment=snapshot(tool("Read"))).read(tmp_path, complete=False)
    assert stated.order[-2:] == ["tool_definition", "assistant_response"]


def test_reply_without_a_second_snapshot_follows_the_system_prompt(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    started = transcript().user("go").other("attachment", attachment=snapshot()).reply("m1", text("a"))
    read = started.user("more").reply("m2", text("b")).user("end").read(tmp_path, complete=False)

    assert read.order == [
        *("user_message", "system_prompt", "assistant_response", "ModelCalled"),
        *("user_message", "assistant_response", "ModelCalled", "user_message"),
    ]


def test_equal_snapshots_after_a_compaction_change_nothing(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        started(transcript)
        .system("compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 1_000})
        .user("the summary", isCompactSummary=True)
        .other("attachment", attachment=snapshot())
        .reply("m2", text("b"))
        .other("attachment", attachment=snapshot(tool("Read"), tool("mcp__notes__find")))
        .read(tmp_path)
    )

    assert len(before_messages(read)) == 4
    assert not read.of(ContentRemoved)
    before, after = measured(read)
    for component in ("system_prompt", "tool_definitions"):
        assert before.used_by_component[component] == after.used_by_component[component] > 0
    assert sum(after.used_by_component.values()) == TOTAL


def test_another_snapshot_replaces_what_differs(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        started(transcript)
        .system("compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 1_000})
        .user("the summary", isCompactSummary=True)
        .other("attachment", attachment=snapshot(prompt="Be thorough."))
        .reply("m2", text("b"))
        .other("attachment", attachment=snapshot(tool("Read", "Reads."), prompt="Be thorough."))
        .read(tmp_path)
    )

    assert before_messages(read)[4:] == [
        (None, "Be thorough.\n\n# Delivering work"),
        ("Read", json.dumps(tool("Read", "Reads."))),
    ]
    (evicted,) = [data for data in played(read) if isinstance(data, BlocksEvicted)]
    assert [(block.content_type, block.tool_name) for block in evicted.blocks] == [
        ("system_prompt", None),
        ("tool_definition", "Read"),
        ("tool_definition", "mcp__notes__find"),
    ]
    assert sum(measured(read)[-1].used_by_component.values()) == TOTAL


def test_tool_that_a_search_loads_is_sent_with_the_next_call(tmp_path: Path, transcript: MakeTranscript) -> None:
    found = tool("mcp__notes__add")
    read = (
        started(transcript, tool("Read"))
        .other("attachment", attachment=loaded(found | {"defer_loading": True}))
        .reply("m2", text("b"))
        .system("compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 1_000})
        .user("the summary", isCompactSummary=True)
        .other("attachment", attachment=snapshot())
        .other("attachment", attachment=loaded(found | {"defer_loading": True}))
        .reply("m3", text("c"))
        .other("attachment", attachment=snapshot(tool("Read")))
        .user("more")
        .other("attachment", attachment=snapshot())
        .reply("m4", text("d"))
        .other("attachment", attachment=snapshot(tool("Read"), found))
        .read(tmp_path)
    )

    assert before_messages(read)[3:] == [("mcp__notes__add", json.dumps(found))]
    assert not read.of(ContentRemoved)
    first, second = (number for number, kind in enumerate(read.order) if kind == "ModelCalled" and number < 12)
    assert first < read.order.index("tool_definition", first) < second


def test_cleared_window_has_its_own_prompt(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        started(transcript, tool("Read"))
        .user("<command-name>/clear</command-name>")
        .other("attachment", attachment=snapshot())
        .reply("m2", text("b"))
        .other("attachment", attachment=snapshot(tool("Read")))
        .read(tmp_path)
    )

    assert before_messages(read)[:3] == before_messages(read)[3:]
    assert not read.of(ContentRemoved)


@pytest.mark.parametrize("parent", ["first", "reply"])
def test_prompt_is_in_the_window_after_a_rewind(parent: str, tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .other("attachment", attachment={"type": "date"}, rendered=[{"content": "Today"}], uuid="first")
        .user("go", uuid="go", parentUuid="first")
        .other("attachment", attachment=snapshot())
        .reply("m1", text("a"), uuid="reply", parentUuid="go")
        .other("attachment", attachment=snapshot(tool("Read")))
        .user("more", uuid="more", parentUuid="reply")
        .reply("m2", text("b"), uuid="second", parentUuid="more")
        .user("other", uuid="other", parentUuid=parent)
        .reply("m3", text("c"), parentUuid="other")
        .read(tmp_path)
    )

    assert "Rewound" in read.order
    last = measured(read)[-1].used_by_component
    assert last["system_prompt"] > 0
    assert last["tool_definitions"] > 0
    in_window = [data.block.text for data in played(read) if isinstance(data, BlockAdded)]
    assert in_window.count(PREFIX) == (2 if parent == "first" else 1)  # it left with the branch, and returned


def test_memory_files_are_a_block_each(tmp_path: Path, transcript: MakeTranscript) -> None:
    rows = [json.loads(line) for line in NEWEST.read_text().splitlines()[:12]]
    read = read_rows(ClaudeCodeReader(complete=True), tmp_path, [row for row in rows if "attachment" in row])

    files = [one.text for one in read.of(ContentAdded) if one.text.startswith("Contents of")]
    assert [one.split("(")[0] for one in files] == [
        "Contents of /home/ann/.claude/CLAUDE.md ",
        "Contents of /home/ann/project/CLAUDE.md ",
    ]
    assert files[0].rstrip().endswith("Write short sentences.")


@pytest.mark.parametrize("path", ["/another/CLAUDE.md", None])
def test_memory_files_that_the_text_does_not_name_are_one_block(
    path: object, tmp_path: Path, transcript: MakeTranscript
) -> None:
    attachment = {"type": "instructions", "files": [{"path": path, "content": "Be brief."}]}
    read = (
        transcript()
        .other("attachment", attachment=attachment, rendered=[{"content": "Be brief."}])
        .read(tmp_path)
    )

    assert [one.text for one in read.of(ContentAdded)] == ["Be brief."]


def test_attachments_are_read_as_they_were_sent(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .other("attachment", attachment={"type": "date", "date": "x"}, rendered=[{"content": "Today is x."}])
        .other(
            "attachment",
            attachment={"type": "skill_listing", "content": "s"},
            rendered=[{"content": "Skills: s"}],
        )
        .other("attachment", attachment={"type": "file"}, rendered=[{"content": "Called"}, {"content": "Result"}])
        .other("attachment", attachment={"type": "session_context", "context": {}})
        .other("attachment", attachment={"type": "skill_listing", "content": "s"}, rendered=[])
        .read(tmp_path)
    )

    assert [(one.content_type, one.text) for one in read.of(ContentAdded)] == [
        ("memory_injection", "Today is x."),
        ("memory_injection", "Skills: s"),
        ("memory_injection", "Called\nResult"),
    ]


def first_call(rows: list[Json], tmp_path: Path, *, total: int | None = None) -> tuple[int, PressureMeasured]:
    """Return what the recording states that its first call sends, in words, and the window of that call."""
    end = next(number for number, row in enumerate(rows) if row["type"] == "assistant")
    sent = [part["content"] for row in rows[:end] for part in row.get("rendered", ())]
    sent += [row["message"]["content"] for row in rows[:end] if row["type"] == "user"]
    attached = [row["attachment"] for row in rows if row["type"] == "attachment"]
    prompt = next(one for one in attached if one["type"] == "prompt_snapshot" and "tools" in one)
    sent += [prompt["cliPrefix"], *prompt["systemPrompt"]]
    sent += [json.dumps(one["schema"]) for one in prompt["tools"]]
    words = len(" ".join(sent).split())
    for row in rows[end:]:
        if row["type"] == "assistant":
            row["message"]["usage"] = {"input_tokens": total or words + 20, "output_tokens": 5}
    read = read_rows(ClaudeCodeReader(complete=True), tmp_path, rows)
    return words, measured(read, SESSION)[0]


def newest_rows() -> list[Json]:
    return [json.loads(line) for line in NEWEST.read_text().splitlines()]


def test_newest_recording_has_little_unattributed(tmp_path: Path) -> None:
    words, call = first_call(newest_rows(), tmp_path)

    assert call.used_tokens == sum(call.used_by_component.values()) == words + 20
    assert call.used_by_component["unattributed"] == 20
    assert (
        min(call.used_by_component[part] for part in ("system_prompt", "tool_definitions", "memory_injection"))
        > 100
    )


def test_estimate_above_the_provider_s_total_is_never_unattributed(tmp_path: Path) -> None:
    words, call = first_call(newest_rows(), tmp_path, total=500)

    assert words > 500
    assert call.used_tokens == sum(call.used_by_component.values()) == 500
    assert call.used_by_component.get("unattributed", 0) == 0


def test_parts_of_the_newest_recording_are_in_the_window_once(tmp_path: Path) -> None:
    read = read_rows(ClaudeCodeReader(complete=True), tmp_path, newest_rows())

    added = before_messages(read)
    assert [name for name, _ in added] == [None, None, "Agent", "Bash", "Edit", "mcp__notes__find_note"]
    assert not read.of(ContentRemoved)
    assert not read.problems
    unattributed = [
        data.block.tokens
        for data in played(read, SESSION)
        if isinstance(data, BlockAdded) and data.block.content_type == "unattributed"
    ]
    assert min(unattributed) >= 0
