"""Recordings of whole calls: their counts, their sessions, and windows that equal those of observed agents."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.codec import encode
from windowpane.core.events import Event, TurnEnded
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.exchanges.api_exchanges import ApiExchangesReader
from windowpane.sources.transcripts.formats.exchanges.contents import contents_of
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled, Record, SessionOpened
from windowpane.testing import CharacterCounter

READERS = all_readers(complete=True)
CALLS = tuple(
    f"litellm_logs/fn_anthropic__claude-sonnet-4-20250514-{time}.json"
    for time in (
        "1757015025.972", "1757015029.090", "1757015033.222",
        "1757015036.544", "1757015040.416", "1757015046.707",
    )
)  # fmt: skip
RAW = (
    "api_messages/anthropic_prompt_caching.json",
    "api_messages/anthropic_tools_streaming.json",
    "api_messages/openai_responses_handoffs.json",
)
FIGURES = (
    "messages", "tool_calls", "content_chars", "max_tool_output_chars", "compactions", "evictions", "bad_lines",
)  # fmt: skip


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


PLAYBACK = PlaybackSettings(digest=digest, counter_for=lambda _: CharacterCounter())


class Reading:
    """A recording as its reader reads it, and the events of its sessions."""

    def __init__(self, path: Path) -> None:
        self.stats, self.problems = FileStats(), list[Problem]()
        reader = reader_for(path, READERS)
        self.records: list[Record] = list(reader.read(path, stats=self.stats, problems=self.problems))
        self.sessions: dict[str, list[Event]] = {
            key: list(session_events(self.records, key=key, source=reader.format, playback=PLAYBACK))
            for key in session_keys(self.records)
        }

    def of(self, key: str, kind: str) -> list[Any]:
        return [event.data for event in self.sessions[key] if event.type == kind]


def manifest(sessions_dir: Path, file: str) -> dict[str, Any]:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    return next(entry["stats"] for entry in entries if entry["file"] == file)


@pytest.mark.parametrize("file", [*CALLS, *RAW])
def test_counts_are_those_of_the_manifest(sessions_dir: Path, file: str) -> None:
    expected, stats = manifest(sessions_dir, file), Reading(sessions_dir / file).stats

    assert {name: getattr(stats, name) for name in FIGURES} == {name: expected[name] for name in FIGURES}
    assert stats.user_turns == expected["turns"]
    usage = expected["usage"]
    if isinstance(usage, list):  # one entry a call
        names = set().union(*usage) - {"total_tokens"}
        assert {name: stats.usage[name] for name in names} == {
            name: sum(c.get(name, 0) for c in usage) for name in names
        }
    elif isinstance(usage, dict):
        assert stats.usage == usage


def test_the_files_of_a_folder_are_one_conversation(sessions_dir: Path) -> None:
    assert list(files_of([sessions_dir / "litellm_logs"])) == [sessions_dir / "litellm_logs"]
    reading = Reading(sessions_dir / "litellm_logs")
    (key,) = reading.sessions

    assert [turn.usage.input_total for turn in reading.of(key, "turn.ended")] == [
        manifest(sessions_dir, file)["usage"]["prompt_tokens"] for file in CALLS
    ]
    added = [data.block.content_type for data in reading.of(key, "block.added")]
    assert Counter(added) == {
        "tool_definition": 3, "system_prompt": 1, "user_message": 1, "assistant_response": 5, "tool_call": 6,
        "tool_result": 5, "unattributed": 1,
    }  # fmt: skip
    assert not reading.of(key, "blocks.evicted")


def test_a_logged_call_started_its_latency_before_its_end(sessions_dir: Path) -> None:
    (events,) = Reading(sessions_dir / "litellm_logs").sessions.values()
    at = {
        kind: [event.at or 0.0 for event in events if event.type == kind]
        for kind in ("turn.started", "turn.ended")
    }
    latencies = [event.data.latency_seconds for event in events if isinstance(event.data, TurnEnded)]

    assert len(latencies) == len(CALLS)
    assert [end - start for start, end in zip(*at.values(), strict=True)] == pytest.approx(latencies)


def test_several_files_given_by_name_are_one_recording(sessions_dir: Path) -> None:
    given = [sessions_dir / file for file in CALLS]

    assert list(files_of(given)) == [sessions_dir / "litellm_logs"]
    assert list(files_of(given[2:3])) == given[2:3]


def test_a_growing_folder_only_appends(sessions_dir: Path, tmp_path: Path) -> None:
    before: list[bytes] = []
    for file in CALLS:
        shutil.copy(sessions_dir / file, tmp_path)
        (events,) = Reading(tmp_path).sessions.values()
        encoded = [encode(event) for event in events]
        assert encoded[: len(before)] == before
        assert len(encoded) > len(before)
        before = encoded


def test_a_damaged_file_of_a_folder_costs_its_own_call_only(sessions_dir: Path, tmp_path: Path) -> None:
    for file in CALLS:
        shutil.copy(sessions_dir / file, tmp_path)
    damaged = tmp_path / Path(CALLS[2]).name
    damaged.write_bytes(damaged.read_bytes()[:9_000])

    reading = Reading(tmp_path)

    assert reading.stats.api_calls == 5
    assert len(reading.sessions) == 1
    assert [problem.file for problem in reading.problems if problem.severity == "bad"] == [str(damaged)]


def chat(*texts: str, reply: str, number: int) -> dict[str, Any]:
    """One exchange with a chat model, whose messages alternate."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    return {
        "request": {"uri": "https://host/v1/chat/completions", "body": {"model": "gpt-4o", "messages": messages}},
        "response": {"status": 200, "body": {
            "id": f"chatcmpl-{number}", "choices": [{"message": {"role": "assistant", "content": reply}}],
            "usage": {"prompt_tokens": 10 * number, "completion_tokens": 2},
        }},
    }  # fmt: skip


