"""Agents that call their model by a chat model of LangChain."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, report, script
from tests.providers.loopback import LoopbackProvider

import windowpane


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def converse(model: Any) -> None:
    """Ask two questions; the agent calls its model until it has an answer."""
    agent = create_agent(model, [weather], system_prompt=SYSTEM)
    state = agent.invoke({"messages": [("user", QUESTION)]})
    agent.invoke({"messages": [*state["messages"], ("user", SECOND_QUESTION)]})


async def converse_async(model: Any) -> None:
    agent = create_agent(model, [weather], system_prompt=SYSTEM)
    state = await agent.ainvoke({"messages": [("user", QUESTION)]})
    await agent.ainvoke({"messages": [*state["messages"], ("user", SECOND_QUESTION)]})


def stream(model: Any) -> None:
    agent = create_agent(model, [weather], system_prompt=SYSTEM)
    messages: list[Any] = [("user", QUESTION)]
    for question in (SECOND_QUESTION, None):
        state: Any = None
        for mode, piece in agent.stream({"messages": messages}, stream_mode=["values", "messages"]):
            state = piece if mode == "values" else state
        messages = [*state["messages"], ("user", question)]


def chat_openai(provider: LoopbackProvider, **options: Any) -> Any:
    return ChatOpenAI(model="gpt-4o", api_key="k", base_url=f"{provider.url}/v1", max_retries=0, **options)


def openai_chat(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(chat_openai(provider)))


def openai_chat_async(provider: LoopbackProvider) -> None:
    asyncio.run(converse_async(windowpane.observe(chat_openai(provider))))


def openai_chat_stream(provider: LoopbackProvider) -> None:
    stream(windowpane.observe(chat_openai(provider, stream_usage=True)))


def openai_responses(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(chat_openai(provider, use_responses_api=True)))


def azure_openai(provider: LoopbackProvider) -> None:
    model = AzureChatOpenAI(model="gpt-4o", azure_deployment="gpt-4o", api_version="2024-10-21", api_key="k",
                            azure_endpoint=provider.url, max_retries=0)  # fmt: skip
    converse(windowpane.observe(model))


def anthropic_messages(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(ChatAnthropic(model="claude-sonnet-4-5", api_key="k", base_url=provider.url)))


def anthropic_stream(provider: LoopbackProvider) -> None:
    stream(windowpane.observe(ChatAnthropic(model="claude-sonnet-4-5", api_key="k", base_url=provider.url)))


def chat_google(provider: LoopbackProvider) -> Any:
    return ChatGoogleGenerativeAI(model="gemini-2.5-flash", api_key="k", base_url=provider.url, max_retries=0)


def google(provider: LoopbackProvider) -> None:
    converse(windowpane.observe(chat_google(provider)))


def google_stream(provider: LoopbackProvider) -> None:
    stream(windowpane.observe(chat_google(provider)))


def by_name_with_bound_tools(provider: LoopbackProvider) -> None:
    """A model that is made by its name, and observed after tools were bound to it."""
    model = init_chat_model("openai:gpt-4o", api_key="k", base_url=f"{provider.url}/v1", max_retries=0)
    bound = windowpane.observe(model.bind_tools([weather]))
    messages: list[Any] = [("system", SYSTEM), ("user", QUESTION)]
    reply = bound.invoke(messages)
    results = [weather.invoke(call) for call in reply.tool_calls]
    bound.invoke([*messages, reply, *results])


by_name_with_bound_tools.replies = lambda: script()[:2]  # type: ignore[attr-defined]

SCENARIOS = {
    agent.__name__: agent
    for agent in (
        openai_chat, openai_chat_async, openai_chat_stream, openai_responses, azure_openai, anthropic_messages,
        anthropic_stream, google, google_stream, by_name_with_bound_tools,
    )
}  # fmt: skip
