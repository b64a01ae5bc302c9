"""Agents of Strands, observed by their model or agent."""

from __future__ import annotations

from typing import Any

from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.bedrock import BedrockModel
from strands.models.openai import OpenAIModel
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, bedrock_client, report, script
from tests.providers.loopback import LoopbackProvider

import windowpane


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def agent_of(model: Any) -> Any:
    return Agent(model=model, tools=[weather], system_prompt=SYSTEM, callback_handler=None)


def converse(agent: Any) -> None:
    for question in (QUESTION, SECOND_QUESTION):
        agent(question)


def openai_of(provider: LoopbackProvider) -> Any:
    """A model that makes a client for each call."""
    arguments = {"api_key": "k", "base_url": f"{provider.url}/v1", "max_retries": 0}
    return OpenAIModel(client_args=arguments, model_id="gpt-4o")


def openai_model(provider: LoopbackProvider) -> None:
    converse(agent_of(windowpane.observe(openai_of(provider))))


def openai_agent(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(agent_of(openai_of(provider))))


def anthropic(provider: LoopbackProvider) -> None:
    arguments = {"api_key": "k", "base_url": provider.url, "max_retries": 0}
    model = AnthropicModel(client_args=arguments, model_id="claude-sonnet-4-5", max_tokens=100)
    agent_of(windowpane.observe(model))(QUESTION)  # its second call would use the connections of an ended loop


anthropic.replies = lambda: script()[:2]  # type: ignore[attr-defined]


def bedrock(provider: LoopbackProvider) -> None:
    model = BedrockModel(model_id="us.anthropic.claude-sonnet-4-5-20250929-v1:0", region_name="us-east-1")
    model.client = bedrock_client(provider)
    converse(agent_of(windowpane.observe(model)))


SCENARIOS = {agent.__name__: agent for agent in (openai_model, openai_agent, anthropic, bedrock)}
