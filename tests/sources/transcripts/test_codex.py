"""Codex's traps, each with the few rows that show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, read_rows

from windowpane.core.events import Usage
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.codex.early import CodexDocumentReader
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.records import (
    Broken,
    Compacted,
    ContentAdded,
    LimitStated,
    ModelCalled,
    QuotaStated,
    SessionDescribed,
    SessionOpened,
)


class Rollout:
    """Builds rows and reads them."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self._total = 0

    def row(self, kind: str, **payload: Any) -> Rollout:
        number = len(self.rows)
        self.rows.append({"timestamp": f"2026-01-01T00:00:{number:02}Z", "type": kind, "payload": payload})
        return self

    def start(self, model: str = "gpt-5") -> Rollout:
        self.row("session_meta", id="s", base_instructions={"text": "be good"})
        return self.row("turn_context", model=model)

    def item(self, kind: str, **payload: Any) -> Rollout:
        return self.row("response_item", **({"type": kind} | payload))

    def message(self, role: str, text: str) -> Rollout:
        kind = "output_text" if role == "assistant" else "input_text"
        return self.item("message", role=role, content=[{"type": kind, "text": text}])

    def count(self, tokens: int, *, repeated: bool = False, after: int = 0) -> Rollout:
        if not repeated:
            self._total += tokens
        last = {"input_tokens": tokens, "cached_input_tokens": tokens // 2, "output_tokens": 3}
        last["total_tokens"] = after or tokens + 3
        info = {
            "last_token_usage": last,
            "total_token_usage": {"input_tokens": self._total},
            "model_context_window": 1_000,
        }
        return self.row("event_msg", type="token_count", info=info)

    def read(self, tmp_path: Path, *, complete: bool = True, tail: bytes = b"") -> Read:
        return read_rows(CodexReader(complete=complete), tmp_path, self.rows, tail=tail)


def test_results_that_come_before_their_calls_count_belong_to_the_next_call(tmp_path: Path) -> None:
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .item("function_call", name="shell", arguments='{"c": 1}', call_id="c1")
        .item("function_call_output", call_id="c1", output="done")
        .count(100)
        .message("assistant", "bye")
        .count(120)
        .read(tmp_path)
    )

    assert read.order == [
        "system_prompt",
        "user_message",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "assistant_response",
        "ModelCalled",
    ]
    usage = read.of(ModelCalled)[0].usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.input_total) == (50, 50, 100)


def test_release_0_150_writes_items_and_states_what_went_to_the_cache(tmp_path: Path) -> None:
    rollout = Rollout().start().message("user", "go")
    for kind in ("item_started", "item_completed"):
        rollout.row(
            "event_msg", type=kind, item={"type": "UserMessage", "content": [{"type": "text", "text": "go"}]}
        )
    usage = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 30, "output_tokens": 3}
    rollout.message("assistant", "ok").row("event_msg", type="token_count", info={"last_token_usage": usage})
    read = rollout.read(tmp_path)

    (called,) = read.of(ModelCalled)
    assert called.usage == Usage(10, 3, 60, 30)
    assert (read.stats.user_turns, read.problems) == (1, [])


def test_repeated_counts_are_counted_once(tmp_path: Path) -> None:
    read = (
        Rollout().start().message("user", "go").message("assistant", "a").count(100).count(100, repeated=True)
    ).read(tmp_path)

    assert len(read.of(ModelCalled)) == 1
    assert read.stats.usage["input_tokens"] == 100
    assert read.stats.usage["token_count_events"] == 2


def test_compaction_records_the_retained_content_and_its_size(tmp_path: Path) -> None:
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    hidden = {"type": "compaction", "encrypted_content": "REDACTED"}
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .message("assistant", "a")
        .count(900)
        .row("compacted", message="", replacement_history=[kept, hidden])
        .count(0, repeated=True, after=300)
        .message("assistant", "b")
        .count(310)
        .read(tmp_path)
    )

    (compacted,) = read.of(Compacted)
    assert (compacted.tokens_before, compacted.tokens_after, compacted.summary) == (903, 300, None)
    user = next(content for content in read.of(ContentAdded) if content.content_type == "user_message")
    assert compacted.kept_keys == ("base_instructions", user.key)
    assert len(read.of(ModelCalled)) == 2
    assert read.stats.peak_context == 900


