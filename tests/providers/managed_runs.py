"""Runs agents of frameworks whose windows are managed, and the same conversations by hand-driven managers.

Usage: python -m tests.providers.managed_runs STORE [strands]

It runs in the frameworks' virtualenv. The manager of a run is named after its framework, the hand-driven one
`NAME by hand`. Beside STORE a JSON file has, for each, what was sent with each call.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openai
from tests.providers.agent_runs import SYSTEM, report
from tests.providers.formats import Call, Refusal, Reply
from tests.providers.loopback import LoopbackProvider, loopback_provider

import windowpane
from windowpane import (
    agents_input_filter,
    langchain_middleware,
    pydantic_ai_processor,
    strands_conversation_manager,
)
from windowpane.agents.frameworks.conversations import Conversations
from windowpane.models.tokens import counter_for

CITIES = (
    "Paris", "Rome", "Oslo", "Bern", "Riga", "Cairo", "Lima", "Quito",
    "Accra", "Delhi", "Hanoi", "Kyoto", "Milan", "Tunis", "Praia", "Sofia",
)  # fmt: skip
QUESTIONS = [f"What is the weather in {city}?" for city in CITIES]
OPTIONS: dict[str, Any] = {"model": "gpt-4o", "limit_tokens": 4_400}


def weather(city: str) -> str:
    """Return the weather in a city."""
    return report(city)


def script() -> list[Reply | Refusal]:
    """Return for each question a call and a text."""
    return [
        reply
        for city in CITIES
        for reply in (
            Reply(text="", calls=(Call("weather", {"city": city}, f"call_{city}"),), output_tokens=20),
            Reply(text=f"{city} has 21 degrees and a clear sky today.", output_tokens=12),
        )
    ]


def chat_openai(provider: LoopbackProvider, **options: Any) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o", api_key="k", base_url=f"{provider.url}/v1", max_retries=0, **options)


def langchain(provider: LoopbackProvider, name: str, questions: Sequence[str] = QUESTIONS) -> None:
    from langchain.agents import create_agent

    managed = langchain_middleware(agent=name, **OPTIONS)
    agent = create_agent(chat_openai(provider), [weather], system_prompt=SYSTEM, middleware=[managed])
    messages: list[Any] = []
    for question in questions:
        messages = agent.invoke({"messages": [*messages, ("user", question)]})["messages"]
    managed.close()


def langchain_async(provider: LoopbackProvider, name: str, questions: Sequence[str] = QUESTIONS) -> None:
    """Streamed, with the history in the framework's memory."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    managed = langchain_middleware(agent=name, **OPTIONS)
    model = chat_openai(provider, stream_usage=True)
    agent = create_agent(
        model, [weather], system_prompt=SYSTEM, middleware=[managed], checkpointer=InMemorySaver()
    )

    async def converse() -> None:
        for question in questions:
            messages = {"messages": [("user", question)]}
            async for _ in agent.astream(messages, {"configurable": {"thread_id": "1"}}, stream_mode="messages"):
                pass

    asyncio.run(converse())
    managed.close()


def openai_agents(provider: LoopbackProvider, name: str, questions: Sequence[str] = QUESTIONS) -> None:
    from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled
    from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel

    set_tracing_disabled(disabled=True)
    managed = agents_input_filter(agent="", **OPTIONS)
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0)
    model = OpenAIChatCompletionsModel("gpt-4o", openai_client=client)
    agent: Any = Agent(name=name, instructions=SYSTEM, tools=[function_tool(weather)], model=model)

    async def converse() -> None:
        items: list[Any] = []
        for question in questions:
            run = await Runner.run(
                agent,
                [*items, {"role": "user", "content": question}],
                run_config=RunConfig(call_model_input_filter=managed),
                hooks=managed,
            )
            items = run.to_input_list()

    asyncio.run(converse())
    managed.close()


def pydantic_ai(provider: LoopbackProvider, name: str, questions: Sequence[str] = QUESTIONS) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import ProcessHistory
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    managed: Any = pydantic_ai_processor(agent=name, **OPTIONS)
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="k", base_url=f"{provider.url}/v1"))
    agent: Any = Agent(model, instructions=SYSTEM, tools=[weather], capabilities=[ProcessHistory(managed)])
    history: Any = None
    for question in questions:
        history = agent.run_sync(question, message_history=history).all_messages()
    managed.close()


def strands(provider: LoopbackProvider, name: str, questions: Sequence[str] = QUESTIONS) -> None:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    managed = strands_conversation_manager(agent=name, **OPTIONS)
    arguments = {"api_key": "k", "base_url": f"{provider.url}/v1", "max_retries": 0}
    model = OpenAIModel(client_args=arguments, model_id="gpt-4o")
    agent = Agent(
        model=model,
        tools=[tool(weather)],
        system_prompt=SYSTEM,
        conversation_manager=managed,
        callback_handler=None,
    )
    for question in questions:
        agent(question)
    managed.close()


AGENTS = (langchain, langchain_async, openai_agents, pydantic_ai)


