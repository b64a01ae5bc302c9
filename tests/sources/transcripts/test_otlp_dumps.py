"""Dumps of traces and logs: values of the recorded ones, every layout, and the windows of the receiver."""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from windowpane.config.schema import Config
from windowpane.core.events import Event, PressureMeasured, TurnEnded
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.receiver.call_recorder import CallRecorder, RecorderSettings
from windowpane.sources.telemetry.assembly import CallAssembly
from windowpane.sources.telemetry.json_bodies import traces_of
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.exchanges.otlp import OtlpReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import CallSent, Compacted, Record, SessionOpened
from windowpane.store.embedded import SqliteStore

sys.path.insert(0, str(Path(__file__).parents[1] / "telemetry"))
import recordings

LINES = sorted(path for path in recordings.FOLDER.iterdir() if path.suffix == ".json")
DUMPS = ("otlp_mcp_eval.json", "otlp_rag_earnings_agent.json", "vercel_ai_v6_all-spans.json")
USAGE = {
    "otlp_mcp_eval.json": {},
    "otlp_rag_earnings_agent.json": {"input": 629, "output": 19},
    "vercel_ai_v6_all-spans.json": {"input": 142, "output": 297},
}
"""The manifest's sums, of the one convention that counts each call once."""


class Read:
    """The records of one dump."""

    def __init__(self, path: Path) -> None:
        self.stats, self.problems = FileStats(), list[Problem]()
        reader = reader_for(path, all_readers())
        assert isinstance(reader, OtlpReader), reader.format
        self.records: list[Record] = list(reader.read(path, stats=self.stats, problems=self.problems))

    def of(self, kind: type) -> list[Any]:
        return [record for record in self.records if isinstance(record, kind)]

    def events(self) -> list[Event]:
        """Return the events of all sessions."""
        playback = playback_settings(str)
        return [
            event
            for key in session_keys(self.records)
            for event in session_events(self.records, key=key, source="otlp", playback=playback)
        ]


@pytest.mark.parametrize("name", DUMPS)
def test_values_are_those_of_the_manifest(sessions_dir: Path, name: str) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == f"otel_otlp/{name}")
    result = Read(sessions_dir / "otel_otlp" / name)

    assert (result.stats.messages, result.stats.content_chars) == (
        expected["messages"],
        expected["content_chars"],
    )
    assert result.stats.usage == USAGE[name]
    assert result.stats.tool_calls == expected["tool_calls"]
    assert result.stats.bad_lines == 0
    assert bool(result.problems) is not bool(USAGE[name])


@pytest.mark.parametrize("name", DUMPS[1:])
def test_the_totals_are_those_of_the_calls(sessions_dir: Path, name: str) -> None:
    events = Read(sessions_dir / "otel_otlp" / name).events()
    usages = [event.data.usage for event in events if isinstance(event.data, TurnEnded) and event.data.usage]

    assert sum(usage.input_total for usage in usages) == USAGE[name]["input"]
    assert sum(usage.output_tokens for usage in usages) == USAGE[name]["output"]


def document() -> dict[str, Any]:
    """Return the recorded run of the Vercel AI SDK, three calls."""
    loaded: dict[str, Any] = json.loads(LINES[0].read_text())
    return loaded