def test_what_is_sent_again_beside_an_encrypted_summary_is_no_summary(tmp_path: Path) -> None:
    rules = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "never push"}]}
    hidden = {"type": "compaction", "encrypted_content": "REDACTED"}
    rollout = Rollout().start().message("user", "go").message("assistant", "a").count(900)
    read = rollout.row("compacted", message="", replacement_history=[rules, hidden]).count(300).read(tmp_path)

    (compacted,) = read.of(Compacted)
    assert compacted.summary is None
    (added,) = read.records[read.records.index(compacted) + 1 :][:1]
    assert (added.content_type, added.text) == ("system_prompt", "never push")


def test_summary_of_older_releases_is_read(tmp_path: Path) -> None:
    new = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a summary"}]}
    started = Rollout().start().message("user", "go").message("assistant", "a").count(900)

    (first,) = started.row("compacted", message="in short").read(tmp_path).of(Compacted)
    second = started.row("compacted", message="", replacement_history=[new]).read(tmp_path).of(Compacted)[1]

    assert (first.summary, second.summary) == ("in short", "a summary")


def test_window_is_stated_once_until_it_changes(tmp_path: Path) -> None:
    read = (
        Rollout().start().row("event_msg", type="task_started", model_context_window=1_000).message("user", "go")
    )
    stated = read.message("assistant", "a").count(1).message("assistant", "b").count(2).read(tmp_path)

    assert [record.limit_tokens for record in stated.of(LimitStated)] == [1_000]


def test_a_count_with_the_same_totals_is_repeated_whatever_else_it_states(tmp_path: Path) -> None:
    usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    rollout = Rollout().start().message("user", "go").message("assistant", "a")
    for number in range(2):
        info = {"last_token_usage": usage, "total_token_usage": usage | {"a_later_field": number}}
        rollout.row("event_msg", type="token_count", info=info)
    read = rollout.read(tmp_path)

    assert len(read.of(ModelCalled)) == 1


def test_texts_that_events_repeat_are_counted_once(tmp_path: Path) -> None:
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .row("event_msg", type="user_message", message="go")
        .row("event_msg", type="agent_message", message="a")
        .message("assistant", "a")
        .count(5)
        .read(tmp_path)
    )

    assert read.stats.content_chars == 3
    assert read.stats.user_turns == 1


def test_reasoning_is_hidden_and_its_size_estimated(tmp_path: Path) -> None:
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .item("reasoning", encrypted_content="x" * 4_000)
        .item("reasoning", encrypted_content="REDACTED")
        .message("assistant", "a")
        .count(5)
        .read(tmp_path)
    )

    thinking = [content for content in read.of(ContentAdded) if content.content_type == "thinking"]
    assert [(content.text, content.tokens) for content in thinking] == [(None, 587), (None, None)]


def test_interrupted_call_has_no_usage(tmp_path: Path) -> None:
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .message("assistant", "a")
        .row("event_msg", type="turn_aborted")
        .message("user", "again")
        .message("assistant", "b")
        .count(7)
        .read(tmp_path)
    )

    assert [record.usage is None for record in read.of(ModelCalled)] == [True, False]


def test_forked_history_belongs_to_the_first_session(tmp_path: Path) -> None:
    read = Rollout().start().row("session_meta", id="parent").message("user", "go").read(tmp_path)

    assert {record.session_key for record in read.of(SessionOpened)} == {"s"}
    assert read.problems[0].severity == "odd"


def test_sub_agent_names_its_parent(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}
    read = Rollout().row("session_meta", id="s", source=source).message("user", "go").read(tmp_path)

    assert read.of(SessionOpened)[0].parent_key == "p"


def test_open_call_of_a_growing_file_is_held_back(tmp_path: Path) -> None:
    started = (
        Rollout()
        .start()
        .message("user", "go")
        .item("function_call", name="shell", arguments="{}", call_id="c1")
        .item("function_call_output", call_id="c1", output="done")
    )

    assert started.read(tmp_path, complete=False).order == ["system_prompt", "user_message", "tool_call"]
    assert started.read(tmp_path).order[-2:] == ["ModelCalled", "tool_result"]


def test_an_encrypted_compaction_is_one_compaction(tmp_path: Path) -> None:
    rollout = Rollout().start().message("user", "go").message("assistant", "done").count(90_000)
    rollout.item("compaction", encrypted_content="b3BhcXVl").row("compacted", message="", replacement_history=[])
    read = rollout.count(9_000).read(tmp_path)

    assert len(read.of(Compacted)) == 1
    assert read.problems == []


def test_image_results_and_unknown_items_do_not_stop_the_rest(tmp_path: Path) -> None:
    output = [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "data:..."}]
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .item("local_shell_call", call_id="c", action={"command": ["ls"]})
        .item("function_call_output", call_id="c", output=output)
        .item("from_the_future")
        .count(9)
        .read(tmp_path)
    )

    (result,) = [content for content in read.of(ContentAdded) if content.content_type == "tool_result"]
    assert (result.text, result.media) == ("seen", 1)
    assert "from_the_future" in read.problems[0].problem


