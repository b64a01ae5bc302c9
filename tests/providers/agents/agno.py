"""Agents of Agno, observed by their model or agent."""

from __future__ import annotations

import asyncio
from typing import Any

from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIChat
from tests.providers.agent_runs import QUESTION, SYSTEM, report, script
from tests.providers.loopback import LoopbackProvider

import windowpane


def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def agent_of(model: Any) -> Any:
    return Agent(model=model, tools=[weather], system_message=SYSTEM, telemetry=False)


def openai_of(provider: LoopbackProvider) -> Any:
    return OpenAIChat(id="gpt-4o", api_key="k", base_url=f"{provider.url}/v1", max_retries=0)


def openai_model(provider: LoopbackProvider) -> None:
    agent_of(windowpane.observe(openai_of(provider))).run(QUESTION)


def openai_agent_async(provider: LoopbackProvider) -> None:
    asyncio.run(windowpane.observe(agent_of(openai_of(provider))).arun(QUESTION))


def openai_stream(provider: LoopbackProvider) -> None:
    for _ in windowpane.observe(agent_of(openai_of(provider))).run(QUESTION, stream=True):
        pass


def anthropic(provider: LoopbackProvider) -> None:
    model = Claude(
        id="claude-sonnet-4-5", api_key="k", client_params={"base_url": provider.url, "max_retries": 0}
    )
    agent_of(windowpane.observe(model)).run(QUESTION)


SCENARIOS = {agent.__name__: agent for agent in (openai_model, openai_agent_async, openai_stream, anthropic)}
for _agent in SCENARIOS.values():
    _agent.replies = lambda: script()[:2]  # type: ignore[attr-defined]
