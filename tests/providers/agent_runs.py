"""Runs the agents of one framework against the scripted provider, and their requests again by a bare client.

Usage: python -m tests.providers.agent_runs STORE FRAMEWORK...

It runs in the framework's virtualenv. Each run is a session named after its scenario; the session `NAME/bare`
holds the same requests, sent by an observed client of the provider. The test compares the two in STORE;
beside it a JSON file states what the script expects of each scenario.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.providers.formats import Call, Refusal, Reply
from tests.providers.loopback import LoopbackProvider, Request, loopback_provider

import windowpane
from windowpane.models.tokens import counter_for

QUESTION = "Compare the weather in Paris and Rome."
SECOND_QUESTION = "And in Oslo?"
SYSTEM = "You are a careful meteorologist. Use the tool, then answer in one sentence."
LATE_REPORT_SECONDS = 5.0

Agent = Callable[[LoopbackProvider], object]


def report(city: str) -> str:
    """Return a tool's result, long enough to be seen in the window."""
    return f"{city}: 21 degrees, clear sky, light wind from the west. " * 12


def script() -> list[Reply | Refusal]:
    """Return the replies of one conversation: parallel calls, a text, a call, a text."""
    calls = tuple(Call("weather", {"city": city}, f"call_{city}_{'0' * 20}") for city in ("Paris", "Rome"))
    oslo = (Call("weather", {"city": "Oslo"}, f"call_Oslo_{'0' * 20}"),)
    return [
        Reply(text="", calls=calls, output_tokens=40),
        Reply(text="Both cities have 21 degrees and a clear sky today.", output_tokens=12),
        Reply(text="", calls=oslo, output_tokens=20),
        Reply(text="Oslo has the same weather as Paris and Rome.", output_tokens=11),
    ]


def run(name: str, agent: Agent, provider: LoopbackProvider, replies: Sequence[Reply | Refusal]) -> None:
    """Run one agent in a session, then its requests by a bare client in another."""
    provider.script, provider.requests = list(replies), []
    with windowpane.session(session_id=name):
        agent(provider)
        _wait_for_turns(name, expected_turns(agent, replies))
    if not getattr(agent, "compared", True):
        return
    requests = list(provider.requests)
    provider.script, provider.requests = list(replies), []
    with windowpane.session(session_id=f"{name}/bare"):
        for request in requests:
            try:
                send_bare(request, provider)
            except Exception as error:  # noqa: BLE001  # the script has errors, too
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)


def expected_turns(agent: Agent, replies: Sequence[Reply | Refusal]) -> int:
    """Return the turns of an agent's session: a refused call belongs to the turn of its retry."""
    turns: int = getattr(agent, "turns", sum(isinstance(reply, Reply) for reply in replies))
    return turns


def _wait_for_turns(session_id: str, count: int) -> None:
    """Wait until *count* turns are recorded: LiteLLM reports the end of a call on another thread."""
    runtime = windowpane.start()
    assert runtime.store is not None
    deadline = time.monotonic() + LATE_REPORT_SECONDS
    while time.monotonic() < deadline:
        runtime.flush()
        row = runtime.store.session(session_id)
        if (0 if row is None else row.turns) >= count:
            return
        time.sleep(0.02)


def send_bare(request: Request, provider: LoopbackProvider) -> None:
    """Send a recorded request again by the provider's own client, and read all of its reply."""
    body = dict(request.body)
    if request.shape in ("chat", "responses"):
        client = bare_client("openai", provider)
        create = client.chat.completions.create if request.shape == "chat" else client.responses.create
        _read(create(**body), streams=request.streams)
    elif request.shape in ("messages", "invoke"):
        client = bare_client("anthropic", provider)
        body.pop("anthropic_version", None)
        model = body.pop("model", None) or _model_in(request.path)
        more = {"stream": True} if request.streams and "stream" not in body else {}
        _read(client.messages.create(model=model, **body, **more), streams=request.streams)
    elif request.shape == "gemini":
        client = bare_client("gemini", provider)
        path = request.path.partition("/v1beta/")[2]
        method = client._api_client.request_streamed if request.streams else client._api_client.request
        _read(method("post", path + ("?alt=sse" if request.streams else ""), body), streams=request.streams)
    else:
        client = bare_client("bedrock", provider)
        model = request.path.split("/")[2]
        method = client.converse_stream if request.streams else client.converse
        reply = method(modelId=model, **body)
        _read(reply.get("stream"), streams=request.streams)


def _model_in(path: str) -> str:
    """Return the model of `/model/MODEL/invoke` or `.../models/MODEL:rawPredict`."""
    if "/models/" in path:
        return path.rpartition("/models/")[2].partition(":")[0]
    return path.split("/")[2]


@cache
def bare_client(package: str, provider: LoopbackProvider) -> Any:
    """Return the observed client that sends all requests again: making one takes longer than a request."""
    if package == "openai":
        import openai

        client: Any = openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0)
    elif package == "anthropic":
        import anthropic

        client = anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0, timeout=60)
    else:
        client = gemini_client(provider) if package == "gemini" else bedrock_client(provider)
    return windowpane.observe(client)


def _read(reply: Any, *, streams: bool) -> None:
    if streams:
        for _ in reply:
            pass


def gemini_client(provider: LoopbackProvider) -> Any:
    """Return a client of google-genai that sends to the provider."""
    from google import genai

    return genai.Client(api_key="k", http_options={"base_url": provider.url})


def bedrock_client(provider: LoopbackProvider) -> Any:
    """Return a client of Bedrock that sends to the provider."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=provider.url, aws_access_key_id="k",
        aws_secret_access_key="k", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def agents_of(frameworks: Sequence[str]) -> Iterator[tuple[str, Agent]]:
    """Yield the name and the agent of each scenario; a framework is imported when those before it have run."""
    for framework in frameworks:
        module = import_module(f"tests.providers.agents.{framework}")
        for name, agent in module.SCENARIOS.items():
            yield f"{framework}.{name}", agent


def main() -> None:
    store, frameworks = Path(sys.argv[1]), sys.argv[2:]
    windowpane.start(port=0, store=store, notify=[])
    for model in ("gpt-4o", "claude-sonnet-4-5"):
        counter_for(model, wait=True)
    failures, scenarios = {}, {}
    with loopback_provider() as provider:
        for name, agent in agents_of(frameworks):
            replies = getattr(agent, "replies", script)()
            try:
                run(name, agent, provider, replies)
            except Exception as error:  # noqa: BLE001  # the others are tried too; the test reports it
                failures[name] = f"{type(error).__name__}: {error}"
            scenarios[name] = {
                "turns": expected_turns(agent, replies),
                "overflows": sum(isinstance(reply, Refusal) and reply.kind == "overflow" for reply in replies),
                "compared": getattr(agent, "compared", True),
            }
    windowpane.stop()
    store.with_suffix(".json").write_text(json.dumps({"failures": failures, "scenarios": scenarios}))


if __name__ == "__main__":
    main()
