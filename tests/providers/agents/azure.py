"""Clients of Azure OpenAI, which name the deployment in the path."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from tests.providers.agent_runs import QUESTION, SYSTEM
from tests.providers.formats import Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

CALL: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}],
}


def arguments(provider: LoopbackProvider) -> dict[str, Any]:
    return {"azure_endpoint": provider.url, "api_key": "k", "api_version": "2024-10-21", "max_retries": 0}


def azure(provider: LoopbackProvider) -> None:
    client = windowpane.observe(openai.AzureOpenAI(**arguments(provider)))
    client.chat.completions.create(**CALL)
    with client.chat.completions.stream(**CALL) as stream:
        stream.until_done()
    client.close()


def azure_async(provider: LoopbackProvider) -> None:
    async def converse() -> None:
        async with windowpane.observe(openai.AsyncAzureOpenAI(**arguments(provider))) as client:
            await client.chat.completions.create(**CALL)
            await client.chat.completions.create(**CALL)

    asyncio.run(converse())


SCENARIOS = {agent.__name__: agent for agent in (azure, azure_async)}
for _agent in SCENARIOS.values():
    _agent.replies = lambda: [Reply(), Reply()]  # type: ignore[attr-defined]
