"""Sessions of Gemini CLI, in both formats, and of Qwen Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, read_rows

from windowpane.core.codec import encode
from windowpane.sources.transcripts.formats.gemini.qwen import QwenReader
from windowpane.sources.transcripts.formats.gemini.reader import GeminiDocumentReader, GeminiLinesReader
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    ModelCalled,
    Rewound,
    SessionDescribed,
    SessionOpened,
)
from windowpane.testing import CharacterCounter

HEADER = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-01-10T02:08:26Z"}
TOKENS = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115}
PLAYBACK = PlaybackSettings(digest=str, counter_for=lambda _: CharacterCounter())


def message(name: str, kind: str = "user", content: Any = "hi", **more: Any) -> Json:
    return {"id": name, "type": kind, "timestamp": "2026-01-10T02:09:00Z", "content": content, **more}


def reply(name: str, content: Any = "ok", **more: Any) -> Json:
    return message(name, "gemini", content, model="gemini-2.5-flash", tokens=TOKENS, **more)


def call(call_id: str, output: str | None = "done", **more: Any) -> Json:
    answer = {"functionResponse": {"id": call_id, "name": "read", "response": {"output": output}}}
    result = None if output is None else [answer]
    return {"id": call_id, "name": "read", "args": {"a": 1}, "result": result, "status": "success", **more}


def lines(folder: Path, *rows: Json, complete: bool = True) -> Read:
    return read_rows(GeminiLinesReader(complete=complete), folder, [HEADER, *rows])


def document(folder: Path, *messages: Json, complete: bool = True, **header: Any) -> Read:
    path = folder / "session.json"
    path.write_text(json.dumps(HEADER | header | {"messages": list(messages)}))
    return Read(GeminiDocumentReader(complete=complete), path)


class TestGemini:
    def test_a_document_and_rows_give_the_same_records(self, tmp_path: Path) -> None:
        messages = (message("a"), reply("b", toolCalls=[call("c1")]), reply("c"), message("d", "info"))

        assert document(tmp_path, *messages).records == lines(tmp_path, *messages).records

    def test_the_result_follows_the_call_and_thoughts_are_output(self, tmp_path: Path) -> None:
        read = document(tmp_path, message("a"), reply("b", toolCalls=[call("c1", agentId="child")]))
        usage = read.of(ModelCalled)[0].usage

        assert read.order == ["user_message", "assistant_response", "tool_call", "ModelCalled", "tool_result"]
        assert (usage.input_total, usage.cache_read_tokens, usage.output_tokens) == (100, 40, 15)
        assert read.records[-1].child_key == "child"

    def test_a_message_that_is_written_again_is_read_once(self, tmp_path: Path) -> None:
        answer = [{"functionResponse": {"id": "c1", "response": {"output": "done"}}}]
        rows = (message("a"), reply("b"), reply("b", toolCalls=[call("c1")]), message("c", content=answer))
        read = lines(tmp_path, *rows)

        assert read.order == ["user_message", "assistant_response", "tool_call", "ModelCalled", "tool_result"]
        assert (read.stats.api_calls, read.stats.user_turns) == (1, 1)

    def test_calls_that_come_after_another_message_are_added(self, tmp_path: Path) -> None:
        rows = (message("a"), reply("b"), message("c"), reply("b", toolCalls=[call("c1")]))

        assert lines(tmp_path, *rows).order[-2:] == ["tool_call", "tool_result"]

    def test_the_last_reply_is_held_back(self, tmp_path: Path) -> None:
        for read in (document, lines):
            assert read(tmp_path, message("a"), reply("b"), complete=False).of(ModelCalled) == []

    def test_a_rewind_removes_the_message_and_what_follows(self, tmp_path: Path) -> None:
        """An unknown message clears the history, as the agent does."""
        rows = (message("a"), reply("b"), message("c"))

        assert lines(tmp_path, *rows, {"$rewindTo": "c"}).of(Rewound) == [Rewound("m2.0")]
        assert lines(tmp_path, *rows, {"$rewindTo": "z"}).of(Rewound) == [Rewound(None)]

    def test_a_compression_replaces_the_history(self, tmp_path: Path) -> None:
        snapshot = message("s", content=[{"text": "<state_snapshot>we did it</state_snapshot>"}])
        changed = {"$set": {"messages": [snapshot, message("c")]}}
        read = lines(tmp_path, message("a"), reply("b"), message("c"), changed, message("d"))

        assert [(c.summary, c.kept_keys) for c in read.of(Compacted)] == [
            ("<state_snapshot>we did it</state_snapshot>", ("m3.0",))
        ]
        assert read.stats.compactions == 1

    def test_a_shorter_history_is_a_rollback(self, tmp_path: Path) -> None:
        changed = {"$set": {"messages": [message("a")]}}

        assert lines(tmp_path, message("a"), reply("b"), changed).of(Rewound) == [Rewound("m1.0")]

    def test_masked_results_are_removed(self, tmp_path: Path) -> None:
        masked = reply("b", toolCalls=[call("c1", "[masked]")])
        changed = {"$set": {"messages": [message("a"), masked]}}
        read = lines(tmp_path, message("a"), reply("b", toolCalls=[call("c1")]), message("x"), changed)

        assert ("c1",) in [removed.keys for removed in read.of(ContentRemoved)]

    def test_a_session_is_described_and_a_sub_agent_names_its_parent(self, tmp_path: Path) -> None:
        chats = tmp_path / "shop" / "chats"
        chats.mkdir(parents=True)
        (chats.parent / ".project_root").write_text("/projects/shop\n")
        described = document(chats, message("a"), summary="Fix it", directories=["/added"])
        folder = tmp_path / "parent-id"
        folder.mkdir()
        child = read_rows(GeminiLinesReader(complete=True), folder, [HEADER | {"kind": "subagent"}])

        assert described.of(SessionDescribed) == [SessionDescribed(title="Fix it", folder="/projects/shop")]
        assert child.of(SessionOpened)[0].parent_key == "parent-id"

    @pytest.mark.parametrize(("place", "kind"), [("parent-id", "main"), ("chats", "subagent")])
    def test_other_sessions_have_no_parent(self, tmp_path: Path, place: str, kind: str) -> None:
        folder = tmp_path / place
        folder.mkdir()
        read = read_rows(GeminiLinesReader(complete=True), folder, [HEADER | {"kind": kind}])

        assert read.of(SessionOpened)[0].parent_key is None

    def test_a_growing_document_only_appends(self, sessions_dir: Path, tmp_path: Path) -> None:
        name = "gemini_cli/session_small_12-cbfeaa512b-0.json"
        whole = json.loads((sessions_dir / name).read_text())
        messages = whole["messages"]
        events = [self._events(document(tmp_path, *messages[:end], complete=False)) for end in range(7)]

        assert all(events[6][: len(part)] == part for part in events)

    def _events(self, read: Read) -> list[bytes]:
        source = "gemini_cli"
        return [encode(e) for e in session_events(read.records, key="s1", source=source, playback=PLAYBACK)]


def row(number: int, kind: str, *parts: Json, parent: int | None = -1, **more: Any) -> Json:
    above = number - 1 if parent == -1 else parent
    return {
        "uuid": f"u{number}",
        "parentUuid": None if above is None or above < 0 else f"u{above}",
        "sessionId": "s1",
        "timestamp": "2026-01-10T02:09:00Z",
        "type": kind,
        "cwd": "/work",
        "version": "0.15",
        "gitBranch": "main",
        "message": {"role": "user", "parts": list(parts)},
        **more,
    }


class TestQwen:
    def read(self, folder: Path, *rows: Json) -> Read:
        return read_rows(QwenReader(complete=True), folder, rows)

    def test_a_turn_is_read_with_its_usage_and_window(self, tmp_path: Path) -> None:
        """Thoughts inside the output, as OpenAI-compatible providers state them, are not added."""
        usage = {
            "promptTokenCount": 100,
            "candidatesTokenCount": 20,
            "thoughtsTokenCount": 8,
            "totalTokenCount": 120,
        }
        spoken = {"functionCall": {"id": "c1", "name": "read", "args": {}}}
        answer = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "done"}}}
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}),
            row(
                1,
                "assistant",
                {"text": "hm", "thought": True},
                spoken,
                usageMetadata=usage,
                contextWindowSize=1000,
                model="qwen3",
            ),
            row(2, "tool_result", answer),
        )

        assert read.order == [
            "user_message",
            "thinking",
            "tool_call",
            "ModelCalled",
            "tool_result",
        ]
        assert read.of(ModelCalled)[0].usage.output_tokens == 20
        assert read.of(LimitStated) == [LimitStated(1000, read.of(LimitStated)[0].at)]
        assert read.of(SessionDescribed)[0].branch == "main"

    def test_a_compression_states_its_sizes(self, tmp_path: Path) -> None:
        call = {"functionCall": {"id": "t1", "name": "shell", "args": {"command": "ls"}}}
        payload = {
            "info": {
                "originalTokenCount": 900,
                "newTokenCount": 90,
                "newTokenCountIsEstimated": True,
                "compressionStatus": 1,
                "triggerReason": "manual",
            },
            "compressedHistory": [
                {"role": "user", "parts": [{"text": "we did it"}]},
                {"role": "model", "parts": [{"text": "noted"}, call]},
            ],
        }
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}),
            row(1, "assistant", {"text": "ok"}, call, model="q"),
            row(2, "system", subtype="chat_compression", systemPayload=payload),
            row(3, "system", subtype="chat_compression", systemPayload={"info": {"compressionStatus": 5}}),
        )
        (compacted,) = read.of(Compacted)

        assert (compacted.tokens_before, compacted.tokens_after) == (900, None)
        assert (compacted.trigger, compacted.summary) == ("manual", "we did it\nnoted")
        assert compacted.kept_keys == ("c3",)

    def test_the_rows_of_a_sub_agents_reply_are_one_call(self, tmp_path: Path) -> None:
        own = {"isSidechain": True, "agentId": "explore-1"}
        call = {"functionCall": {"id": "t1", "name": "shell", "args": {}}}
        answer = {"functionResponse": {"id": "t1", "response": {"output": "done"}}}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20}
        beside = {"parentAgentId": "plan-1", "model": "qwen3", "description": "Find the tests"}
        (tmp_path / "transcript.meta.json").write_text(json.dumps(beside))
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}, **own),
            row(1, "assistant", {"text": "ok"}, usageMetadata=usage, agentRound=1, **own),
            row(2, "assistant", call, **own),
            row(3, "assistant", {**call, "functionCall": {"id": "t2", "name": "shell"}}, **own),
            row(4, "tool_result", answer, **own),
            row(5, "assistant", call, **own),
        )

        assert [(opened.parent_key, opened.model) for opened in read.of(SessionOpened)] == [
            ("s1/plan-1", "qwen3")
        ]
        assert read.of(SessionDescribed)[0].title == "Find the tests"
        assert [(called.usage and called.usage.input_total, called.model) for called in read.of(ModelCalled)] == [
            (100, "qwen3"),
            (None, "qwen3"),
        ]
        assert read.order[1:5] == ["assistant_response", "tool_call", "tool_call", "ModelCalled"]

    def test_a_session_that_another_started_is_its_child(self, tmp_path: Path) -> None:
        payload = {"parentSessionId": "other"}
        read = self.read(
            tmp_path,
            row(0, "system", subtype="session_source", systemPayload={"sourceType": "cli"}),
            row(1, "system", subtype="parent_session", systemPayload=payload),
            row(2, "user", {"text": "go"}),
        )

        assert [opened.parent_key for opened in read.of(SessionOpened)] == ["other"]

    @pytest.mark.parametrize(("parent", "key"), [(0, "c1"), (None, None)])
    def test_a_row_with_an_earlier_parent_rewinds(
        self, tmp_path: Path, parent: int | None, key: str | None
    ) -> None:
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}),
            row(1, "assistant", {"text": "ok"}, model="q"),
            row(2, "user", {"text": "no"}),
            row(3, "user", {"text": "again"}, parent=parent),
        )

        assert [rewound.last_kept_key for rewound in read.of(Rewound)] == [key]

    def test_sub_agents_are_children_and_titles_have_an_author(self, tmp_path: Path) -> None:
        title = {"customTitle": "Fix it", "titleSource": "manual"}
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}),
            row(1, "system", subtype="custom_title", systemPayload=title),
            row(2, "user", {"text": "look"}, isSidechain=True, agentId="explore-1"),
        )

        assert [(o.session_key, o.parent_key) for o in read.of(SessionOpened)] == [
            ("s1", None),
            ("s1/explore-1", "s1"),
        ]
        assert [d.title_source for d in read.of(SessionDescribed) if d.title] == ["user"]
        assert [c.text for c in read.of(ContentAdded)] == ["go", "look"]

    def test_a_message_written_while_tools_run_is_the_users(self, tmp_path: Path) -> None:
        """Its row has a subtype, as those that Qwen Code writes in the user's name have."""
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}),
            row(1, "user", {"text": "and lint"}, subtype="mid_turn_user_message", provenance="real_user"),
            row(2, "user", {"text": "nightly"}, subtype="cron", provenance="system"),
        )

        assert [c.content_type for c in read.of(ContentAdded)] == ["user_message"] * 2 + ["memory_injection"]
        assert read.stats.user_turns == 2

    def test_a_forked_sub_agent_starts_with_the_history_it_was_given(self, tmp_path: Path) -> None:
        call = {"functionCall": {"id": "c1", "name": "read", "args": {}}}
        given = [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [{"text": "ok"}, call]}]
        child: Json = {"isSidechain": True, "agentId": "fork-1"}
        payload = {"kind": "fork", "history": given}
        read = self.read(
            tmp_path,
            row(0, "system", subtype="agent_bootstrap", systemPayload=payload, **child),
            row(1, "user", {"text": "look"}, **child),
            row(2, "assistant", {"text": "done"}, model="q", **child),
        )

        assert [c.content_type for c in read.of(ContentAdded)] == [
            "user_message", "assistant_response", "tool_call", "user_message", "assistant_response",
        ]  # fmt: skip
        assert (read.stats.api_calls, read.stats.tool_calls) == (1, 0)

    @pytest.mark.parametrize(("is_there", "calls"), [(True, 1), (False, 2)])
    def test_the_calls_of_a_branch_are_those_of_the_session_it_copied(
        self, tmp_path: Path, *, is_there: bool, calls: int
    ) -> None:
        origin = "11111111-1111-4111-8111-111111111111"
        copied: Json = {"forkedFrom": {"sessionId": origin, "messageUuid": "u"}}
        if is_there:
            (tmp_path / f"{origin}.jsonl").write_text(json.dumps(row(0, "user", {"text": "go"})))
        read = self.read(
            tmp_path,
            row(0, "user", {"text": "go"}, **copied),
            row(1, "assistant", {"text": "ok"}, model="q", **copied),
            row(2, "user", {"text": "else"}),
            row(3, "assistant", {"text": "fine"}, model="q"),
        )

        assert [c.text for c in read.of(ContentAdded)] == ["go", "ok", "else", "fine"]
        assert len(read.of(ModelCalled)) == calls
        assert any("a fork of another session" in str(problem) for problem in read.problems) is not is_there