def write(folder: Path, name: str, document: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(document))
    return path


LONG = "a sentence that is long enough to be told from every other sentence of the file: number {}"


def test_what_an_agent_drops_is_an_eviction(tmp_path: Path) -> None:
    """A message that is not sent again is evicted, as it is for an observed agent."""
    first, second, third, fourth = (LONG.format("x" * number) for number in range(1, 5))
    path = write(tmp_path, "calls.json", [
        chat(first, reply=second, number=1),
        chat(first, second, third, reply=fourth, number=2),
        chat(first, fourth, "go on", reply="again", number=3),
    ])  # fmt: skip
    reading = Reading(path)
    (key,) = reading.sessions

    (evicted,) = reading.of(key, "blocks.evicted")
    assert evicted.policy == "agent"
    assert [block.content_type for block in evicted.blocks] == ["assistant_response", "user_message"]


def test_calls_that_share_nothing_are_sessions_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path, "calls.json", [
        chat(LONG.format(1), reply=LONG.format(2), number=1),
        chat(LONG.format(3), reply=LONG.format(4), number=2),
        chat(LONG.format(1), LONG.format(2), "more", reply="yes", number=3),
    ])  # fmt: skip
    reading = Reading(path)

    assert {key: len(reading.of(key, "turn.ended")) for key in reading.sessions} == {
        "chatcmpl-1": 2, "chatcmpl-2": 1,
    }  # fmt: skip


@pytest.mark.parametrize("form", ["list", "lines", "cassette", "archive", "text"])
def test_every_form_of_a_recording_gives_the_same_events(tmp_path: Path, form: str) -> None:
    pairs = [chat("one", reply="two", number=1), chat("one", "two", "three", reply="four", number=2)]
    plain = Reading(write(tmp_path, "plain.json", pairs)).sessions
    if form == "lines":
        path = tmp_path / "calls.jsonl"
        path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    elif form == "cassette":
        path = write(tmp_path, "calls.json", {"interactions": pairs, "version": 1})
    elif form == "archive":
        entries = [
            {"request": {"method": "POST", "url": pair["request"]["uri"],
                         "postData": {"text": json.dumps(pair["request"]["body"])}},
             "response": {"status": 200, "content": {"text": json.dumps(pair["response"]["body"])}}}
            for pair in pairs
        ]  # fmt: skip
        path = write(tmp_path, "calls.har", {"log": {"version": "1.2", "entries": entries}})
    else:
        for pair in pairs if form == "text" else ():
            pair["request"]["body"] = json.dumps(pair["request"]["body"])
        path = write(tmp_path, "calls.json", pairs)

    assert Reading(path).sessions == plain


