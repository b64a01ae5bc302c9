"""Sessions of GitHub Copilot CLI."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, read_rows

from windowpane.core.events import Usage
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.copilot_cli.event_types import _KNOWN
from windowpane.sources.transcripts.formats.copilot_cli.history import CopilotHistoryReader
from windowpane.sources.transcripts.formats.copilot_cli.reader import CopilotReader
from windowpane.sources.transcripts.records import (
    Cleared,
    Compacted,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    ModelCalled,
    Rewound,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)

CONTEXT = {"cwd": "/work", "repository": "acme/app", "branch": "main"}


class Events:
    """Builds events and reads them."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self.add("session.start", sessionId="s1", copilotVersion="1.0", selectedModel="gpt-5", context=CONTEXT)

    def add(self, kind: str, *, agent: str = "", **data: Any) -> Events:
        number = len(self.rows)
        row = {
            "type": kind,
            "id": f"e{number}",
            "parentId": None,
            "timestamp": "2026-06-25T01:50:34Z",
            "data": data,
        }
        self.rows.append(row | ({"agentId": agent} if agent else {}))
        return self

    def user(self, content: str = "go", **data: Any) -> Events:
        return self.add("user.message", content=content, **data)

    def reply(self, content: str = "ok", *calls: str, agent: str = "", **data: Any) -> Events:
        requests = [{"toolCallId": call, "name": "bash", "arguments": {}} for call in calls]
        return self.add("assistant.message", agent=agent, content=content, toolRequests=requests, **data)

    def read(self, folder: Path, *, complete: bool = True) -> Read:
        return read_rows(CopilotReader(complete=complete), folder, self.rows)


def test_the_totals_of_a_session_whose_calls_have_no_usage_are_listed(tmp_path: Path) -> None:
    usage = {"inputTokens": 1_234_567, "outputTokens": 890}
    events = Events().user().reply("ok").add("session.shutdown", modelMetrics={"gpt-5": {"usage": usage}})
    (problem,) = events.read(tmp_path).problems

    assert problem.problem.endswith("of 1 of 1 calls; its totals: 1,234,567 tokens sent, 890 received")


def test_results_follow_the_call_and_what_was_sent_is_the_content(tmp_path: Path) -> None:
    events = Events().user(transformedContent="<date/> go").reply("ok", "c1")
    events.add("tool.execution_start", toolCallId="c1").add(
        "tool.execution_complete", toolCallId="c1", success=True, result={"content": "done"}
    )
    read = events.read(tmp_path)

    assert read.order == [
        "memory_injection",
        "user_message",
        "assistant_response",
        "tool_call",
        "ModelCalled",
        "tool_result",
    ]
    assert [content.text for content in read.of(ContentAdded)][:2] == ["<date/>", "go"]
    assert read.of(ModelCalled)[0].usage is None
    assert ["input tokens" in problem.problem for problem in read.problems] == [True]


@pytest.mark.parametrize("first", ["assistant.usage", "assistant.message"])
def test_usage_is_that_of_its_reply(tmp_path: Path, first: str) -> None:
    events = Events().user()
    usage = {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 60}
    for kind in (first, "assistant.usage" if first == "assistant.message" else "assistant.message"):
        events = events.add(kind, **usage) if kind == "assistant.usage" else events.reply()
    calls = events.reply().read(tmp_path).of(ModelCalled)

    assert [call.usage and call.usage.input_total for call in calls] == [100, None]


def test_a_session_is_described_and_its_title_follows(tmp_path: Path) -> None:
    described = Events().add("session.title_changed", title="Fix it").read(tmp_path).of(SessionDescribed)

    assert (described[0].folder, described[0].repository, described[0].branch) == ("/work", "acme/app", "main")
    assert described[1].title == "Fix it"


def test_content_that_was_added_during_a_compaction_is_retained(tmp_path: Path) -> None:
    events = Events().user().add("session.compaction_start", tokenLimit=128_000).user("meanwhile")
    events.add(
        "session.compaction_complete",
        success=True,
        preCompactionTokens=900,
        postCompactionTokens=90,
        summaryContent="we did it",
        trigger="threshold",
    )
    events.add("session.compaction_complete", success=False)
    read = events.read(tmp_path)
    (compacted,) = read.of(Compacted)

    assert (compacted.trigger, compacted.tokens_before, compacted.tokens_after) == ("auto", 900, 90)
    assert (compacted.summary, compacted.kept_keys) == ("we did it", ("c2",))
    assert read.of(LimitStated)[0].limit_tokens == 128_000


