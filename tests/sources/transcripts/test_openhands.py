"""OpenHands: counts of real recordings, and condensations, delegates and folders as its sources write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reads import Read

from windowpane.core.codec import encode
from windowpane.core.digests import keyed_digester
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.openhands.reader import OpenHandsReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    LimitStated,
    ModelCalled,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)
from windowpane.testing import CharacterCounter

FILES = ("v0_resolver_output.jsonl", "v0_traj_basic.json", "v1_goal_events.jsonl", "v1_pr_events_small.jsonl")
COUNTS = (
    "messages", "tool_calls", "content_chars", "max_tool_output_chars", "compactions", "evictions", "bad_lines",
)  # fmt: skip
PLAYBACK = PlaybackSettings(digest=keyed_digester(b"key"), counter_for=lambda _: CharacterCounter())
Json = dict[str, Any]


@pytest.mark.parametrize("file", FILES)
def test_counts_are_those_of_the_manifest(sessions_dir: Path, file: str) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == f"openhands/{file}")
    read = Read(OpenHandsReader(complete=True), sessions_dir / "openhands" / file)

    assert {name: getattr(read.stats, name) for name in COUNTS} == {name: expected[name] for name in COUNTS}
    assert read.stats.user_turns == expected["turns"]
    assert [problem for problem in read.problems if problem.severity == "bad"] == []


def test_totals_become_the_usage_of_calls(sessions_dir: Path) -> None:
    read = Read(OpenHandsReader(complete=True), sessions_dir / "openhands" / "v1_goal_events.jsonl")
    usage = [call.usage for call in read.of(ModelCalled)]

    assert [one.input_total + one.output_tokens for one in usage] == [1_371, 35_484, 35_774, 36_176]
    assert sum(one.input_total for one in usage) == read.stats.usage["prompt_tokens"] == 107_458
    assert sum(one.cache_read_tokens for one in usage) == 68_193


def test_a_task_without_usage_has_the_prices_of_its_calls(sessions_dir: Path) -> None:
    read = Read(OpenHandsReader(complete=True), sessions_dir / "openhands" / "v0_resolver_output.jsonl")

    assert sum(call.cost_dollars for call in read.of(ModelCalled)) == pytest.approx(0.070713 + 1.152933)
    assert [(one.title, one.repository) for one in read.of(SessionDescribed)] == [
        ("Add MIT license", "neubig/pr-viewer"), ("Add a toggle for dark mode", "neubig/pr-viewer"),
    ]  # fmt: skip
    assert [str(problem) for problem in read.problems if "usage" in str(problem)][1:] == []


# -- the SDK ----------------------------------------------------------------------------------------------------


def sdk(kind: str, number: int, **fields: Any) -> Json:
    source = {"ActionEvent": "agent", "MessageEvent": "user"}.get(kind, "environment")
    return {
        "kind": kind, "id": f"e{number}", "timestamp": f"2026-01-01T00:00:{number:02}", "source": source,
    } | fields  # fmt: skip


def message(number: int, text: str) -> Json:
    return sdk("MessageEvent", number, llm_message={"role": "user", "content": [{"type": "text", "text": text}]})


def acted(number: int, response: str, call: str) -> Json:
    return sdk(
        "ActionEvent", number, thought=[{"text": f"thought {response}"}], tool_name="terminal", tool_call_id=call,
        tool_call={"arguments": '{"command": "ls"}'}, llm_response_id=response,
    )  # fmt: skip


def observed(number: int, call: str, text: str) -> Json:
    return sdk(
        "ObservationEvent",
        number,
        tool_name="terminal",
        tool_call_id=call,
        observation={"content": [{"text": text}]},
    )


CONVERSATION = [
    sdk("SystemPromptEvent", 0, system_prompt={"text": "be good"}, tools=[{"title": "terminal"}]),
    message(1, "start"),
    acted(2, "r1", "c1"), acted(3, "r1", "c2"),
    observed(4, "c1", "one"), observed(5, "c2", "two"),
    sdk("Condensation", 6, forgotten_event_ids=["e2", "e3", "e4", "e5"], summary="did things"),
    acted(7, "r2", "c3"), observed(8, "c3", "three"),
]  # fmt: skip


def folder(tmp_path: Path, events: list[Json], state: Json | None = None) -> Path:
    kept = tmp_path / "0123456789abcdef" / "events"
    kept.mkdir(parents=True)
    for number, event in enumerate(events):
        (kept / f"event-{number:05}-{event['id']}.json").write_text(json.dumps(event))
    if state is not None:
        (kept.parent / "base_state.json").write_text(json.dumps(state))
    return kept


STATE = {
    "agent": {"llm": {"model": "claude-sonnet-4-5"}}, "workspace": {"working_dir": "/srv/shop"},
    "stats": {"usage_to_metrics": {"agent": {"token_usages": [
        {"response_id": "r1", "model": "claude-sonnet-4-5", "prompt_tokens": 100, "completion_tokens": 10,
         "cache_read_tokens": 40},
        {"response_id": "r2", "model": "claude-sonnet-4-5", "prompt_tokens": 60, "completion_tokens": 5},
    ], "costs": [{"cost": 0.5}, {"cost": 0.25}], "response_latencies": [{"response_id": "r1", "latency": 2.5}]}}},
}  # fmt: skip


def test_a_folder_of_events_is_one_conversation(tmp_path: Path) -> None:
    events = folder(tmp_path, CONVERSATION, STATE)

    assert list(files_of([tmp_path])) == [events]
    assert isinstance(reader_for(events, [OpenHandsReader()]), OpenHandsReader)
    read = Read(OpenHandsReader(complete=True), events)
    assert read.order == [
        "system_prompt", "tool_definition", "user_message", "assistant_response", "tool_call",
        "tool_call", "ModelCalled", "tool_result", "tool_result", "Compacted", "assistant_response", "tool_call",
        "ModelCalled", "tool_result",
    ]  # fmt: skip
    first, second = read.of(ModelCalled)
    assert (first.usage.input_total, first.usage.cache_read_tokens, first.cost_dollars) == (100, 40, 0.5)
    assert (first.latency_seconds, second.cost_dollars) == (2.5, 0.25)
    assert read.of(SessionOpened)[0].session_key == "0123456789abcdef"
    assert read.of(SessionDescribed)[0].folder == "/srv/shop"


def test_a_condensation_replaces_what_it_forgets(tmp_path: Path) -> None:
    read = Read(OpenHandsReader(complete=True), folder(tmp_path, CONVERSATION, STATE))
    (compacted,) = read.of(Compacted)
    (key,) = session_keys(read.records)
    events = list(session_events(read.records, key=key, source="openhands", playback=PLAYBACK))
    (compressed,) = [event.data for event in events if event.type == "content.compressed"]

    assert (compacted.kept_keys, compacted.summary) == (("e0", "e1"), "did things")
    assert len(compressed.removed) == 5
    assert compressed.outcome == "accepted"


def test_a_requested_condensation_is_manual(tmp_path: Path) -> None:
    request = sdk("CondensationRequest", 5, reason="manual")
    read = Read(OpenHandsReader(complete=True), folder(tmp_path, [*CONVERSATION[:6], request, *CONVERSATION[6:]]))
    again = Read(OpenHandsReader(complete=True), folder(tmp_path / "own", CONVERSATION))

    assert [compacted.trigger for compacted in (*read.of(Compacted), *again.of(Compacted))] == ["manual", "auto"]


def test_sub_agents_are_in_a_folder_of_their_parent(tmp_path: Path) -> None:
    child = folder(tmp_path / "feed" / "subagents", CONVERSATION)
    (opened,) = Read(OpenHandsReader(complete=True), child).of(SessionOpened)

    assert opened.parent_key == "feed"


def test_tool_calls_of_another_agents_program_are_content(tmp_path: Path) -> None:
    stated = {"tool_call_id": "x1", "title": "Read a.py", "raw_input": {"path": "a.py"}}
    block = {"type": "content", "content": {"type": "text", "text": "print"}}
    events = [
        message(0, "go"),
        sdk("ACPToolCallEvent", 1, status="pending", **stated),
        sdk("ACPToolCallEvent", 2, status="completed", content=[block], **stated),
        sdk("ACPToolCallEvent", 3, status="completed", parent_tool_call_id="x1", **stated),
    ]
    read = Read(OpenHandsReader(complete=True), folder(tmp_path, events))

    assert read.order == ["user_message", "tool_call", "tool_result"]
    assert [(c.text, c.tool_call_id) for c in read.of(ContentAdded)[1:]] == [
        ('{"path": "a.py"}', "x1"),
        ("print", "x1"),
    ]


@pytest.mark.parametrize("complete", [True, False])
def test_a_growing_folder_only_appends(tmp_path: Path, *, complete: bool) -> None:
    whole = folder(tmp_path / "whole", CONVERSATION, STATE)
    finished = [encode(event) for event in _events(whole, complete=True)]
    for length in range(1, len(CONVERSATION)):
        growing = folder(tmp_path / str(length), CONVERSATION[:length], STATE)
        part = [encode(event) for event in _events(growing, complete=False)]
        assert part == finished[: len(part)]
    if complete:
        assert len(finished) > 20


def _events(path: Path, *, complete: bool) -> list[Any]:
    read = Read(OpenHandsReader(complete=complete), path)
    return [
        event
        for key in session_keys(read.records)
        for event in session_events(read.records, key=key, source="openhands", playback=PLAYBACK)
    ]


def test_usage_of_several_calls_at_once_is_unknown(tmp_path: Path) -> None:
    def totals(number: int, prompt: int, completion: int, last: int) -> Json:
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "per_turn_token": last}
        metrics = {"model_name": "m", "accumulated_token_usage": usage | {"context_window": 200_000}}
        value = {"usage_to_metrics": {"default": metrics}}
        return sdk("ConversationStateUpdateEvent", number, key="stats", value=value)

    path = tmp_path / "events.jsonl"
    events = [message(0, "go"), totals(1, 100, 10, 110), acted(2, "r1", "c1"), observed(3, "c1", "x"),
              totals(4, 500, 50, 220), acted(5, "r3", "c3"), observed(6, "c3", "y")]  # fmt: skip
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    read = Read(OpenHandsReader(complete=True), path)

    first, second = read.of(ModelCalled)
    assert (first.usage.input_total, second.usage) == (100, None)
    assert [limit.limit_tokens for limit in read.of(LimitStated)] == [200_000]


# -- before the SDK --------------------------------------------------------------------------------------------


def classic(number: int, source: str = "agent", **fields: Any) -> Json:
    return {"id": number, "timestamp": f"2025-01-01T00:00:{number:02}", "source": source} | fields


DELEGATED = [
    classic(0, "user", action="message", args={"content": "start"}),
    classic(1, action="delegate", args={"agent": "Browser", "inputs": {"task": "look"}, "thought": "I ask"}),
    classic(2, action="browse", args={"url": "u", "thought": "open"}),
    classic(3, "environment", observation="browse", content="page", extras={}, cause=2),
    classic(4, observation="delegate", content="found it", extras={"outputs": {}}, cause=1),
    classic(5, action="condensation", args={
        "forgotten_events_start_id": 1, "forgotten_events_end_id": 4, "summary": "found", "summary_offset": 1,
    }),
    classic(6, action="finish", args={"final_thought": "done", "outputs": {}}),
]  # fmt: skip


def test_a_delegate_has_a_session_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(DELEGATED))
    read = Read(OpenHandsReader(complete=True), path)
    keys = session_keys(read.records)
    parent, child = keys

    assert child == f"{parent}/1"
    assert [opened.parent_key for opened in read.of(SessionOpened)] == [None, parent, None]
    inside, current = {key: [] for key in keys}, ""
    for record in read.records:
        if isinstance(record, SessionOpened):
            current = record.session_key
        elif isinstance(record, ContentAdded):
            inside[current].append(record.content_type)
    assert inside[child] == ["assistant_response", "tool_call", "tool_result"]
    assert inside[parent] == [
        "user_message",
        "assistant_response",
        "tool_call",
        "tool_result",
        "assistant_response",
    ]
    (result,) = [one for one in read.of(ContentAdded) if one.text == "found it"]
    assert result.child_key == child
    assert len(read.of(SessionClosed)) == 1


def test_delegates_within_delegates_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    delegations = [classic(number, action="delegate", args={"agent": "Browser"}) for number in range(1, 30)]
    path.write_text(json.dumps([DELEGATED[0], *delegations]))
    read = Read(OpenHandsReader(complete=True), path)

    assert len(session_keys(read.records)) == 1 + 16


def test_a_condensation_by_a_range_of_events(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(DELEGATED))
    (compacted,) = Read(OpenHandsReader(complete=True), path).of(Compacted)

    assert (compacted.kept_keys, compacted.summary) == (("0",), "found")


def test_the_first_reply_is_held_back_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(DELEGATED[:3]))

    assert len(Read(OpenHandsReader(complete=True), path).of(ModelCalled)) == 2
    assert len(Read(OpenHandsReader(complete=False), path).of(ModelCalled)) == 1


def test_a_long_task_is_recognized_by_its_start(tmp_path: Path) -> None:
    history = [classic(0, "user", action="message", args={"content": "x" * 100_000}), *DELEGATED[-1:]]
    usage = {"model": "m", "prompt_tokens": 30, "completion_tokens": 4, "response_id": "r"}
    row = {
        "instance_id": "shop-1", "instruction": "do it", "metadata": {"llm_config": {"model": "gpt-4o"}},
        "history": history,
        "metrics": {"accumulated_cost": 0.5, "token_usages": [usage], "costs": [{"cost": 0.5}]},
    }  # fmt: skip
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({"instance_id": "shop-2", "error": "died"}) + "\n")

    reader = reader_for(path, all_readers(complete=True))
    read = Read(reader, path)

    assert reader.format == "openhands"
    assert [(one.model, one.session_key[:6]) for one in read.of(SessionOpened)] == [("gpt-4o", "shop-1")]
    assert read.of(SessionDescribed)[0].label == "shop-1"
    assert [call.cost_dollars for call in read.of(ModelCalled)] == [0.5]
    assert ["history" in problem.field for problem in read.problems if problem.severity == "bad"] == [True]