def with_base64_ids(value: dict[str, Any]) -> dict[str, Any]:
    for resource in value["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if span.get(name):
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return value


def with_underscores(value: Any) -> Any:
    """Return a request with the names of the protocol's fields, as Phoenix downloads have them."""
    if isinstance(value, list):
        return [with_underscores(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {re.sub("(?<!^)([A-Z])", r"_\1", name).lower(): with_underscores(item) for name, item in value.items()}


def python_spans(value: dict[str, Any], *, prefix: str = "0x") -> list[dict[str, Any]]:
    """Return the spans of a request as Python's SDK writes them."""
    return [
        {
            "name": span.name,
            "context": {
                "trace_id": prefix + span.trace_id,
                "span_id": prefix + span.span_id,
                "trace_state": "[]",
            },
            "kind": "SpanKind.CLIENT",
            "parent_id": prefix + span.parent_id if span.parent_id else None,
            "start_time": datetime.fromtimestamp(span.started_at, UTC).isoformat().replace("+00:00", "Z"),
            "end_time": datetime.fromtimestamp(span.ended_at, UTC).isoformat().replace("+00:00", "Z"),
            "status": {"status_code": "UNSET"},
            "attributes": dict(span.attributes) | {"temperature": math.inf},
            "events": [],
            "resource": {"attributes": dict(span.resource), "schema_url": ""},
        }
        for span in traces_of(value).spans
    ]


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda value: json.dumps([value], indent=2),
        lambda value: f"{json.dumps({'resourceSpans': []})}\n{json.dumps(value)}\n",
        lambda value: json.dumps(with_base64_ids(value)),
        lambda value: json.dumps(with_underscores(value)),
        lambda value: "\n".join(json.dumps(span) for span in python_spans(value)),
        lambda value: "\n".join(json.dumps(span, indent=4) for span in python_spans(value)),
        lambda value: json.dumps({"data": python_spans(value, prefix=""), "next_cursor": None}),
    ],
    ids=["request", "list", "lines", "base64", "underscores", "python", "console", "phoenix"],
)
def test_every_layout_is_read(tmp_path: Path, write: Callable[[Any], str]) -> None:
    path = tmp_path / "dump.json"
    path.write_text(write(document()))
    result = Read(path)

    assert [opened.session_key for opened in result.of(SessionOpened)] == ["chat-77"]
    assert result.stats.usage == {"input": 600, "output": 36}
    assert result.problems == []


@pytest.mark.parametrize("name", sorted(set(recordings.NAMES)))
def test_an_import_gives_the_windows_of_the_receiver(tmp_path: Path, name: str) -> None:
    received: list[Event] = []
    recorder = CallRecorder(RecorderSettings(emit=received.extend, digest=str, config=Config(), stream="s"))
    for one in recordings.assembled(recordings.items(name)):
        recorder.record(one)
    recorder.flush()
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([as_json(path) for path in recordings.bodies(name)]))

    assert measured(Read(path).events()) == measured(received)


