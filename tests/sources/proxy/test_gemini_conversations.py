"""One conversation with Gemini, whose calls of functions have no ids, gives one window however it is observed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from observed_calls import post, recorded  # type: ignore[import-not-found]
from scripted_upstream import Answer, UpstreamServer  # type: ignore[import-not-found]

from windowpane.core.events import BlockAdded, BlocksEvicted, TurnEnded
from windowpane.models.catalog import packaged_catalog
from windowpane.models.tokens import counter_for
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.clients.calls import WatchedClient
from windowpane.sources.clients.google_genai import watch_all_google_genai
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.transcripts.formats.exchanges.api_exchanges import ApiExchangesReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats

Json = dict[str, Any]
MODEL_PATH = "v1beta/models/gemini-2.5-pro"
SYSTEM = {"parts": [{"text": "You are a careful meteorologist."}]}
TOOLS = [{"functionDeclarations": [{"name": "weather", "description": "Return the weather in a city."}]}]


def content(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def call(city: str) -> Json:
    return {"functionCall": {"name": "weather", "args": {"city": city}}}


def result(text: str) -> Json:
    return {"functionResponse": {"name": "weather", "response": {"result": text}}}


def results(*texts: str) -> Json:
    return content("user", *map(result, texts))


ASKED = content("user", {"text": "Compare the weather in Paris and Rome, and look again."})
BOTH = content("model", {"text": "I look at both.", "thought": True}, call("Paris"), call("Rome"))
AGAIN, THIRD = content("model", call("Paris")), content("model", call("Paris"))
ANSWER = content("model", {"text": "Rain in Paris, "}, {"text": "sun in Rome."})
FIRST = [ASKED, BOTH, results("rain " * 40, "sun " * 40)]
STEPS = [
    ([ASKED], BOTH),
    (FIRST, AGAIN),
    ([*FIRST, AGAIN, results("drizzle " * 40)], THIRD),
    ([ASKED, AGAIN, results("drizzle " * 40), THIRD, results("hail " * 40)], ANSWER),
]
"""Contents and replies: parallel calls, the same call three times, and the first calls dropped by the agent."""


@pytest.fixture(params=["generateContent", "streamGenerateContent"], ids=["whole", "stream"])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def exchanges(method: str) -> Iterator[tuple[Json, list[Json]]]:
    """Yield the body of each request and the chunks that answer it."""
    for number, (contents, reply) in enumerate(STEPS, 1):
        body = {"contents": contents, "systemInstruction": SYSTEM, "tools": TOOLS}
        pieces = [reply["parts"]] if method == "generateContent" else [[part] for part in reply["parts"]]
        yield body, [
            {
                "candidates": [{"content": content("model", *parts), "finishReason": "STOP"}],
                "usageMetadata": {
                    "promptTokenCount": 100 * number, "toolUsePromptTokenCount": 7, "candidatesTokenCount": 9,
                    "thoughtsTokenCount": 3,
                },
                "responseId": f"r{number}",
            }
            for parts in pieces
        ]  # fmt: skip


def sent_body(method: str, chunks: list[Json]) -> str:
    """Return a response's body as it is on the wire."""
    if method == "generateContent":
        return json.dumps(chunks[0])
    return "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks)


def through_proxy(method: str, url: str, upstream: UpstreamServer) -> None:
    for body, chunks in exchanges(method):
        upstream.answer = Answer(200, [], [sent_body(method, chunks).encode()])
        post(f"{url}/gemini/{MODEL_PATH}:{method}", body)


def by_watched_client(method: str) -> None:
    """Send the requests by a class with the methods of google-genai's, which `observe` watches."""
    waiting = exchanges(method)

    class BaseApiClient:
        def request(self, _method: str, _path: str, _body: Json) -> Any:
            return SimpleNamespace(body=json.dumps(next(waiting)[1][0]))

        def request_streamed(self, _method: str, _path: str, _body: Json) -> Any:
            for chunk in next(waiting)[1]:
                yield SimpleNamespace(body=json.dumps(chunk))

        async_request = async_request_streamed = request

    module = ModuleType("google.genai._api_client")
    module.BaseApiClient = BaseApiClient  # type: ignore[attr-defined]
    watch_all_google_genai(module, WatchedClient(Scope("watched")))
    client = BaseApiClient()
    for body, _ in exchanges(method):
        if method == "generateContent":
            client.request("post", f"{MODEL_PATH}:{method}", body)
        else:
            list(client.request_streamed("post", f"{MODEL_PATH}:{method}?alt=sse", body))


def from_recording(method: str, path: Path) -> list[Any]:
    uri = f"https://host/{MODEL_PATH}:{method}"
    pairs = [
        {"request": {"uri": uri, "body": body},
         "response": {"status": 200, "body": sent_body(method, chunks)}}
        for body, chunks in exchanges(method)
    ]  # fmt: skip
    path.write_text(json.dumps(pairs))
    records = list(ApiExchangesReader().read(path, stats=FileStats(), problems=[]))
    playback = PlaybackSettings(
        digest=str, counter_for=partial(counter_for, wait=True), catalog=packaged_catalog()
    )
    (key,) = session_keys(records)
    return [event.data for event in session_events(records, key=key, source="api_exchanges", playback=playback)]


def window(payloads: list[Any]) -> list[tuple[Any, ...]]:
    """Return what entered and left the window, with the calls that the results answer."""
    stated: list[tuple[Any, ...]] = []
    for data in payloads:
        if isinstance(data, BlockAdded):
            block = data.block
            row = (block.content_type, block.tool_name, block.tool_call_id, block.group, block.tokens)
            stated.append((data.type, *row))
        elif isinstance(data, BlocksEvicted):
            stated.append((data.type, [(one.block_id, one.form) for one in data.blocks]))
        elif isinstance(data, TurnEnded):
            stated.append((data.type, data.usage, data.cost_dollars, data.stop_reason))
    return stated


def test_the_window_is_the_same_by_proxy_by_watched_client_and_from_a_recording(
    method: str, upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], outputs: Runtime, tmp_path: Path
) -> None:
    counter_for("gemini-2.5-pro", wait=True)
    through_proxy(method, proxy_to(upstream.url).url, upstream)
    assert outputs.flush()
    by_watched_client(method)
    proxied, watched = map(window, recorded(outputs))
    read = window(from_recording(method, tmp_path / "calls.json"))

    assert proxied == watched == read
    tools = [row for row in read if row[1] in ("tool_call", "tool_result")]
    assert [row[3] for row in tools if row[1] == "tool_call"] == [f"weather-{n}" for n in range(1, 5)]
    assert [row[3] for row in tools if row[1] == "tool_result"] == [f"weather-{n}" for n in range(1, 5)]
    (evicted,) = [blocks for kind, *rest in read if kind == "blocks.evicted" for blocks in rest]
    assert [form for _, form in evicted] == ["drop"] * 5
    assert [row[1].input_total for row in read if row[0] == "turn.ended"] == [107, 207, 307, 407]