def test_rows_without_payload_are_odd_and_lost_lines_break(tmp_path: Path) -> None:
    read = Rollout().start().message("user", "go").read(tmp_path, tail=b'{"type":"x"}\nrubbish\n')

    assert (read.stats.odd_lines, read.stats.bad_lines) == (1, 1)
    assert [record.line for record in read.of(Broken)] == [5]


@pytest.mark.parametrize(("back_seconds", "remarks"), [(59, 0), (61, 1)])
def test_a_row_a_little_out_of_order_is_not_remarked(back_seconds: int, remarks: int, tmp_path: Path) -> None:
    rollout = Rollout().start().message("user", "go").message("assistant", "done").count(10)
    for row in rollout.rows:
        row["timestamp"] = "2026-01-01T00:10:00Z"
    earlier = 600 - back_seconds
    rollout.rows[-1]["timestamp"] = f"2026-01-01T00:{earlier // 60:02}:{earlier % 60:02}Z"
    problems = rollout.read(tmp_path).problems

    assert [problem.field for problem in problems] == ["timestamp"] * remarks


def test_rows_of_early_releases_have_no_envelope(tmp_path: Path) -> None:
    """A header without a type, items without times or counts, and marks of the program's state between them.

    The rows are in the form of rollouts of August 2025; that they state no usage is reported once.
    """
    environment = "<environment_context>\n  <cwd>/src/shop</cwd>\n</environment_context>"
    rows: list[Json] = [
        {"id": "early", "timestamp": "2025-08-02T17:17:41.762Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": environment}]},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "ls"}]},
        {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": '{"c": 1}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "one file"}]},
        {"record_type": "state"},
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert isinstance(reader_for(path, all_readers()), CodexReader)
    read = Read(CodexReader(complete=True), path)

    assert read.order == [
        "memory_injection",
        "user_message",
        "thinking",
        "tool_call",
        "ModelCalled",
        "tool_result",
        "assistant_response",
        "ModelCalled",
    ]
    assert [called.usage for called in read.of(ModelCalled)] == [None, None]
    assert (read.stats.api_calls, read.stats.user_turns, read.stats.tool_calls) == (2, 1, 1)
    assert [described.folder for described in read.of(SessionDescribed)] == ["", "/src/shop"]
    assert [problem.problem for problem in read.problems] == [
        "the recording does not state the usage of the calls"
    ]


def test_a_document_of_the_first_releases_is_read(tmp_path: Path) -> None:
    """Until July 2025 a session was one document with its items, which call the local shell."""
    document = {
        "session": {"timestamp": "2025-06-26T10:00:00.000Z", "id": "5556f03d", "instructions": ""},
        "items": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}], "type": "message"},
            {"id": "r", "type": "reasoning", "summary": [], "duration_ms": 10},
            {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", "call_id": "c1", "output": "a.txt"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ],
    }
    path = tmp_path / "rollout-2025-06-26-5556f03d.json"
    path.write_text(json.dumps(document))
    reader = reader_for(path, all_readers())
    assert isinstance(reader, CodexDocumentReader)
    read = Read(reader, path)

    assert [opened.session_key for opened in read.of(SessionOpened)] == ["5556f03d"]
    assert (read.stats.api_calls, read.stats.tool_calls, read.stats.messages) == (2, 1, 4)


def test_messages_of_other_agents_and_their_tools_enter_the_window(tmp_path: Path) -> None:
    """Releases since July 2026 write what another agent sent, in part encrypted, and tools that are added."""
    content = [
        {"type": "input_text", "text": "Payload: done"},
        {"type": "encrypted_content", "encrypted_content": "a" * 4_000},
    ]
    read = (
        Rollout()
        .start()
        .message("user", "go")
        .item("additional_tools", role="developer", tools=[{"name": "exec"}, {"name": "wait"}])
        .item("agent_message", author="reviewer", recipient="main", content=content)
        .item("ghost_snapshot", ghost_commit={"id": "x"})
        .row("world_state", full=True)
        .row("novelty", a=1)
        .row("novelty", a=1)
        .message("assistant", "ok")
        .count(100)
        .read(tmp_path)
    )

    assert read.order == [
        "system_prompt", "user_message", "tool_definition", "tool_definition", "memory_injection",
        "memory_injection", "assistant_response", "ModelCalled",
    ]  # fmt: skip
    shown, hidden = (one for one in read.of(ContentAdded) if one.content_type == "memory_injection")
    assert (shown.text, hidden.text, hidden.tokens) == ("Payload: done", None, 587)
    assert [problem.problem for problem in read.problems] == ["rows of the unknown type 'novelty' are skipped"]


