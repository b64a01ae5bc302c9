"""Agents of the OpenAI Agents SDK, observed by their model."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, report
from tests.providers.loopback import LoopbackProvider

import windowpane

set_tracing_disabled(disabled=True)


@function_tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def client_of(provider: LoopbackProvider) -> Any:
    return AsyncOpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0)


async def converse(agent: Any) -> None:
    first = await Runner.run(agent, QUESTION)
    await Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": SECOND_QUESTION}])


async def stream(agent: Any) -> None:
    run = Runner.run_streamed(agent, QUESTION)
    async for _ in run.stream_events():
        pass
    again = Runner.run_streamed(agent, [*run.to_input_list(), {"role": "user", "content": SECOND_QUESTION}])
    async for _ in again.stream_events():
        pass


def agent_of(model: Any) -> Any:
    return Agent(name="meteorologist", instructions=SYSTEM, tools=[weather], model=model)


def chat(provider: LoopbackProvider) -> None:
    model = OpenAIChatCompletionsModel("gpt-4o", openai_client=client_of(provider))
    asyncio.run(converse(agent_of(windowpane.observe(model))))


def responses(provider: LoopbackProvider) -> None:
    model = OpenAIResponsesModel("gpt-4o", openai_client=client_of(provider))
    asyncio.run(converse(windowpane.observe(agent_of(model))))


def responses_stream(provider: LoopbackProvider) -> None:
    model = OpenAIResponsesModel("gpt-4o", openai_client=client_of(provider))
    asyncio.run(stream(windowpane.observe(agent_of(model))))


SCENARIOS = {agent.__name__: agent for agent in (chat, responses, responses_stream)}
