"""Messages that Claude Code prints: the session of a transcript, in other names."""

from __future__ import annotations

import json
from pathlib import Path

from reads import Read

from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.claude_code.stream import ClaudeStreamReader
from windowpane.sources.transcripts.records import (
    ContentAdded,
    LimitStated,
    ModelCalled,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)

FILE = "api_messages/claude_agent_sdk_tool_hooks.json"


def test_counts_are_those_of_the_manifest(sessions_dir: Path) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == FILE)
    stats = Read(ClaudeStreamReader(), sessions_dir / FILE).stats

    for name in ("messages", "tool_calls", "content_chars", "max_tool_output_chars", "compactions", "bad_lines"):
        assert getattr(stats, name) == expected[name], name
    assert {name: stats.usage[name] for name in expected["usage"][0]} == expected["usage"][0]


def test_it_is_the_session_of_the_transcript(sessions_dir: Path) -> None:
    read = Read(ClaudeStreamReader(), sessions_dir / FILE)
    opened = read.of(SessionOpened)

    assert {one.session_key for one in opened} == {"d54d9863-18b0-4306-9805-4a97a0935124"}
    assert (opened[0].agent, opened[0].agent_version, opened[0].model) == (
        "claude-code", "2.1.63", "claude-sonnet-4-6",
    )  # fmt: skip
    assert [call.usage.input_total for call in read.of(ModelCalled)] == [17_083, 17_278]
    assert read.of(LimitStated) == [LimitStated(200_000)]
    assert read.records[-1] == SessionClosed("completed")
    assert read.of(SessionDescribed)


def test_lines_and_documents_are_the_same(sessions_dir: Path, tmp_path: Path) -> None:
    messages = json.loads((sessions_dir / FILE).read_text())["messages"]
    path = tmp_path / "stream.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))

    assert isinstance(reader_for(path, all_readers(complete=True)), ClaudeStreamReader)
    assert Read(ClaudeStreamReader(), path).records == Read(ClaudeStreamReader(), sessions_dir / FILE).records


def test_messages_of_a_sub_agent_are_a_child_session(tmp_path: Path) -> None:
    def line(role: str, content: object, *, call: str | None = None, **more: object) -> dict[str, object]:
        return {
            "type": role, "session_id": "s", "parent_tool_use_id": call,
            "message": {"role": role, "content": content, **more},
        }  # fmt: skip

    def reply(
        number: int, content: dict[str, object], tokens: int, *, call: str | None = None
    ) -> dict[str, object]:
        usage = {"input_tokens": tokens, "output_tokens": 5}
        return line("assistant", [content], call=call, id=f"msg_{number}", model="claude-sonnet-4-6", usage=usage)

    task = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "Search"}}
    found = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Found"}
    messages = [
        line("user", "Find it"), reply(1, task, 100),
        line("user", "Search", call="toolu_1"), reply(2, {"type": "text", "text": "Found"}, 40, call="toolu_1"),
        line("user", [found]), reply(3, {"type": "text", "text": "Done"}, 200),
    ]  # fmt: skip
    path = tmp_path / "stream.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))
    records = Read(ClaudeStreamReader(), path).records

    told: dict[str, list[object]] = {}
    for record in records:
        if isinstance(record, SessionOpened):
            session = told.setdefault(record.session_key, [record.parent_key])
        elif isinstance(record, ContentAdded):
            session.append(record.text)
        elif isinstance(record, ModelCalled):
            session.append(record.usage.input_total)
    assert told == {
        "s": [None, "Find it", '{"prompt": "Search"}', 100, "Found", "Done", 200],
        "s/agent-toolu_1": ["s", "Search", "Found", 40],
    }