def by_hand(name: str, bodies: list[dict[str, Any]], provider: LoopbackProvider, tools: Any) -> list[Any]:
    """Drive a manager through the same conversation, with the provider's replies to the same requests."""
    sent = []
    with windowpane.ContextWindowManager(agent=f"{name} by hand", **OPTIONS) as window:
        window.add_system(SYSTEM)
        window.add_tool_definitions(tools)
        client = openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0)
        requests = iter(bodies)
        for city, question in zip(CITIES, QUESTIONS, strict=True):
            window.add_user(question)
            for is_call in (True, False):
                window.on_turn_start()
                sent.append(window.messages())
                window.on_turn_end(_reply(client, next(requests)))
                if is_call:
                    window.on_tool_result("weather", report(city), f"call_{city}")
    return sent


def _reply(client: Any, body: dict[str, Any]) -> Any:
    """Return the reply to a request, complete if it was streamed."""
    return client.chat.completions.create(**{**body, "stream": False, "stream_options": openai.omit})


def run(agent: Callable[..., object], provider: LoopbackProvider) -> dict[str, Any]:
    """Run one agent, then the manager by hand; return what both sent."""
    name, tools = agent.__name__, []
    add_tool_definitions = windowpane.ContextWindowManager.add_tool_definitions

    def record(window: Any, definitions: Any) -> None:
        tools[:] = definitions
        add_tool_definitions(window, tools)

    windowpane.ContextWindowManager.add_tool_definitions = record  # type: ignore[method-assign]
    try:
        provider.script, provider.requests = script(), []
        agent(provider, name)
    finally:
        windowpane.ContextWindowManager.add_tool_definitions = add_tool_definitions  # type: ignore[method-assign]
    bodies = [request.body for request in provider.requests]
    provider.script, provider.requests = script(), []
    expected = by_hand(name, bodies, provider, tools)
    return {"sent": [body["messages"] for body in bodies], "by_hand": expected}


def hand_over(provider: LoopbackProvider) -> None:
    """Run an agent that hands the conversation to another one."""
    from agents import Agent, RunConfig, Runner
    from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel

    provider.script = [
        Reply(text="", calls=(Call("transfer_to_billing", {}, "call_1"),), output_tokens=5),
        Reply(text="It is paid.", output_tokens=4),
        Reply(text="Yes?", output_tokens=2),
    ]
    managed = agents_input_filter(agent="", **OPTIONS)
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0)
    model = OpenAIChatCompletionsModel("gpt-4o", openai_client=client)
    billing: Any = Agent(name="billing", instructions="You answer questions about bills.", model=model)
    triage: Any = Agent(name="triage", instructions="You hand over.", handoffs=[billing], model=model)

    async def converse() -> None:
        config = RunConfig(call_model_input_filter=managed)
        await Runner.run(triage, "Is my bill paid?", run_config=config, hooks=managed)
        await Runner.run(triage, "Hello", run_config=config, hooks=managed)

    asyncio.run(converse())
    managed.close()


def overflow(provider: LoopbackProvider) -> None:
    """Run an agent whose second call the provider rejects as too large."""
    from langchain.agents import create_agent

    replies = script()
    provider.script = [*replies[:3], Refusal("overflow"), *replies[3:4]]
    managed = langchain_middleware(agent="overflow", model="gpt-4o")
    agent = create_agent(chat_openai(provider), [weather], system_prompt=SYSTEM, middleware=[managed])
    messages: list[Any] = []
    for question in QUESTIONS[:2]:
        messages = agent.invoke({"messages": [*messages, ("user", question)]})["messages"]
    managed.close()


def strands_overflow(provider: LoopbackProvider) -> None:
    """Run an agent whose second call the provider rejects as too large."""
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    replies = script()
    provider.script = [*replies[:3], Refusal("overflow"), *replies[3:4]]
    managed = strands_conversation_manager(agent="overflow", model="gpt-4o")
    arguments = {"api_key": "k", "base_url": f"{provider.url}/v1", "max_retries": 0}
    model = OpenAIModel(client_args=arguments, model_id="gpt-4o")
    agent = Agent(model=model, tools=[tool(weather)], conversation_manager=managed, callback_handler=None)
    for question in QUESTIONS[:2]:
        agent(question)
    managed.close()


def run_broken(agent: Callable[..., object], provider: LoopbackProvider) -> int:
    """Run one agent while managing fails; return the number of messages of its last call."""
    prepare = Conversations.prepare
    Conversations.prepare = lambda *_, **__: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    try:
        provider.script, provider.requests = script(), []
        agent(provider, f"{agent.__name__} broken", QUESTIONS[:1])
    finally:
        Conversations.prepare = prepare  # type: ignore[method-assign]
    return len(provider.requests[-1].body["messages"])


def main() -> None:
    store = Path(sys.argv[1])
    windowpane.start(port=0, store=store, notify=[])
    counter_for("gpt-4o", wait=True)
    is_strands = "strands" in sys.argv
    with loopback_provider() as provider:
        outcome = {
            agent.__name__: {
                **run(agent, provider),
                "unmanaged": None if agent is langchain_async else run_broken(agent, provider),
            }  # LangChain keeps the connections of a loop that has ended
            for agent in ((strands,) if is_strands else AGENTS)
        }
        if is_strands:
            strands_overflow(provider)
        else:
            hand_over(provider)
            overflow(provider)
    windowpane.stop()
    store.with_suffix(".json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
