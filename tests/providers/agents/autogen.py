"""Agents of AutoGen, observed by their model client or agent."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, report
from tests.providers.loopback import LoopbackProvider

import windowpane


async def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def client_of(provider: LoopbackProvider) -> Any:
    return OpenAIChatCompletionClient(model="gpt-4o", api_key="k", base_url=f"{provider.url}/v1", max_retries=0)


def agent_of(client: Any, **options: Any) -> Any:
    return AssistantAgent(
        "meteorologist", client, tools=[weather], system_message=SYSTEM, reflect_on_tool_use=True, **options
    )


async def converse(agent: Any) -> None:
    for question in (QUESTION, SECOND_QUESTION):
        await agent.run(task=question)


def model_client(provider: LoopbackProvider) -> None:
    asyncio.run(converse(agent_of(windowpane.observe(client_of(provider)))))


def assistant_agent(provider: LoopbackProvider) -> None:
    asyncio.run(converse(windowpane.observe(agent_of(client_of(provider)))))


def stream(provider: LoopbackProvider) -> None:
    asyncio.run(converse(windowpane.observe(agent_of(client_of(provider), model_client_stream=True))))


SCENARIOS = {agent.__name__: agent for agent in (model_client, assistant_agent, stream)}
