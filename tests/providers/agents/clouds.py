"""Clients of Anthropic for Bedrock and Vertex, which sign their requests and put the model into the path."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, report
from tests.providers.loopback import LoopbackProvider

import windowpane

TOOL: Any = {
    "name": "weather",
    "description": "Weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def bedrock_arguments(provider: LoopbackProvider) -> dict[str, Any]:
    return {"aws_access_key": "k", "aws_secret_key": "k", "aws_region": "us-east-1", "base_url": provider.url}


def vertex_arguments(provider: LoopbackProvider) -> dict[str, Any]:
    return {"access_token": "k", "project_id": "p", "region": "us-east5", "base_url": provider.url}


def call(model: str, messages: list[Any]) -> dict[str, Any]:
    return {"model": model, "max_tokens": 200, "system": SYSTEM, "tools": [TOOL], "messages": messages}


def answered(reply: Any) -> list[Any]:
    """Return the reply, and the results of the tools that it calls or the next question."""
    results = [
        {"type": "tool_result", "tool_use_id": part.id, "content": report(part.input["city"])}
        for part in reply.content
        if part.type == "tool_use"
    ]
    content = [part.to_dict() for part in reply.content]
    return [{"role": "assistant", "content": content}, {"role": "user", "content": results or SECOND_QUESTION}]


def converse(client: Any, model: str) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        messages += answered(client.messages.create(**call(model, messages)))


def stream(client: Any, model: str) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        with client.messages.stream(**call(model, messages)) as events:
            messages += answered(events.get_final_message())


async def converse_async(client: Any, model: str) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        messages += answered(await client.messages.create(**call(model, messages)))


BEDROCK_MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX_MODEL = "claude-sonnet-4-5@20250929"


def bedrock(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(anthropic.AnthropicBedrock(**bedrock_arguments(provider))), BEDROCK_MODEL)


def bedrock_stream(provider: LoopbackProvider) -> None:
    stream(windowpane.observe(anthropic.AnthropicBedrock(**bedrock_arguments(provider))), BEDROCK_MODEL)


def bedrock_async(provider: LoopbackProvider) -> None:
    client = windowpane.observe(anthropic.AsyncAnthropicBedrock(**bedrock_arguments(provider)))
    asyncio.run(converse_async(client, BEDROCK_MODEL))


def vertex(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(anthropic.AnthropicVertex(**vertex_arguments(provider))), VERTEX_MODEL)


def vertex_stream(provider: LoopbackProvider) -> None:
    stream(windowpane.observe(anthropic.AnthropicVertex(**vertex_arguments(provider))), VERTEX_MODEL)


def vertex_async(provider: LoopbackProvider) -> None:
    with windowpane.observe_everything():
        client = anthropic.AsyncAnthropicVertex(**vertex_arguments(provider))
        asyncio.run(converse_async(client, VERTEX_MODEL))


SCENARIOS = {
    agent.__name__: agent
    for agent in (bedrock, bedrock_stream, bedrock_async, vertex, vertex_stream, vertex_async)
}
