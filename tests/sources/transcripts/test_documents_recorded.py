"""Real recordings of the document formats, against values that were computed without this package."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from windowpane.core.digests import keyed_digester
from windowpane.core.events import PressureMeasured
from windowpane.models.tokens import counter_for
from windowpane.sources.transcripts.formats.mini_swe_agent import MiniSweAgentReader
from windowpane.sources.transcripts.formats.openai_chat import OpenAIChatReader
from windowpane.sources.transcripts.formats.swe_agent import SweAgentReader
from windowpane.sources.transcripts.formats.tau_bench import Tau2Reader, TauBenchReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats, Problem, Reader
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled, Record, SessionClosed, SessionOpened

READERS: dict[str, Reader] = {
    reader.format: reader
    for reader in (
        MiniSweAgentReader(), OpenAIChatReader(), SweAgentReader(), TauBenchReader(), Tau2Reader(),
    )
}  # fmt: skip

CHAT = "mini_swe_agent/chat_sqlfluff-2419.traj.json"
FAILED = "mini_swe_agent/reasoner_pvlib-1606_error.traj.json"
BARE = "mini_swe_agent/v0_github_issue.traj.json"
DEMO = "swe_agent/gpt4_pydicom-1458.traj"
HISTORY_ONLY = "swe_agent/fc_simple.traj"
REPLAY = "swe_agent/marshmallow_fc_replace.traj"
TAU = "tau_bench/gpt-4o-airline_trial0_first10.json"
TAU2 = "tau2_bench/telecom_gpt-4o_first6.json"
FILES = (CHAT, FAILED, BARE, DEMO, HISTORY_ONLY, REPLAY, TAU, TAU2)

FIGURES = (
    "messages", "tool_calls", "content_chars", "max_tool_output_chars", "compactions", "evictions", "bad_lines",
)  # fmt: skip

CORRECTED: dict[tuple[str, str], int] = {
    # The manifest took the task statement (the first user message, 2331 characters) for a tool output; the
    # largest observation is the third user message.
    (BARE, "max_tool_output_chars"): 616,
    # The manifest looked for outputs in the trajectory only, which this file has not; its history has five.
    (HISTORY_ONLY, "max_tool_output_chars"): 609,
}
"""Values of the manifest that the recording itself contradicts."""


class Reading(NamedTuple):
    records: list[Record]
    stats: FileStats
    problems: list[Problem]


def read(sessions_dir: Path, file: str) -> Reading:
    stats, problems = FileStats(), []
    reader = READERS[file.split("/", maxsplit=1)[0]]
    return Reading(list(reader.read(sessions_dir / file, stats=stats, problems=problems)), stats, problems)


def contents(reading: Reading, content_type: str) -> list[ContentAdded]:
    return [
        record
        for record in reading.records
        if isinstance(record, ContentAdded) and record.content_type == content_type
    ]


def calls(reading: Reading) -> list[ModelCalled]:
    return [record for record in reading.records if isinstance(record, ModelCalled)]


def manifest(sessions_dir: Path) -> dict[str, dict[str, Any]]:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    return {entry["file"]: entry["stats"] for entry in entries}


def document(sessions_dir: Path, file: str) -> Any:
    return json.loads((sessions_dir / file).read_text())


@pytest.mark.parametrize("file", FILES)
class TestManifest:
    def test_values_are_those_of_the_manifest(self, sessions_dir: Path, file: str) -> None:
        expected, stats = manifest(sessions_dir)[file], read(sessions_dir, file).stats

        for name in FIGURES:
            assert getattr(stats, name) == CORRECTED.get((file, name), expected[name]), name
        assert stats.user_turns == expected["turns"]

    def test_usage_sums_are_those_of_the_manifest(self, sessions_dir: Path, file: str) -> None:
        expected = dict(manifest(sessions_dir)[file]["usage"] or {})
        stats = read(sessions_dir, file).stats

        if "api_calls" in expected:
            assert stats.api_calls == expected.pop("api_calls")
        assert stats.peak_context == expected.pop("peak_context", 0)
        for cost in ("instance_cost", "total_cost"):
            if cost in expected:
                expected[f"{cost}_microusd"] = round(expected.pop(cost) * 1e6)
        assert stats.usage == expected

    def test_nothing_is_wrong_with_it(self, sessions_dir: Path, file: str) -> None:
        reading = read(sessions_dir, file)

        assert [one for one in reading.problems if one.severity != "odd"] == []
        assert reading.stats.odd_lines == 0

    def test_every_result_answers_a_call_of_its_session(self, sessions_dir: Path, file: str) -> None:
        open_calls: dict[str | None, str | None] = {}
        results = 0
        for record in read(sessions_dir, file).records:
            if isinstance(record, SessionOpened):
                open_calls = {}
            elif isinstance(record, ContentAdded) and record.content_type == "tool_call":
                open_calls[record.tool_call_id] = record.tool_name
            elif isinstance(record, ContentAdded) and record.content_type == "tool_result":
                assert open_calls[record.tool_call_id] == record.tool_name
                results += 1

        assert results > 0

    def test_reading_twice_gives_the_same_records(self, sessions_dir: Path, file: str) -> None:
        assert read(sessions_dir, file).records == read(sessions_dir, file).records


def test_the_corrected_outputs_match_the_recordings(sessions_dir: Path) -> None:
    bare = document(sessions_dir, BARE)
    history = document(sessions_dir, HISTORY_ONLY)["history"]

    assert bare[1]["content"].startswith("Please solve this issue")
    assert len(bare[1]["content"]) == 2331
    assert max(len(m["content"]) for m in bare[2:] if m["role"] == "user") == 616
    assert max(len(m["content"]) for m in history if m["role"] == "tool") == 609


def test_every_file_of_the_collection_is_claimed_by_its_own_reader_only(sessions_dir: Path) -> None:
    claimed = {}
    for file in manifest(sessions_dir):
        path = sessions_dir / file
        with path.open("rb") as opened:
            head = opened.read(65536)
        names = [name for name, reader in READERS.items() if reader.recognizes(path, head)]
        if names:
            claimed[file] = names

    assert claimed == {file: [file.split("/", maxsplit=1)[0]] for file in FILES}


class TestMiniSweAgent:
    def test_usage_of_a_call_is_split_by_cache(self, sessions_dir: Path) -> None:
        first = calls(read(sessions_dir, CHAT))[0]

        assert first.usage is not None
        assert (first.usage.input_tokens, first.usage.cache_read_tokens) == (1220, 320)
        assert first.usage.input_total == 1540
        assert first.usage.output_tokens == 85
        assert first.cost_dollars == pytest.approx(0.00038626)
        assert first.at == pytest.approx(1775715329.678209)
        assert first.stop_reason == "tool_calls"

    def test_costs_sum_to_the_total_of_the_run(self, sessions_dir: Path) -> None:
        told = document(sessions_dir, CHAT)["info"]["model_stats"]["instance_cost"]

        assert sum(call.cost_dollars or 0 for call in calls(read(sessions_dir, CHAT))) == pytest.approx(told)

    def test_the_window_holds_the_cut_output_not_the_raw_one(self, sessions_dir: Path) -> None:
        messages = document(sessions_dir, CHAT)["messages"]

        sent = [message["content"] for message in messages if message["role"] == "tool"]
        assert [result.text for result in contents(read(sessions_dir, CHAT), "tool_result")] == sent

    def test_a_run_ends_with_its_exit_status(self, sessions_dir: Path) -> None:
        endings = [read(sessions_dir, file).records[-1] for file in (CHAT, FAILED)]

        assert endings == [SessionClosed("Submitted"), SessionClosed("error: InternalServerError")]

    def test_the_failed_call_is_not_counted(self, sessions_dir: Path) -> None:
        counted = document(sessions_dir, FAILED)["info"]["model_stats"]["api_calls"]

        assert counted == 5
        assert len(calls(read(sessions_dir, FAILED))) == 4

    def test_the_exit_message_never_enters_the_window(self, sessions_dir: Path) -> None:
        result = document(sessions_dir, CHAT)["messages"][-1]["content"]
        texts = [record.text for record in read(sessions_dir, CHAT).records if isinstance(record, ContentAdded)]

        assert result not in texts

    def test_thinking_comes_before_the_reply(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, FAILED)

        assert len(contents(reading, "thinking")) == 4
        assert sum(len(content.text or "") for content in contents(reading, "thinking")) == 397

    def test_a_command_in_the_text_becomes_a_call_without_losing_a_character(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, BARE)
        replies = [
            message["content"] for message in document(sessions_dir, BARE) if message["role"] == "assistant"
        ]
        said, acted = contents(reading, "assistant_response"), contents(reading, "tool_call")

        assert [(a.text or "") + (b.text or "") for a, b in zip(said, acted, strict=True)] == replies
        assert len(contents(reading, "user_message")) == 1
        assert len(contents(reading, "tool_result")) == 10


class TestSweAgent:
    def test_a_demonstration_is_injected_memory(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, DEMO)

        assert [len(content.text or "") for content in contents(reading, "memory_injection")] == [19388]
        assert [len(content.text or "") for content in contents(reading, "user_message")] == [4591]

    def test_thought_and_action_are_parts_of_one_reply(self, sessions_dir: Path) -> None:
        history = document(sessions_dir, DEMO)["history"]
        reading = read(sessions_dir, DEMO)
        replies = [message for message in history if message["role"] == "assistant"]
        said, acted = contents(reading, "assistant_response"), contents(reading, "tool_call")

        assert [content.text for content in said] == [reply["thought"] for reply in replies]
        assert [(a.text or "") + (b.text or "") for a, b in zip(said, acted, strict=True)] == [
            reply["content"] for reply in replies
        ]
        assert [content.tool_name for content in acted[:2]] == ["create", "edit"]

    def test_native_calls_keep_their_ids(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, HISTORY_ONLY)

        assert contents(reading, "tool_call")[0].tool_call_id == "call_PbWErNIge3YTrli3fiVvmIid"
        assert contents(reading, "tool_result")[0].tool_call_id == "call_PbWErNIge3YTrli3fiVvmIid"
        assert contents(reading, "tool_result")[0].tool_name == "find_file"

    def test_totals_of_the_run_are_not_assigned_to_a_call(self, sessions_dir: Path) -> None:
        """There is no usage per call, so no call has any."""
        assert {call.usage for call in calls(read(sessions_dir, DEMO))} == {None}

    def test_instance_and_model_come_from_the_replay_settings(self, sessions_dir: Path) -> None:
        opened = read(sessions_dir, REPLAY).records[0]

        assert isinstance(opened, SessionOpened)
        assert opened.session_key.startswith("marshmallow-code__marshmallow-1867-")
        assert opened.model == "gpt-4o"


class TestTau:
    def test_each_task_is_a_session_with_its_messages(self, sessions_dir: Path) -> None:
        records = read(sessions_dir, TAU).records
        keys = [record.session_key for record in records if isinstance(record, SessionOpened)]

        assert len(set(keys)) == 10
        assert Counter(record.reason for record in records if isinstance(record, SessionClosed)) == {
            "completed": 10
        }

    def test_nothing_is_invented(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, TAU)

        assert {call.usage for call in calls(reading)} == {None}
        assert {record.at for record in reading.records if isinstance(record, ContentAdded | ModelCalled)} == {
            None
        }


class TestTau2:
    def test_only_the_agents_window_is_seen(self, sessions_dir: Path) -> None:
        """The simulated user's calls and their results stay out; the agent's are all there."""
        messages = [m for s in document(sessions_dir, TAU2)["simulations"] for m in s["messages"]]
        reading = read(sessions_dir, TAU2)

        own = [c["id"] for m in messages if m["role"] == "assistant" for c in m["tool_calls"] or ()]
        assert [content.tool_call_id for content in contents(reading, "tool_call")] == own
        assert [content.tool_call_id for content in contents(reading, "tool_result")] == [
            m["id"] for m in messages if m["role"] == "tool" and m["requestor"] == "assistant"
        ]
        assert [content.text for content in contents(reading, "user_message")] == [
            m["content"] for m in messages if m["role"] == "user" and not m["tool_calls"]
        ]

    def test_usage_of_the_user_is_reported_apart(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, TAU2)

        assert sum(call.usage.input_total for call in calls(reading) if call.usage) == 480229
        assert reading.stats.usage["user_prompt_tokens"] == 248137
        assert reading.stats.peak_context == 8102

    def test_the_opening_line_is_not_a_model_call(self, sessions_dir: Path) -> None:
        reading = read(sessions_dir, TAU2)

        assert len([call for call in calls(reading) if call.usage is None]) == 6
        assert reading.stats.api_calls == len(calls(reading)) - 6

    def test_the_policy_is_in_the_window(self, sessions_dir: Path) -> None:
        policies = {content.text for content in contents(read(sessions_dir, TAU2), "system_prompt")}

        assert policies == {document(sessions_dir, TAU2)["info"]["environment_info"]["policy"]}

    def test_times_rise_within_a_simulation(self, sessions_dir: Path) -> None:
        """Times are seconds since the epoch and never run backwards."""
        last = 0.0
        for record in read(sessions_dir, TAU2).records:
            if isinstance(record, SessionOpened):
                last = record.at or 0.0
                assert last > 1.7e9
            elif isinstance(record, ContentAdded | ModelCalled | SessionClosed):
                assert record.at is not None
                assert record.at >= last
                last = record.at


@pytest.mark.parametrize(("file", "bound"), [(TAU2, 0.01), (CHAT, 0.05), (FAILED, 0.05)])
def test_read_content_equals_sent_content(sessions_dir: Path, file: str, bound: float) -> None:
    """Played into a tracker, each call's size is foretold to within the counter's error, and the peak is exact.

    Content that never entered, or that entered unseen, would show here: the provider counted every call.
    """
    reading = read(sessions_dir, file)
    playback = PlaybackSettings(digest=keyed_digester(b"key"), counter_for=partial(counter_for, wait=True))
    source = file.split("/", maxsplit=1)[0]
    peak = 0
    for key in session_keys(reading.records):
        for event in session_events(reading.records, key=key, source=source, playback=playback):
            if isinstance(event.data, PressureMeasured) and event.data.phase == "final":
                assert abs(event.data.estimate_error or 0.0) < bound
                peak = max(peak, event.data.used_tokens)

    assert peak == reading.stats.peak_context