def test_truncations_rewinds_and_clears_change_the_window(tmp_path: Path) -> None:
    events = Events().user().reply()
    events.add("session.truncation", tokensRemovedDuringTruncation=500, messagesRemovedDuringTruncation=3)
    events.add("session.snapshot_rewind", upToEventId="e2").add("session.context_cleared")
    read = events.read(tmp_path)

    assert [(removed.keys, removed.tokens_freed) for removed in read.of(ContentRemoved)] == [((), 500)]
    assert [rewound.last_kept_key for rewound in read.of(Rewound)] == ["c1"]
    assert len(read.of(Cleared)) == 1


@pytest.mark.parametrize("named", [{"agent": "a1"}, {"parentToolCallId": "c1"}])
def test_a_sub_agent_is_a_session_of_the_call_that_started_it(tmp_path: Path, named: Json) -> None:
    events = Events().user().reply("ok", "c1")
    events.add("subagent.started", agent=named.get("agent", ""), toolCallId="c1", agentName="explore")
    events.reply("looking", **named)
    events.add("subagent.completed", toolCallId="c1")
    events.add("tool.execution_complete", toolCallId="c1", result={"content": "found"})
    read = events.read(tmp_path)

    assert ("s1/c1", "s1") in [(opened.session_key, opened.parent_key) for opened in read.of(SessionOpened)]
    assert read.of(ContentAdded)[-1].child_key == "s1/c1"
    assert [closed.reason for closed in read.of(SessionClosed)] == ["completed"]
    assert read.stats.sessions == 2


def test_a_changed_system_prompt_replaces_the_one_before(tmp_path: Path) -> None:
    events = Events()
    for content in ("be good", "be good", "be better"):
        events.add("system.message", role="system", content=content)
    read = events.read(tmp_path)

    assert [content.text for content in read.of(ContentAdded)] == ["be good", "be better"]
    assert read.of(ContentRemoved)[0].keys == ("c1",)


def test_a_call_is_open_until_its_usage_can_no_longer_follow(tmp_path: Path) -> None:
    assert Events().user().reply().read(tmp_path, complete=False).of(ModelCalled) == []
    assert (
        len(Events().user().reply().add("assistant.turn_end").read(tmp_path, complete=False).of(ModelCalled)) == 1
    )


def test_an_empty_system_prompt_is_no_content(tmp_path: Path) -> None:
    read = Events().add("system.message", role="system").read(tmp_path)

    assert read.of(ContentAdded) == []


def test_every_type_of_event_is_read_or_named(tmp_path: Path) -> None:
    events = Events().user()
    for kind in (*sorted(_KNOWN), "hook.start", "permission.completed", "mcp.oauth_required", "skill.invoked"):
        events.add(kind)
    events.add("session.from_the_future", content="x").add("session.from_the_future").add("novel", a=1)

    unknown = [problem.problem for problem in events.read(tmp_path).problems if "unknown type" in problem.problem]

    assert unknown == [
        "events of the unknown type 'session.from_the_future' are skipped",
        "events of the unknown type 'novel' are skipped",
    ]


# -- the session store ------------------------------------------------------------------------------------------

STORE = """
CREATE TABLE assistant_usage_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, turn_index INTEGER, agent_id TEXT,
  parent_tool_call_id TEXT, model TEXT NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
  cache_read_tokens INTEGER, cache_write_tokens INTEGER, reasoning_tokens INTEGER, duration_ms INTEGER,
  initiator TEXT
);
"""
CALL = """
INSERT INTO assistant_usage_events (session_id, parent_tool_call_id, model, input_tokens, output_tokens,
  cache_read_tokens, cache_write_tokens, duration_ms, initiator) VALUES (?, ?, ?, ?, ?, 60, 10, 1500, ?)
"""


def stored(folder: Path, events: Events, *rows: tuple[Any, ...]) -> Read:
    session = folder / "session-state" / "s1"
    session.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "session-store.db", isolation_level=None)) as connection:
        connection.executescript(STORE)
        connection.executemany(CALL, rows)
    return read_rows(CopilotReader(complete=True), session, events.rows)