def test_gemini_calls_of_functions_are_followed_by_their_results(tmp_path: Path) -> None:
    uri = "https://host/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    asked = {"role": "user", "parts": [{"text": "how warm is it?"}]}
    called = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Ulm"}}}]}
    answered = {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"degrees": 21}}}]}
    usage = {
        "promptTokenCount": 40,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 6,
        "cachedContentTokenCount": 16,
    }
    events = [
        {"candidates": [{"content": {"parts": [{"text": piece}]}}], "usageMetadata": usage}
        for piece in ("21 ", "degrees")
    ]
    path = write(tmp_path, "calls.json", [
        {"request": {"uri": uri, "body": {"contents": [asked]}},
         "response": {"status": 200, "body": {"candidates": [{"content": called}], "usageMetadata": usage}}},
        {"request": {"uri": uri, "body": {"contents": [asked, called, answered]}},
         "response": {"status": 200, "body": "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)}},
    ])  # fmt: skip
    reading = Reading(path)
    (key,) = reading.sessions
    added = [data.block for data in reading.of(key, "block.added")]

    assert [block.content_type for block in added] == [
        "user_message", "tool_call", "tool_result", "assistant_response", "unattributed",
    ] or [block.content_type for block in added if block.content_type != "unattributed"] == [
        "user_message", "tool_call", "tool_result", "assistant_response",
    ]  # fmt: skip
    assert {turn.usage.output_tokens for turn in reading.of(key, "turn.ended")} == {10}
    assert {turn.usage.cache_read_tokens for turn in reading.of(key, "turn.ended")} == {16}
    assert reading.stats.tool_calls == 1


def test_an_archive_is_recognized_by_a_response_alone() -> None:
    assert ApiExchangesReader.recognizes(Path("a.har"), b'{"log": {"entries": [{"response": {"content": "')


def test_an_overflow_that_the_provider_refused_is_an_overflow(tmp_path: Path) -> None:
    pair = chat("one", reply="", number=1)
    pair["response"] = {"status": 400, "body": {
        "error": {"message": "This model's maximum context length is 8192 tokens, you requested 9000 tokens"}
    }}  # fmt: skip
    reading = Reading(write(tmp_path, "calls.json", [pair]))
    (key,) = reading.sessions

    (overflow,) = reading.of(key, "overflow.detected")
    assert (overflow.used_tokens, overflow.limit_tokens) == (9_000, 8_192)


def test_rows_of_the_proxys_log_are_read(tmp_path: Path) -> None:
    rows = [
        {"id": f"call-{number}", "call_type": "acompletion", "model": "gpt-4o", "session_id": "chat-7",
         "startTime": 1_757_000_000.0 + number, "endTime": 1_757_000_000.5 + number, "response_cost": 0.25,
         "prompt_tokens": 10 * number, "completion_tokens": 2, "messages": messages,
         "response": {"id": f"r{number}", "choices": [{"message": {"role": "assistant", "content": "two"}}]}}
        for number, messages in enumerate((
            [{"role": "user", "content": "one"}],
            [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
             {"role": "user", "content": "three"}],
            None, None,
        ), 1)
    ]  # fmt: skip
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reading = Reading(path)

    assert list(reading.sessions) == ["chat-7"]
    turns = reading.of("chat-7", "turn.ended")
    assert [(turn.usage.input_total, turn.cost_dollars, turn.latency_seconds) for turn in turns] == [
        (10, 0.25, 0.5), (20, 0.25, 0.5),
    ]  # fmt: skip
    assert len([problem for problem in reading.problems if "messages" in str(problem)]) == 1


def test_a_replay_receives_the_content_of_whole_calls(sessions_dir: Path) -> None:
    reading = Reading(sessions_dir / "litellm_logs")
    (key,) = reading.sessions
    records = list(contents_of(reading.records))

    assert {type(record) for record in records} == {SessionOpened, ContentAdded, ModelCalled}
    assert [record.text for record in records if isinstance(record, ContentAdded)] == [
        call.text for call in (data.block for data in reading.of(key, "block.added"))
        if call.content_type != "unattributed"
    ]  # fmt: skip
    assert sum(isinstance(record, ModelCalled) for record in records) == 6
