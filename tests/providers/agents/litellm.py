"""Agents that call their model by LiteLLM, observed by its callback, alone and beside all clients."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy.types_utils.utils import get_instance_fn
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, report
from tests.providers.documented import printed
from tests.providers.formats import Refusal, Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

litellm.suppress_debug_info = True
PAUSE_SECONDS = 0.1
"""Between calls: LiteLLM reports the end of a call on another thread, which takes less time than a real model."""
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Weather.", "parameters": PARAMETERS}}


def results(message: Any) -> list[Any]:
    """Return the messages with the results of the tools that a reply calls, or the next question."""
    if not message.tool_calls:
        return [{"role": "user", "content": SECOND_QUESTION}]
    return [
        {"role": "tool", "tool_call_id": call.id, "content": report(json.loads(call.function.arguments)["city"])}
        for call in message.tool_calls
    ]


def body(provider: LoopbackProvider, messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "openai/gpt-4o", "messages": messages, "tools": [TOOL], "api_key": "k", "max_retries": 0,
            "api_base": f"{provider.url}/v1", **more}  # fmt: skip


def opening() -> list[Any]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]


def converse(provider: LoopbackProvider, **more: Any) -> None:
    messages = opening()
    for _ in range(4):
        reply = litellm.completion(**body(provider, messages, **more))
        if more.get("stream"):
            reply = litellm.stream_chunk_builder(list(reply), messages=messages)
        message = reply.choices[0].message
        messages += [message.model_dump(exclude_none=True), *results(message)]
        time.sleep(PAUSE_SECONDS)


def completion(provider: LoopbackProvider) -> None:
    windowpane.observe(litellm)
    converse(provider)


def stream(provider: LoopbackProvider) -> None:
    windowpane.observe(litellm)
    converse(provider, stream=True, stream_options={"include_usage": True})


def beside_all_clients(provider: LoopbackProvider) -> None:
    """LiteLLM sends the calls by a client of openai, which is observed too: each is recorded once."""
    with windowpane.observe_everything():
        converse(provider)


def proxy_configuration(provider: LoopbackProvider) -> None:
    """The callback that the proxy's configuration names is loaded from the file beside it, as the proxy does."""
    page = "docs/observing.md"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "windowpane_callback.py").write_text(printed(page, "litellm_callback("))
        (settings,) = re.findall(r"callbacks: (\S+)", printed(page, "litellm_settings:", language="yaml"))
        callback = get_instance_fn(settings, str(Path(folder) / "config.yaml"))
    assert isinstance(callback, CustomLogger)
    litellm.callbacks.append(callback)
    converse(provider)
    litellm.logging_callback_manager._reset_all_callbacks()


def responses_async(provider: LoopbackProvider) -> None:
    windowpane.observe(litellm)
    options = {"model": "openai/gpt-4o", "api_key": "k", "api_base": f"{provider.url}/v1"}

    async def respond() -> None:
        await litellm.aresponses(input=QUESTION, **options)
        await asyncio.sleep(PAUSE_SECONDS)

    asyncio.run(respond())


responses_async.replies = lambda: [Reply()]  # type: ignore[attr-defined]


def completion_async(provider: LoopbackProvider) -> None:
    windowpane.observe(litellm)

    async def converse() -> None:
        messages = opening()
        for _ in range(4):
            reply = await litellm.acompletion(**body(provider, messages))
            message = reply.choices[0].message
            messages += [message.model_dump(exclude_none=True), *results(message)]
            await asyncio.sleep(PAUSE_SECONDS)

    asyncio.run(converse())


def router(provider: LoopbackProvider) -> None:
    options = {"model": "openai/gpt-4o", "api_key": "k", "api_base": f"{provider.url}/v1"}
    made = litellm.Router([{"model_name": "main", "litellm_params": options}], num_retries=0)
    windowpane.observe(made).completion("main", opening(), tools=[TOOL])


router.replies = lambda: [Reply()]  # type: ignore[attr-defined]


def anthropic(provider: LoopbackProvider) -> None:
    """A model of Anthropic, whose calls LiteLLM sends without a client; the window has them as they were made."""
    windowpane.observe(litellm)
    messages = opening()
    options = body(provider, messages, model="anthropic/claude-sonnet-4-5", api_base=provider.url)
    litellm.completion(**options)


anthropic.replies = lambda: [Reply()]  # type: ignore[attr-defined]
anthropic.compared = False  # type: ignore[attr-defined]


def refused(provider: LoopbackProvider) -> None:
    windowpane.observe(litellm)
    for kind in (litellm.ContextWindowExceededError, litellm.RateLimitError):
        try:
            litellm.completion(**body(provider, opening()))
            raise AssertionError(f"expected {kind.__name__}")
        except kind:
            time.sleep(PAUSE_SECONDS)
    litellm.completion(**body(provider, opening()))


refused.replies = lambda: [Refusal("overflow"), Refusal("rate_limit"), Reply()]  # type: ignore[attr-defined]

SCENARIOS = {
    agent.__name__: agent
    for agent in (
        beside_all_clients, proxy_configuration, completion, stream, completion_async, responses_async, router,
        anthropic, refused,
    )
}  # fmt: skip
