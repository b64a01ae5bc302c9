"""Agents of LlamaIndex, observed by their LLM."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAI
from tests.providers.agent_runs import QUESTION, SYSTEM, report, script
from tests.providers.formats import Reply
from tests.providers.loopback import LoopbackProvider

import windowpane


def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def openai_of(provider: LoopbackProvider, **options: Any) -> Any:
    return OpenAI(model="gpt-4o", api_key="k", api_base=f"{provider.url}/v1", max_retries=0, **options)


async def converse(llm: Any, *, streaming: bool) -> None:
    agent = FunctionAgent(tools=[weather], llm=llm, system_prompt=SYSTEM, streaming=streaming)
    await agent.run(QUESTION)


def openai(provider: LoopbackProvider) -> None:
    asyncio.run(converse(windowpane.observe(openai_of(provider)), streaming=False))


def openai_stream(provider: LoopbackProvider) -> None:
    asyncio.run(converse(windowpane.observe(openai_of(provider)), streaming=True))


def client_for_each_call(provider: LoopbackProvider) -> None:
    llm = windowpane.observe(openai_of(provider, reuse_client=False))
    llm.chat([ChatMessage(QUESTION)])


def anthropic(provider: LoopbackProvider) -> None:
    llm = Anthropic(model="claude-sonnet-4-5", api_key="k", base_url=provider.url, max_retries=0)
    asyncio.run(converse(windowpane.observe(llm), streaming=False))


SCENARIOS = {agent.__name__: agent for agent in (openai, openai_stream, client_for_each_call, anthropic)}
for _agent in SCENARIOS.values():
    _agent.replies = lambda: script()[:2]  # type: ignore[attr-defined]
client_for_each_call.replies = lambda: [Reply()]  # type: ignore[attr-defined]
