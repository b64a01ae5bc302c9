"""Models of frameworks that call Bedrock's Converse, observed by the model."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from langchain_aws import ChatBedrockConverse
from llama_index.core.llms import ChatMessage
from llama_index.llms.bedrock_converse import BedrockConverse
from smolagents import AmazonBedrockModel, MessageRole
from smolagents import ChatMessage as AgentMessage
from tests.providers.agent_runs import QUESTION, SYSTEM, bedrock_client
from tests.providers.formats import Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

MODEL = "us.amazon.nova-pro-v1:0"


def langchain(provider: LoopbackProvider) -> None:
    model: Any = ChatBedrockConverse(model=MODEL, client=bedrock_client(provider), region_name="us-east-1")
    windowpane.observe(model)
    model.invoke([("system", SYSTEM), ("user", QUESTION)])
    for _ in model.stream([("system", SYSTEM), ("user", QUESTION)]):
        pass


def llama_index(provider: LoopbackProvider) -> None:
    model = BedrockConverse(model=MODEL, client=bedrock_client(provider), region_name="us-east-1")
    windowpane.observe(model).chat([ChatMessage(SYSTEM, role="system"), ChatMessage(QUESTION)])


def smolagents(provider: LoopbackProvider) -> None:
    model = AmazonBedrockModel(MODEL, client=bedrock_client(provider))
    question = [{"type": "text", "text": QUESTION}]
    windowpane.observe(model)
    with suppress(KeyError):  # it expects a field of the reply that Bedrock does not send
        model.generate([AgentMessage(role=MessageRole.USER, content=question)])


SCENARIOS = {agent.__name__: agent for agent in (langchain, llama_index, smolagents)}
for _agent in SCENARIOS.values():
    _agent.replies = lambda: [Reply()]  # type: ignore[attr-defined]
langchain.replies = lambda: [Reply(), Reply()]  # type: ignore[attr-defined]