def as_json(path: Path) -> Any:
    """Return a recorded request in the JSON that protobuf's library writes."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kind = ExportTraceServiceRequest if ".traces." in path.name else ExportLogsServiceRequest
    return MessageToDict(kind.FromString(path.read_bytes()))


def measured(events: list[Event]) -> list[tuple[str, str, int, float | None, int]]:
    return [
        (event.context.session_id, event.context.agent, event.context.turn, event.at, event.data.used_tokens)
        for event in events
        if isinstance(event.data, PressureMeasured) and event.data.phase == "final"
    ]


def event(name: str, at: int, **attributes: Any) -> dict[str, Any]:
    values = {name.replace("__", "."): {"stringValue": str(value)} for name, value in attributes.items()}
    pairs = [{"key": name, "value": value} for name, value in values.items()]
    return {"timeUnixNano": str(at * 10**9), "eventName": name, "attributes": pairs}


def test_logs_of_a_coding_agent_with_a_compaction(tmp_path: Path) -> None:
    start, session = 1_700_000_000, {"session__id": "s-1"}
    request = {"model": "claude-sonnet-4-5", "duration_ms": 2_000, "input_tokens": 10, "output_tokens": 50}
    calls = [
        event("claude_code.api_request", start + 10 * number, **session, **request, cache_read_tokens=tokens)
        for number, tokens in enumerate([100_000, 120_000, 140_000, 30_000])
    ]  # fmt: skip
    compaction = event("claude_code.compaction", start + 25, **session, pre_tokens=140_010, post_tokens=29_000)
    path = tmp_path / "logs.json"
    path.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [*calls, compaction]}]}]}))
    result = Read(path)

    assert [one.tokens_before for one in result.of(Compacted)] == [140_010]
    assert result.stats.compactions == 1
    assert [used for *_, used in measured(result.events())] == [100_010, 120_010, 140_010, 30_010]
    assert len(result.of(CallSent)) == 4


def test_a_sub_agent_in_logs_and_in_its_transcript_is_one_session(tmp_path: Path) -> None:
    root, agent = "019a0000-0000-7000-8000-00000000000a", "a1b2c3d4e"
    request = {"model": "claude-sonnet-4-5", "duration_ms": 2_000, "input_tokens": 10, "output_tokens": 50}
    names = {"session__id": root, "query_source": "agent:builtin:Explore", "agent_id": agent}
    logs = tmp_path / "logs.json"
    call = event("claude_code.api_request", 1_700_000_010, **request, **names)
    logs.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [call]}]}]}))
    usage = {"input_tokens": 10, "output_tokens": 50}
    message = {
        "id": "msg_1",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": "Found.",
        "usage": usage,
    }
    row = {"type": "assistant", "sessionId": root, "isSidechain": True, "agentId": agent, "uuid": "u1",
           "timestamp": "2023-11-14T22:13:30Z", "message": message}  # fmt: skip
    transcript = tmp_path / root / "subagents" / f"agent-{agent}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps(row) + "\n")
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        for path in (logs, transcript):
            import_paths([path], store, playback=playback_settings(str), readers=all_readers(complete=True))

        assert [one.session_id for one in store.sessions()] == [f"{root}/agent-{agent}"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"resourceSpans": 7}', "expected a list, got int"),
        ('[{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}]', "1 of 1 could not be read"),
        ('[{"resourceSpans": []}, 7]', "expected an object, got int"),
        (
            '[{"spanContext": {}, "attributes": {}, "startTime": 7}]',
            "its context (or spanContext), start and end",
        ),
        (
            '{\n"name": "a", "context": {"trace_id": "0x1"}}\n{"na',
            "line 3: not JSON; the rest of the file is not read",
        ),
    ],
)
def test_damage_is_reported(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "dump.json"
    path.write_text(content)

    assert any(words in str(problem) for problem in Read(path).problems)


def test_a_session_that_was_idle_continues_in_the_store(tmp_path: Path) -> None:
    spans = [
        {
            "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "chat",
            "startTimeUnixNano": str((1_700_000_000 + number * 9_000) * 10**9),
            "endTimeUnixNano": str((1_700_000_002 + number * 9_000) * 10**9),
            "attributes": [
                {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": value}}
                for key, value in {
                    "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o",
                    "gen_ai.conversation.id": "chat-9", "gen_ai.usage.input_tokens": 1_000 * number,
                    "gen_ai.usage.output_tokens": 5,
                }.items()
            ],
        }
        for number in range(1, 6)
    ]  # fmt: skip
    dump = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]}]}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(dump))
    imported = Read(path)
    (key,) = session_keys(imported.records)
    playback = playback_settings(str)
    store = SqliteStore(tmp_path / "windowpane.db")
    store.import_session(lambda: session_events(imported.records, key=key, source="dump", playback=playback))
    received: list[Event] = []
    recorder = CallRecorder(RecorderSettings(emit=received.extend, digest=str, config=Config(), stream="s"))
    assembly = CallAssembly()
    for one in traces_of(dump).spans:
        assembly.add(one, 0.0)
    for call in assembly.due(0.0, everything=True):
        recorder.record(call)
    recorder.flush()
    store.append(received)

    expected = [(turn, 1_000 * turn) for turn in range(1, 6)]
    for session_id in ("dump:chat-9", "otlp:chat-9"):
        turns = store.turns(session_id)
        assert [(turn.turn, turn.input_tokens) for turn in turns] == expected
    assert store.verify().intact
    store.close()