def test_the_session_store_has_the_usage_of_calls(tmp_path: Path) -> None:
    events = Events().user().reply("ok", outputTokens=5, model="gpt-5").user().reply("more", outputTokens=6)
    events.add("subagent.started", toolCallId="t1", agentName="explore")
    events.add("assistant.message", content="found", outputTokens=7, parentToolCallId="t1").reply(
        "new", outputTokens=9
    )
    read = stored(
        tmp_path,
        events,
        ("s2", None, "gpt-5", 900, 5, "user"),
        ("s1", None, "gpt-5", 800, 6, "compaction"),
        ("s1", None, "gpt-5", 100, 5, "user"),
        ("s1", "t1", "gpt-5-mini", 200, 7, "sub-agent"),
        ("s1", None, "gpt-5", 110, 4, "user"),
        ("s1", None, "gpt-5", 120, 6, "user"),
    )
    calls = read.of(ModelCalled)

    assert [call.usage and call.usage.input_total for call in calls] == [100, 120, None, 200]
    assert (calls[0].usage, calls[0].latency_seconds) == (Usage(30, 5, 60, 10), 1.5)
    assert ["input tokens of 1 of 4 calls" in str(problem) for problem in read.problems] == [True]


def test_a_session_store_of_another_release_is_not_used(tmp_path: Path) -> None:
    session = tmp_path / "session-state" / "s1"
    session.mkdir(parents=True)
    (tmp_path / "session-store.db").write_bytes(b"damaged")
    read = read_rows(CopilotReader(complete=True), session, Events().user().reply(outputTokens=5).rows)

    assert [call.usage for call in read.of(ModelCalled)] == [None]


def test_documents_of_the_first_releases_are_read(tmp_path: Path) -> None:
    """Until October 2025 a session was a document: the messages that are sent, and a timeline of them."""
    call = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "pwd"}'}}
    document = {
        "sessionId": "aaaa1111",
        "startTime": "2025-10-01T10:00:00.000Z",
        "selectedModel": "gpt-5",
        "chatMessages": [
            {"role": "user", "content": "where am I?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "/home"},
            {"role": "assistant", "content": "in /home"},
        ],
        "timeline": [
            {"id": "t1", "type": "user", "text": "where am I?", "timestamp": "2025-10-01T10:00:01.000Z"}
        ],
    }
    path = tmp_path / "session_aaaa1111_1759500000.json"
    path.write_text(json.dumps(document))
    reader = reader_for(path, all_readers())
    read = Read(reader, path)

    assert (reader.format, type(reader)) == ("copilot_cli", CopilotHistoryReader)
    (opened,) = read.of(SessionOpened)
    assert (opened.session_key, opened.model, opened.at) == ("aaaa1111", "gpt-5", 1_759_312_800.0)
    assert read.order == [
        "user_message",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "assistant_response",
        "ModelCalled",
    ]
    assert [called.usage for called in read.of(ModelCalled)] == [None, None]
    assert (read.stats.api_calls, read.stats.tool_calls, read.stats.user_turns) == (2, 1, 1)
    assert [problem.problem for problem in read.problems] == [
        "the recording does not state the usage of the calls, nor the times of the messages"
    ]


def test_printed_events_end_with_a_result_and_may_hold_reasoning_as_blocks(tmp_path: Path) -> None:
    """`copilot -p` prints a last row without data; releases since September 2026 keep the provider's blocks."""
    blocks = {"provider": "anthropic", "blocks": [{"type": "thinking", "thinking": "hm", "signature": "x"}]}
    hidden = {
        "provider": "openai-responses",
        "blocks": [{"type": "reasoning", "encrypted_content": "x", "summary": []}],
    }
    events = (
        Events().user().reply("a", reasoningBlocks=blocks).reply("b", reasoningBlocks=hidden, phase="commentary")
    )
    events.rows.append({"type": "result", "timestamp": "2026-09-28T01:50:34Z", "sessionId": "s1", "exitCode": 0})
    read = events.read(tmp_path)

    assert [one.text for one in read.of(ContentAdded) if one.content_type == "thinking"] == ["hm"]
    assert (read.stats.api_calls, read.stats.odd_lines) == (2, 0)