def test_a_review_is_a_child_of_the_thread_that_started_it(tmp_path: Path) -> None:
    rollout = Rollout().row("session_meta", id="s", source={"subagent": "review"}, parent_thread_id="root")
    read = rollout.row("turn_context", model="gpt-5").message("assistant", "ok").count(10).read(tmp_path)

    assert {opened.parent_key for opened in read.of(SessionOpened)} == {"root"}


def test_injected_content_is_known_by_the_kinds_that_a_message_states(tmp_path: Path) -> None:
    """Releases since August 2026 state the kind of each part."""
    kinds = {"content_item_kinds": ["plugins.recommendations", "user.text"]}
    parts = [{"type": "input_text", "text": "try this"}, {"type": "input_text", "text": "go"}]
    message = {"role": "user", "content": parts, "internal_chat_message_metadata_passthrough": kinds}
    read = Rollout().start().item("message", **message).message("assistant", "ok").count(10).read(tmp_path)

    assert read.order[1:3] == ["memory_injection", "user_message"]


@pytest.mark.parametrize("start", ["recommended_plugins", "skill", "subagent_notification"])
def test_injected_content_is_known_by_the_start_of_its_text(start: str, tmp_path: Path) -> None:
    """A title would be made of it otherwise."""
    written = f"<{start}>\nHere is a list.\n</{start}>"
    read = Rollout().start().message("user", written).message("user", "go").message("assistant", "ok").count(10)

    assert read.read(tmp_path).order[1:3] == ["memory_injection", "user_message"]


def test_a_call_has_the_id_of_the_record_before_its_count(tmp_path: Path) -> None:
    """Releases since August 2026 write a record with the same numbers, which is not another call."""
    usage = {"input_tokens": 100, "cached_input_tokens": 50, "output_tokens": 3}
    rollout = Rollout().start().message("user", "go").message("assistant", "ok")
    rollout.row("token_usage_record", thread_id="s", response_id="resp_0123456789abcdef0123", usage=usage).count(
        100
    )
    read = rollout.message("user", "more").message("assistant", "ok").count(120).read(tmp_path)

    calls = read.of(ModelCalled)
    assert [call.response_id for call in calls] == ["resp_0123456789abcdef0123", None]
    assert (read.stats.api_calls, read.stats.usage["input_tokens"], read.problems) == (2, 220, [])


@pytest.mark.parametrize(("thread", "expected"), [("s", "s~7"), ("other", "s")], ids=["same-thread", "fork"])
def test_a_rollout_that_refers_to_earlier_rows_is_a_session_of_its_calls(
    tmp_path: Path, thread: str, expected: str
) -> None:
    """Releases since September 2026 continue a thread in another file, which names the rows before it."""
    base = {"thread_id": thread, "end_ordinal_exclusive": 7, "end_byte_offset": 123}
    rollout = Rollout().row(
        "session_meta", id="s", history_mode="paginated", history_base=base, forked_from_id="x"
    )
    read = rollout.row("turn_context", model="gpt-5").message("assistant", "ok").count(10).read(tmp_path)

    assert {opened.session_key for opened in read.of(SessionOpened)} == {expected}
    assert [problem.problem for problem in read.problems] == [
        "starts with the rows of an earlier rollout: unattributed"
    ]


def test_the_quota_of_a_plan_is_stated_when_a_whole_percent_changes(tmp_path: Path) -> None:
    rollout = Rollout().start()
    for primary, resets in ((12.0, 1_782_494_656), (12.0, 1_782_494_663), (13.0, 1_782_494_663)):
        limits = {
            "primary": {"used_percent": primary, "window_minutes": 300, "resets_at": resets},
            "plan_type": "pro",
        }
        rollout.row("event_msg", type="token_count", info=None, rate_limits=limits)
    rollout.row("event_msg", type="token_count", info=None, rate_limits={"primary": None, "secondary": None})
    rollout.row("event_msg", type="token_count", info=None, rate_limits={"primary": {"used_percent": "much"}})

    records = rollout.read(tmp_path).records
    stated = [record.quota for record in records if isinstance(record, QuotaStated)]

    assert [(one.plan, one.windows[0].minutes, one.windows[0].used_ratio) for one in stated] == [
        ("pro", 300, 0.12), ("pro", 300, 0.13),
    ]  # fmt: skip
