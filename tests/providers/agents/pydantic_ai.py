"""Agents of Pydantic AI, observed by their model, provider or agent."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from tests.providers.agent_runs import (
    QUESTION,
    SECOND_QUESTION,
    SYSTEM,
    bedrock_client,
    gemini_client,
    report,
)
from tests.providers.loopback import LoopbackProvider

import windowpane


def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def agent_of(model: Any) -> Any:
    return Agent(model, system_prompt=SYSTEM, tools=[weather])


def converse(agent: Any) -> None:
    first = agent.run_sync(QUESTION)
    agent.run_sync(SECOND_QUESTION, message_history=first.all_messages())


def openai_provider(provider: LoopbackProvider) -> Any:
    return OpenAIProvider(api_key="k", base_url=f"{provider.url}/v1")


def openai_model(provider: LoopbackProvider) -> None:
    converse(agent_of(windowpane.observe(OpenAIChatModel("gpt-4o", provider=openai_provider(provider)))))


def openai_by_provider(provider: LoopbackProvider) -> None:
    converse(agent_of(OpenAIChatModel("gpt-4o", provider=windowpane.observe(openai_provider(provider)))))


def openai_responses_by_agent(provider: LoopbackProvider) -> None:
    model = OpenAIResponsesModel("gpt-4o", provider=openai_provider(provider))
    converse(windowpane.observe(agent_of(model)))


def openai_stream(provider: LoopbackProvider) -> None:
    agent = windowpane.observe(agent_of(OpenAIChatModel("gpt-4o", provider=openai_provider(provider))))

    async def stream() -> None:
        history: Any = None
        for question in (QUESTION, SECOND_QUESTION):
            async with agent.run_stream(question, message_history=history) as run:
                async for _ in run.stream_text():
                    pass
                history = run.all_messages()

    asyncio.run(stream())


def anthropic_in_a_fallback(provider: LoopbackProvider) -> None:
    anthropic = AnthropicProvider(anthropic_client=AsyncAnthropic(api_key="k", base_url=provider.url))
    model = AnthropicModel("claude-sonnet-4-5", provider=anthropic)
    other = OpenAIChatModel("gpt-4o", provider=openai_provider(provider))
    converse(agent_of(windowpane.observe(FallbackModel(model, other))))


def google(provider: LoopbackProvider) -> None:
    google = GoogleProvider(client=gemini_client(provider))
    converse(agent_of(windowpane.observe(GoogleModel("gemini-2.5-flash", provider=google))))


def bedrock(provider: LoopbackProvider) -> None:
    bedrock = BedrockProvider(bedrock_client=bedrock_client(provider))
    name = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    converse(agent_of(windowpane.observe(BedrockConverseModel(name, provider=bedrock))))


SCENARIOS = {
    agent.__name__: agent
    for agent in (
        openai_model, openai_by_provider, openai_responses_by_agent, openai_stream,
        anthropic_in_a_fallback, google, bedrock,
    )
}  # fmt: skip
if version("pydantic-ai-slim").startswith("1."):  # a run ends before its stream does
    del SCENARIOS["openai_stream"]
