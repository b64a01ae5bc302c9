"""The same calls, seen live by `observe` and read from a recording of their exchanges, give the same events."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import windowpane
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    ContentCompressed,
    Event,
    PressureMeasured,
    TurnEnded,
)
from windowpane.models.catalog import packaged_catalog
from windowpane.models.tokens import counter_for
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.transcripts.formats.exchanges.api_exchanges import ApiExchangesReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats
from windowpane.store.filters import EventFilter, SessionFilter

openai = pytest.importorskip("openai")
try:
    import httpx2 as httpx
except ImportError:
    import httpx  # type: ignore[no-redef]

Json = dict[str, Any]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def called(number: int) -> Json:
    function = {"name": "bash", "arguments": json.dumps({"command": f"cat part-{number}"})}
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": f"call_{number:024}", "type": "function", "function": function},
    ]}  # fmt: skip


def result(number: int, text: str) -> Json:
    return {"role": "tool", "tool_call_id": f"call_{number:024}", "content": text}


SYSTEM = {"role": "system", "content": "You are careful."}
LONG = "a line of the file that was read, with many words in it. " * 40
STEPS = [
    ([SYSTEM, user("start")], called(1)),
    ([SYSTEM, user("start"), called(1), result(1, LONG)], called(2)),
    ([SYSTEM, user("start"), called(1), result(1, "[cleared]"), called(2), result(2, LONG)], called(3)),
    ([SYSTEM, user("start"), called(3), result(3, "x")], called(4)),
    ([SYSTEM, user("Summary: parts 1 to 3 were read"), called(4), result(4, "y")],
     {"role": "assistant", "content": "done"}),
    ([SYSTEM, user("an unrelated question")], {"role": "assistant", "content": "an answer"}),
]  # fmt: skip
"""Requests and replies: a result is cleared, a step is dropped, the start is summarized, a new conversation."""


def reply(number: int, message: Json) -> Json:
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1_757_000_000 + number,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 100 * number, "completion_tokens": 9, "total_tokens": 100 * number + 9},
    }  # fmt: skip


def essence(events: list[Event]) -> list[tuple[object, ...]]:
    """Return what the events state of the window, without ids, times and estimated sizes."""
    stated: list[tuple[object, ...]] = []
    for data in (event.data for event in events):
        if isinstance(data, BlockAdded):
            stated.append((data.type, data.block.content_type, data.block.tool_call_id))
        elif isinstance(data, BlocksEvicted):
            stated.append(
                (
                    data.type,
                    data.policy,
                    tuple((one.content_type, one.form) for one in data.blocks),
                )
            )
        elif isinstance(data, ContentCompressed):
            stated.append((data.type, data.strategy, len(data.removed), len(data.results)))
        elif isinstance(data, TurnEnded):
            stated.append((data.type, data.usage, data.cost_dollars))
        elif isinstance(data, PressureMeasured) and data.phase == "final":
            stated.append((data.type, data.used_tokens, data.limit_tokens))
    return stated


def observed(running: Runtime) -> list[list[tuple[object, ...]]]:
    waiting = iter(enumerate(STEPS, 1))

    def answer(_request: Any) -> Any:
        number, (_, message) = next(waiting)
        return httpx.Response(200, json=reply(number, message))

    transport = httpx.Client(transport=httpx.MockTransport(answer))
    client = windowpane.observe(
        openai.OpenAI(api_key="k", base_url="http://provider.test/v1", http_client=transport, max_retries=0)
    )
    for messages, _ in STEPS:
        client.chat.completions.create(model="gpt-4o", messages=messages)
    running.flush()
    assert running.store is not None
    rows = sorted(running.store.sessions(SessionFilter()), key=lambda row: -row.turns)
    return [
        essence([stored.event for stored in running.store.events(EventFilter(session_id=row.session_id))])
        for row in rows
    ]


def recorded(path: Path) -> list[list[tuple[object, ...]]]:
    uri = "http://provider.test/v1/chat/completions"
    pairs = [
        {"request": {"uri": uri, "body": {"model": "gpt-4o", "messages": sent}},
         "response": {"status": 200, "body": reply(number, message)}}
        for number, (sent, message) in enumerate(STEPS, 1)
    ]  # fmt: skip
    path.write_text(json.dumps(pairs))
    records = list(ApiExchangesReader().read(path, stats=FileStats(), problems=[]))
    playback = PlaybackSettings(
        digest=str, counter_for=partial(counter_for, wait=True), catalog=packaged_catalog()
    )
    return [
        essence(list(session_events(records, key=key, source="api_exchanges", playback=playback)))
        for key in session_keys(records)
    ]


def test_a_recording_gives_the_events_of_the_observed_agent(running: Runtime, tmp_path: Path) -> None:
    live, read = observed(running), recorded(tmp_path / "calls.json")

    assert len(live) == len(read) > 1
    assert read == live
    assert {entry[0] for entry in live[0]} >= {"block.added", "blocks.evicted", "turn.ended"}
