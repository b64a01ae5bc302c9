"""One conversation gives the same content and usage through every way in: client, proxy, import and OTLP."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import windowpane
from windowpane.config.schema import Config
from windowpane.core.events import BlockAdded, Event, TurnEnded, Usage
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
from windowpane.sources.transcripts.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.codex.reader import CodexReader
from windowpane.sources.transcripts.exchanges.raw import ApiExchangesReader
from windowpane.sources.transcripts.gemini.qwen import QwenReader
from windowpane.sources.transcripts.openai_chat import OpenAIChatReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.store.interface import EventFilter

sys.path.insert(0, str(Path(__file__).parent))

import one_conversation as script  # type: ignore[import-not-found]

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


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Runtime]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("WINDOWPANE_") and "TEST" not in name:
                patch.delenv(name)
        store = tmp_path / "windowpane.db"
        yield windowpane.start(port=0, store=store, notify=[])
        windowpane.stop()


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


def stored(running: Runtime, agent: str) -> Seen:
    """Return what the only session of *agent* holds."""
    running.flush()
    assert running.store is not None
    (row,) = [row for row in running.store.sessions() if row.agent == agent]
    return seen(one.event for one in running.store.events(EventFilter(session_id=row.session_id)))


# -- the ways in ----------------------------------------------------------------------------------------------


def observed(running: Runtime, shape: Shape, *, streamed: bool) -> Seen:
    agent = f"observed-{shape}-{streamed}"
    client = WatchedClient(Scope(agent))
    for step in script.steps(shape):
        call = client.start(shape, {**step.request, "stream": streamed})
        assert call is not None
        if streamed:
            call.record_reply(step.events, lambda events, shape: read_events(shape, events))
        else:
            call.record_reply(step.whole)
    return stored(running, agent)


def proxied(running: Runtime, shape: Shape, *, streamed: bool) -> Seen:
    agent = f"proxied-{shape}-{streamed}"
    reader = CallReader(running, Scope(agent))
    for number, step in enumerate(script.steps(shape), 1):
        request = json.dumps(step.request).encode()
        at = 1_800_000_000.0 + 10 * number
        assert shape != "converse"
        reader.read(SentCall(number, shape, script.PATHS[shape], None, "", [], [request], at))
        reader.read(EndedCall(number, 200, [], [response(step, streamed=streamed)], at + 1, 1.0))
    return stored(running, agent)


def response(step: script.Step, *, streamed: bool) -> bytes:
    if not streamed:
        return json.dumps(step.whole).encode()
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in step.events)


def imported(running: Runtime, path: Path, shape: Shape, *, streamed: bool) -> Seen:
    pairs = [
        {"request": {"uri": f"https://provider.test{script.PATHS[shape]}", "body": step.request},
         "response": {"status": 200, "body": response(step, streamed=streamed).decode()}}
        for step in script.steps(shape)
    ]  # fmt: skip
    path.write_text(json.dumps(pairs))
    return played(running, ApiExchangesReader(), path)


def played(running: Runtime, reader: Any, path: Path) -> Seen:
    problems: list[Problem] = []
    records = list(reader.read(path, stats=FileStats(), problems=problems))
    playback = PlaybackSettings(
        digest=running.digest, counter_for=partial(counter_for, wait=True), catalog=packaged_catalog()
    )
    (key,) = session_keys(records)
    return seen(session_events(records, key=key, source="imported", playback=playback))


def received(running: Runtime, spans: list[dict[str, Any]]) -> Seen:
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
    return seen(events)


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
    assert observed(running, shape, streamed=streamed) == expected(running, shape)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", PROXIED)
def test_the_proxy(running: Runtime, shape: Shape, streamed: bool) -> None:
    assert proxied(running, shape, streamed=streamed) == expected(running, shape)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", PROXIED)
def test_an_import_of_exchanges(running: Runtime, tmp_path: Path, shape: Shape, streamed: bool) -> None:
    assert imported(running, tmp_path / "calls.json", shape, streamed=streamed) == expected(running, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_spans_of_opentelemetry(running: Runtime, shape: Shape) -> None:
    assert received(running, script.gen_ai_spans(shape)) == expected(running, shape)


@pytest.mark.parametrize(
    "spans", [script.openinference_spans, script.vercel_spans], ids=["openinference", "vercel"]
)
def test_spans_of_other_conventions(running: Runtime, spans: Callable[[], list[dict[str, Any]]]) -> None:
    assert received(running, spans()) == expected(running, "chat")


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

    assert played(running, reader, path) == Seen(contents, whole.usage)
