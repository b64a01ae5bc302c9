"""One conversation gives the same content and usage through every way in: client, proxy, import and OTLP."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from windowpane.config.schema import Config
from windowpane.core.events import BlockAdded, CompactionMeasured, ContentCompressed, Event, TurnEnded, Usage
from windowpane.models.catalog import packaged_catalog
from windowpane.models.tokens import counter_for
from windowpane.models.wire.calls import Shape, read_events
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.clients.calls import WatchedClient
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy.call_messages import EndedCall, SentCall
from windowpane.sources.proxy.call_reader import CallReader
from windowpane.sources.receiver.call_recorder import CallRecorder, RecorderSettings
from windowpane.sources.telemetry.assembly import CallAssembly
from windowpane.sources.telemetry.json_bodies import traces_of
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.formats.exchanges.api_exchanges import ApiExchangesReader
from windowpane.sources.transcripts.formats.gemini.qwen import QwenReader
from windowpane.sources.transcripts.formats.openai_chat import OpenAIChatReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.store.filters import EventFilter

sys.path.insert(0, str(Path(__file__).parent))

import one_conversation as script  # type: ignore[import-not-found]
from one_conversation import Step

SHAPES: list[Shape] = ["chat", "responses", "anthropic", "gemini", "converse"]
PROXIED = SHAPES[:4]
"""Shapes that are sent as HTTP with JSON."""
HEAD = ("system_prompt", "tool_definition")


class Content(NamedTuple):
    """Fields of an event that describe a block, and its usage."""

    content_type: str
    digest: str
    tool_name: str | None
    tool_call_id: str | None


class Seen(NamedTuple):
    """The content of a session in its order, and the usage of its calls."""

    contents: list[Content]
    usage: list[Usage]


def seen(events: Iterable[Event]) -> Seen:
    """Return the content and the usage of one session; the head may come before or after the first message."""
    contents, usage = [], []
    for data in (event.data for event in events):
        if isinstance(data, BlockAdded) and data.block.content_type != "unattributed":
            block = data.block
            digest = "" if block.content_type == "media" else block.digest
            contents.append(Content(block.content_type, digest, block.tool_name, block.tool_call_id))
        elif isinstance(data, TurnEnded) and data.usage is not None:
            counts = data.usage
            usage.append(
                Usage(counts.input_tokens, counts.output_tokens, counts.cache_read_tokens,
                      counts.cache_write_tokens, counts.reasoning_tokens)
            )  # fmt: skip
    return Seen(sorted(contents, key=lambda one: (*HEAD, one.content_type).index(one.content_type)), usage)


def stored(running: Runtime, agent: str) -> list[Event]:
    """Return the events of the only session of *agent*."""
    running.flush()
    assert running.store is not None
    (row,) = [row for row in running.store.sessions() if row.agent == agent]
    return [one.event for one in running.store.events(EventFilter(session_id=row.session_id))]


# -- the ways in ----------------------------------------------------------------------------------------------


def observed(running: Runtime, shape: Shape, steps: list[Step], *, streamed: bool) -> list[Event]:
    agent = f"observed-{shape}-{streamed}"
    client = WatchedClient(Scope(agent))
    for step in steps:
        call = client.start(shape, {**step.request, "stream": streamed})
        assert call is not None
        if streamed:
            call.record_reply(step.events, lambda events, shape: read_events(shape, events))
        else:
            call.record_reply(step.whole)
    return stored(running, agent)


def proxied(running: Runtime, shape: Shape, steps: list[Step], *, streamed: bool) -> list[Event]:
    agent = f"proxied-{shape}-{streamed}"
    reader = CallReader(running, Scope(agent))
    for number, step in enumerate(steps, 1):
        request = json.dumps(step.request).encode()
        at = 1_800_000_000.0 + 10 * number
        assert shape != "converse"
        reader.read(SentCall(number, shape, script.PATHS[shape], None, "", [], [request], at))
        reader.read(EndedCall(number, 200, [], [response(step, streamed=streamed)], at + 1, 1.0))
    return stored(running, agent)


def response(step: Step, *, streamed: bool) -> bytes:
    if not streamed:
        return json.dumps(step.whole).encode()
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in step.events)


def imported(running: Runtime, shape: Shape, steps: list[Step], path: Path, *, streamed: bool) -> list[Event]:
    pairs = [
        {"request": {"uri": f"https://provider.test{script.PATHS[shape]}", "body": step.request},
         "response": {"status": 200, "body": response(step, streamed=streamed).decode()}}
        for step in steps
    ]  # fmt: skip
    path.write_text(json.dumps(pairs))
    return played(running, ApiExchangesReader(), path)


def played(running: Runtime, reader: Any, path: Path) -> list[Event]:
    problems: list[Problem] = []
    records = list(reader.read(path, stats=FileStats(), problems=problems))
    playback = PlaybackSettings(
        digest=running.digest, counter_for=partial(counter_for, wait=True), catalog=packaged_catalog()
    )
    (key,) = session_keys(records)
    return list(session_events(records, key=key, source="imported", playback=playback))


def received(running: Runtime, spans: list[dict[str, Any]]) -> list[Event]:
    events: list[Event] = []
    settings = RecorderSettings(emit=events.extend, digest=running.digest, config=Config(), stream="s")
    assembly, recorder = CallAssembly(), CallRecorder(settings)
    document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "tracer"}, "spans": [
        {
            "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "chat",
            "startTimeUnixNano": str((1_800_000_000 + 10 * number) * 10**9),
            "endTimeUnixNano": str((1_800_000_001 + 10 * number) * 10**9),
            "attributes": [{"key": name, "value": attribute(value)} for name, value in attributes.items()],
        }
        for number, attributes in enumerate(spans, 1)
    ]}]}]}  # fmt: skip
    for span in traces_of(document).spans:
        assembly.add(span, 0.0)
    for assembled in assembly.due(0.0, everything=True):
        recorder.record(assembled)
    recorder.flush()
    return events


def attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [attribute(item) for item in value]}}
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


# -- what they give -------------------------------------------------------------------------------------------


def expected(running: Runtime, shape: Shape) -> Seen:
    """Return the content of the conversation; the provider of responses hides the reasoning."""
    digest: Callable[[str], str] = running.digest
    call = f"weather\0{json.dumps(script.ARGUMENTS)}"
    tool = json.dumps(script.tools(shape)[0])
    thought = [] if shape == "responses" else [Content("thinking", digest(script.THOUGHT), None, None)]
    contents = [
        Content("system_prompt", digest(script.SYSTEM), None, None),
        Content("tool_definition", digest(tool), "weather", None),
        Content("user_message", digest(script.QUESTION), None, None),
        Content("media", "", None, None),
        *thought,
        Content("assistant_response", digest(script.REMARK), None, None),
        Content("tool_call", digest(call), "weather", script.CALL_ID),
        Content("tool_result", digest(script.RESULT), "weather", script.CALL_ID),
        Content("assistant_response", digest(script.ANSWER), None, None),
    ]
    return Seen(contents, [script.usage_of(shape)] * 2)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_observed_client(running: Runtime, shape: Shape, streamed: bool) -> None:
    assert seen(observed(running, shape, script.steps(shape), streamed=streamed)) == expected(running, shape)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", PROXIED)
def test_the_proxy(running: Runtime, shape: Shape, streamed: bool) -> None:
    assert seen(proxied(running, shape, script.steps(shape), streamed=streamed)) == expected(running, shape)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", PROXIED)
def test_an_import_of_exchanges(running: Runtime, tmp_path: Path, shape: Shape, streamed: bool) -> None:
    events = imported(running, shape, script.steps(shape), tmp_path / "calls.json", streamed=streamed)

    assert seen(events) == expected(running, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_spans_of_opentelemetry(running: Runtime, shape: Shape) -> None:
    assert seen(received(running, script.gen_ai_spans(shape))) == expected(running, shape)


@pytest.mark.parametrize(
    "spans", [script.openinference_spans, script.vercel_spans], ids=["openinference", "vercel"]
)
def test_spans_of_other_conventions(running: Runtime, spans: Callable[[], list[dict[str, Any]]]) -> None:
    assert seen(received(running, spans())) == expected(running, "chat")


TRANSCRIPTS: list[tuple[Shape, Any, Callable[[], Any]]] = [
    ("chat", OpenAIChatReader(), script.chat_list),
    ("anthropic", ClaudeCodeReader(complete=True), script.claude_code_rows),
    ("responses", CodexReader(complete=True), script.codex_rows),
    ("gemini", QwenReader(complete=True), script.qwen_rows),
]


@pytest.mark.parametrize(
    ("shape", "reader", "write"), TRANSCRIPTS, ids=[reader.format for _, reader, _ in TRANSCRIPTS]
)
def test_an_agents_own_transcript(
    running: Runtime, tmp_path: Path, shape: Shape, reader: Any, write: Callable[[], Any]
) -> None:
    """Only a list of messages holds the system prompt and the tools."""
    path, written = tmp_path / "session.jsonl", write()
    is_list = isinstance(written, dict)
    path.write_text(json.dumps(written) if is_list else "".join(json.dumps(row) + "\n" for row in written))
    whole = expected(running, shape)
    contents = [one for one in whole.contents if is_list or one.content_type not in HEAD]

    assert seen(played(running, reader, path)) == Seen(contents, whole.usage)


# -- a compaction at the provider -----------------------------------------------------------------------------


class Compacted(NamedTuple):
    """A compaction, its sizes by the provider, the tokens of all calls, and the content left at the end."""

    outcomes: list[tuple[str, str]]
    sizes: list[tuple[int, int]]
    usage: list[Usage]
    texts: list[str]


def compacted(events: list[Event]) -> Compacted:
    """Return the compactions of *events*, and the content of the window at the end."""
    data = [event.data for event in events]
    compressions = [one for one in data if isinstance(one, ContentCompressed)]
    removed = {block_id for one in compressions for block_id in one.removed}
    blocks = [one.block for one in data if isinstance(one, BlockAdded)]
    return Compacted(
        [(one.method, one.outcome) for one in compressions],
        [(one.tokens_before, one.tokens_after) for one in data if isinstance(one, CompactionMeasured)],
        [one.usage for one in data if isinstance(one, TurnEnded) and one.usage is not None],
        [
            f"{block.content_type} {block.digest}"
            for block in blocks
            if block.id not in removed and block.content_type != "unattributed"
        ],
    )


DOORS = [(door, streamed) for door in ("observed", "proxied", "imported") for streamed in (False, True)]


def passed(
    running: Runtime, door: str, shape: Shape, steps: list[Step], folder: Path, *, streamed: bool
) -> list[Event]:
    """Return the events of *steps* that came in by *door*."""
    if door == "imported":
        return imported(running, shape, steps, folder / "calls.json", streamed=streamed)
    return (observed if door == "observed" else proxied)(running, shape, steps, streamed=streamed)


@pytest.mark.parametrize("drops", [False, True], ids=["sends all", "drops what was replaced"])
@pytest.mark.parametrize(("door", "streamed"), DOORS)
def test_a_compaction_by_anthropic_is_billed_whole(
    running: Runtime, tmp_path: Path, door: str, streamed: bool, drops: bool
) -> None:
    """The documented example: 24,000 tokens in the fields of the reply, and 207,500 in all."""
    steps = script.compacted_steps("anthropic", drops=drops)

    found = compacted(passed(running, door, "anthropic", steps, tmp_path, streamed=streamed))

    first, second, third = script.COMPACTED_USAGES
    assert found.usage == [first, script.COMPACTION_USAGE, second, third]
    assert sum(one.input_total + one.output_tokens for one in found.usage[1:3]) == 207_500
    assert found.outcomes == [("provider", "accepted")]
    assert found.sizes == [(150_000, 23_000)]
    digest: Callable[[str], str] = running.digest
    assert found.texts == [
        f"system_prompt {digest(script.SYSTEM)}",
        f"summary {digest(script.SUMMARY)}",
        f"assistant_response {digest(script.ANSWERS[1])}",
        f"user_message {digest(script.QUESTIONS[2])}",
        f"assistant_response {digest(script.ANSWERS[2])}",
    ]


@pytest.mark.parametrize("drops", [False, True], ids=["sends all", "drops what was replaced"])
@pytest.mark.parametrize(("door", "streamed"), DOORS)
def test_a_compaction_by_openai(running: Runtime, tmp_path: Path, door: str, streamed: bool, drops: bool) -> None:
    steps = script.compacted_steps("responses", drops=drops)

    found = compacted(passed(running, door, "responses", steps, tmp_path, streamed=streamed))

    assert found.usage == list(script.COMPACTED_USAGES)
    assert found.outcomes == [("provider", "accepted")]
    assert found.sizes == [(150_000, 24_100)]
    digest: Callable[[str], str] = running.digest
    assert sorted(found.texts) == sorted(
        [
            f"system_prompt {digest(script.SYSTEM)}",
            "summary ",
            f"assistant_response {digest(script.ANSWERS[1])}",
            f"user_message {digest(script.QUESTIONS[2])}",
            f"assistant_response {digest(script.ANSWERS[2])}",
        ]
    )


@pytest.mark.parametrize("shape", ["anthropic", "responses"])
def test_a_compaction_in_spans_of_opentelemetry(running: Runtime, shape: Shape) -> None:
    found = compacted(received(running, script.compacted_spans(shape)))

    assert found.usage == list(script.COMPACTED_USAGES)
    assert found.outcomes == [("provider", "accepted")]
    assert found.sizes == [(150_000, 24_100)]
    digest: Callable[[str], str] = running.digest
    summary = digest(script.SUMMARY) if shape == "anthropic" else ""
    assert sorted(found.texts) == sorted(
        [
            f"system_prompt {digest(script.SYSTEM)}",
            f"summary {summary}",
            f"assistant_response {digest(script.ANSWERS[1])}",
            f"user_message {digest(script.QUESTIONS[2])}",
            f"assistant_response {digest(script.ANSWERS[2])}",
        ]
    )
