"""The OpenAI and Anthropic clients as language models, over HTTP against a local server."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from windowpane.effects.model_calls import is_async, model_name
from windowpane.models.language_models import ANTHROPIC_OUTPUT_TOKENS, anthropic_model, openai_model

OPENAI_REPLY = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a summary"}}],
}  # fmt: skip
ANTHROPIC_REPLY = {
    "id": "m1", "type": "message", "role": "assistant", "model": "claude-test", "stop_reason": "end_turn",
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "a "},
                {"type": "text", "text": "summary"}],
}  # fmt: skip


class Provider:
    """A server on loopback that gives one reply to everything and keeps what it was sent."""

    def __init__(self, reply: dict[str, Any], *, status: int = 200) -> None:
        provider = self
        self.received: list[dict[str, Any]] = []
        self.paths: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                provider.received.append(json.loads(self.rfile.read(length)))
                provider.paths.append(self.path)
                body = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Keep the test's output clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def provider(reply: dict[str, Any], *, status: int = 200) -> Iterator[Provider]:
    server = Provider(reply, status=status)
    try:
        yield server
    finally:
        server.close()


async def call_and_close(client: Any, model: Any) -> str:
    async with client:
        return str(await model("be brief", "the text"))


class TestOpenAI:
    def test_a_sync_client_requests_a_chat_completion(self) -> None:
        openai = pytest.importorskip("openai", reason="the openai client is not installed")
        with provider(OPENAI_REPLY) as server, openai.OpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
            model = openai_model(client, model="gpt-5-mini", max_completion_tokens=50)

            assert model("be brief", "the text") == "a summary"

        sent = server.received[0]
        assert [message["role"] for message in sent["messages"]] == ["system", "user"]
        assert (sent["model"], sent["max_completion_tokens"]) == ("gpt-5-mini", 50)
        assert "timeout" not in sent
        assert model_name(model) == "gpt-5-mini"

    def test_an_async_client_gives_an_async_callable(self) -> None:
        openai = pytest.importorskip("openai", reason="the openai client is not installed")
        with provider(OPENAI_REPLY) as server:
            client = openai.AsyncOpenAI(api_key="k", base_url=f"{server.url}/v1")
            model = openai_model(client, model="gpt-5-mini")

            assert is_async(model)
            assert asyncio.run(call_and_close(client, model)) == "a summary"

    def test_errors_of_the_client_are_raised(self) -> None:
        openai = pytest.importorskip("openai", reason="the openai client is not installed")
        error = {"error": {"message": "no", "type": "invalid_request_error"}}
        with (
            provider(error, status=400) as server,
            openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
            pytest.raises(openai.BadRequestError),
        ):
            openai_model(client, model="gpt-5-mini")("be brief", "the text")


class TestAnthropic:
    def test_a_sync_client_requests_a_message(self) -> None:
        anthropic = pytest.importorskip("anthropic", reason="the anthropic client is not installed")
        with provider(ANTHROPIC_REPLY) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
            model = anthropic_model(client, model="claude-test")

            assert model("be brief", "the text") == "a summary"

        sent = server.received[0]
        assert sent["system"] == "be brief"
        assert sent["messages"] == [{"role": "user", "content": "the text"}]
        assert sent["max_tokens"] == ANTHROPIC_OUTPUT_TOKENS
        assert model_name(model) == "claude-test"

    def test_an_async_client_gives_an_async_callable(self) -> None:
        anthropic = pytest.importorskip("anthropic", reason="the anthropic client is not installed")
        with provider(ANTHROPIC_REPLY) as server:
            client = anthropic.AsyncAnthropic(api_key="k", base_url=server.url)
            model = anthropic_model(client, model="claude-test", max_tokens=10)

            assert inspect.iscoroutinefunction(model)
            assert asyncio.run(call_and_close(client, model)) == "a summary"
            assert server.received[0]["max_tokens"] == 10


class Recorder:
    """Replaces any client with a `create` of the right shape, and records its arguments."""

    def __init__(self, reply: Any) -> None:
        self.arguments: dict[str, Any] = {}
        self._reply = reply
        self.chat = self.completions = self.messages = self

    def create(self, **arguments: Any) -> Any:
        self.arguments = arguments
        return self._reply


@pytest.mark.parametrize("adapter", [openai_model, anthropic_model])
def test_a_call_has_a_timeout_of_a_minute_by_default(adapter: Any) -> None:
    class Empty:
        choices: tuple[object, ...] = ()
        content: tuple[object, ...] = ()

    client = Recorder(Empty())

    assert adapter(client, model="m")("be brief", "the text") == ""
    assert client.arguments["timeout"] == 60.0
    adapter(client, model="m", timeout_seconds=5)("be brief", "the text")
    assert client.arguments["timeout"] == 5
