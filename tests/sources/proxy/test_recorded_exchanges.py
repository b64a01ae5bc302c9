"""Recorded exchanges of providers, sent again through the proxy: the same bytes, and the recorded windows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from observed_calls import post, recorded  # type: ignore[import-not-found]
from scripted_upstream import Answer, UpstreamServer  # type: ignore[import-not-found]
from tests.providers.environments import CLIENTS, ROOT
from tests.providers.loopback import loopback_provider
from tests.providers.test_frameworks import installed

from windowpane.core.events import BlockAdded, TurnEnded
from windowpane.models.catalog import packaged_catalog
from windowpane.models.tokens import counter_for
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.transcripts.formats.exchanges.api_exchanges import ApiExchangesReader
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats

FILES = ("anthropic_prompt_caching", "anthropic_tools_streaming", "openai_responses_handoffs")


def sizes(payloads: list[Any]) -> list[object]:
    return [
        (data.block.content_type, data.block.tool_name, data.block.tokens)
        if isinstance(data, BlockAdded)
        else data.usage
        for data in payloads
        if isinstance(data, BlockAdded | TurnEnded)
    ]


def imported(path: Path) -> list[list[object]]:
    """Return the sizes of each session that an import of the recording gives."""
    records = list(ApiExchangesReader().read(path, stats=FileStats(), problems=[]))
    playback = PlaybackSettings(
        digest=str, counter_for=partial(counter_for, wait=True), catalog=packaged_catalog()
    )
    return [
        sizes([event.data for event in session_events(records, key=key, source="api", playback=playback)])
        for key in session_keys(records)
    ]


def as_bytes(body: object) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


@pytest.mark.parametrize("name", FILES)
def test_recorded_exchanges_pass_unchanged(
    name: str,
    upstream: UpstreamServer,
    proxy_to: Callable[..., ProxyServer],
    outputs: Runtime,
    sessions_dir: Path,
) -> None:
    path = sessions_dir / "api_messages" / f"{name}.json"
    url = proxy_to(upstream.url).url
    expected = imported(path)  # before the calls: it waits for the tokenizers
    for exchange in json.loads(path.read_text(encoding="utf-8")):
        request, response = exchange["request"], exchange["response"]
        provider, target = ("anthropic", "/v1/messages") if "anthropic" in name else ("openai", "/v1/responses")
        content = as_bytes(response["body"])
        kind = "text/event-stream" if isinstance(response["body"], str) else "application/json"
        upstream.answer = Answer(
            response["status"]["code"],
            [("content-type", kind)],
            [content[start : start + 100] for start in range(0, len(content), 100)],
            has_length=False,
        )
        direct = post(f"{upstream.url}{target}", as_bytes(request["body"]))
        through = post(f"{url}/{provider}{target}", as_bytes(request["body"]))
        assert through == direct == content
        first, second = upstream.received[-2:]
        assert (second.method, second.path, second.body) == (first.method, first.path, first.body)
        outputs.flush()

    assert sorted(map(str, map(sizes, recorded(outputs)))) == sorted(map(str, expected))


def sent_by_the_client(name: str, base_url: str, body: dict[str, Any]) -> str:
    """Send a recorded request by the provider's client; return the text that it received."""
    if "anthropic" in name:
        with anthropic.Anthropic(base_url=base_url, api_key="k", max_retries=0) as claude:
            return claude.post("/v1/messages", body=body, cast_to=str)
    with openai.OpenAI(base_url=f"{base_url}/v1", api_key="k", max_retries=0) as client:
        return client.post("/responses", body=body, cast_to=str)


@pytest.mark.parametrize("name", FILES)
def test_clients_of_the_providers_send_and_get_the_same_bytes(
    name: str, upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], sessions_dir: Path
) -> None:
    path = sessions_dir / "api_messages" / f"{name}.json"
    url = f"{proxy_to(upstream.url).url}/{'anthropic' if 'anthropic' in name else 'openai'}"
    for exchange in json.loads(path.read_text(encoding="utf-8")):
        request, response = exchange["request"]["body"], exchange["response"]["body"]
        body = json.loads(request) if isinstance(request, str) else request
        kind = "text/event-stream" if isinstance(response, str) else "application/json"
        upstream.answer = Answer(200, [("content-type", kind)], [as_bytes(response)], has_length=False)

        assert sent_by_the_client(name, url, body) == sent_by_the_client(name, upstream.url, body)
        through, direct = upstream.received[-2:]
        assert (through.method, through.path, through.body) == (direct.method, direct.path, direct.body)
        assert headers_of(through) == headers_of(direct)


def headers_of(received: Any) -> list[tuple[str, str]]:
    """Return the headers that are not those of one connection."""
    own = ("host", "connection")
    return sorted((name.lower(), value) for name, value in received.headers if name.lower() not in own)


def test_curl_gets_the_same_bytes(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], require_server: Callable[[str], Path]
) -> None:
    curl = require_server("curl")
    body = json.dumps({"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "x" * 5_000}]})
    upstream.answer = Answer(200, [("content-type", "text/event-stream")], [b"data: 1\n\n"] * 9, has_length=False)

    def fetch(url: str) -> bytes:
        command = [
            curl, "-sS", "-i", "--compressed", "-H", "Transfer-Encoding: chunked", "-H",
            "Authorization: Bearer k", "--data-binary", "@-", f"{url}/v1/chat/completions",
        ]  # fmt: skip
        done = subprocess.run(command, input=body.encode(), capture_output=True, check=True, timeout=30)
        return done.stdout.lower().replace(b"connection: close\r\n", b"")

    assert fetch(f"{proxy_to(upstream.url).url}/openai") == fetch(upstream.url)
    through, direct = upstream.received
    assert through.body == direct.body == body.encode()
    assert through.path == direct.path
    assert ("authorization", "Bearer k") in [(name.lower(), value) for name, value in through.headers]


@pytest.mark.timeout(900)  # the first run installs the client
def test_the_client_of_google_sends_and_gets_the_same_bytes(proxy_to: Callable[..., ProxyServer]) -> None:
    python = installed(CLIENTS)
    with loopback_provider() as provider:
        urls = [f"{proxy_to(provider.url).url}/gemini", provider.url]
        done = subprocess.run(
            [python, "-m", "tests.providers.gemini_bytes", *urls],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False, timeout=200,
        )  # fmt: skip
        half = len(provider.requests) // 2
        sent = [request._replace(headers={}) for request in provider.requests]  # the host differs
        through, direct = sent[:half], sent[half:]

    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    received = done.stdout.splitlines()
    assert received[: len(received) // 2] == received[len(received) // 2 :]
    assert through == direct
    assert len(through) == 2
