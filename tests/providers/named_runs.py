"""Runs agents of frameworks whose adapters name them, and the requests of each by a bare client.

Usage: python -m tests.providers.named_runs STORE FRAMEWORK

It runs in the framework's virtualenv. The session `AGENT/bare` holds the requests of an agent, which are known by
its instructions.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.providers.agent_runs import report, send_bare
from tests.providers.formats import Call, Reply
from tests.providers.loopback import LoopbackProvider, loopback_provider

import windowpane
from windowpane.models.tokens import counter_for

INSTRUCTIONS = {"triage": "You only hand over to others.", "billing": "You answer questions about bills."}
"""Agents and their system prompts."""
QUESTION = "Is my bill paid?"
HAND_OVER = f"call_{'1' * 20}"


def bill(customer: str) -> str:
    """Return the bill of a customer."""
    return report(customer)


def script(first: Reply) -> list[Any]:
    """Return the reply of the first agent, and those of the second one to two questions."""
    lookups = [Call("bill", {"customer": name}, f"call_{name}_{'0' * 20}") for name in ("first", "second")]
    return [
        first,
        Reply(text="", calls=tuple(lookups), output_tokens=30),
        Reply(text="Both bills are paid.", output_tokens=6),
        Reply(text="You are welcome.", output_tokens=5),
    ]


def _observed_billing(provider: LoopbackProvider) -> tuple[Any, Any]:
    """Return the agent `billing` of the OpenAI Agents SDK, and the observed model of every agent."""
    import openai
    from agents import Agent, function_tool, set_trace_processors
    from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel

    set_trace_processors([windowpane.agents_trace_processor()])
    client = windowpane.observe(
        openai.AsyncOpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0), limit_tokens=90_000
    )
    model = OpenAIChatCompletionsModel("gpt-4o", openai_client=client)
    instructions = INSTRUCTIONS["billing"]
    return Agent(name="billing", instructions=instructions, model=model, tools=[function_tool(bill)]), model


def openai_agents(provider: LoopbackProvider) -> None:
    """A handoff, then another question to the agent that has the conversation."""
    from agents import Agent, Runner

    billing, model = _observed_billing(provider)
    triage: Any = Agent(name="triage", instructions=INSTRUCTIONS["triage"], model=model, handoffs=[billing])

    async def converse() -> None:
        first = await Runner.run(triage, QUESTION)
        await Runner.run(first.last_agent, [*first.to_input_list(), {"role": "user", "content": "Thank you."}])

    asyncio.run(converse())


def google_adk(provider: LoopbackProvider) -> None:
    """A transfer to a sub-agent, then another question in the same session."""
    from google.adk.agents import Agent
    from google.adk.apps import App
    from google.adk.models.google_llm import Gemini
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    os.environ["GOOGLE_API_KEY"] = "k"
    model = Gemini(model="gemini-2.5-flash", base_url=provider.url)
    billing = Agent(name="billing", instruction=INSTRUCTIONS["billing"], model=model, tools=[bill])
    triage = Agent(name="triage", instruction=INSTRUCTIONS["triage"], model=model, sub_agents=[billing])
    runner = InMemoryRunner(app=App(name="bills", root_agent=triage, plugins=[windowpane.adk_plugin()]))

    async def converse() -> None:
        session = await runner.session_service.create_session(app_name="bills", user_id="one")
        for text in (QUESTION, "Thank you."):
            message = types.Content(role="user", parts=[types.Part(text=text)])
            async for _ in runner.run_async(user_id="one", session_id=session.id, new_message=message):
                pass

    with windowpane.observe_everything():
        asyncio.run(converse())


def crewai(provider: LoopbackProvider) -> None:
    """Two agents, each with a task."""
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    llm = LLM(model="openai/gpt-4o", api_key="k", base_url=f"{provider.url}/v1")
    remove = windowpane.crewai_hooks()
    agents = {
        role: Agent(
            role=role, goal=goal, backstory="A clerk.", llm=llm, tools=[tool(bill)] if role == "billing" else []
        )
        for role, goal in INSTRUCTIONS.items()
    }
    tasks = [
        Task(description=QUESTION, expected_output="A sentence.", agent=agents["triage"]),
        Task(description="Look it up.", expected_output="A sentence.", agent=agents["billing"]),
        Task(description="Say goodbye.", expected_output="A sentence.", agent=agents["billing"]),
    ]
    with windowpane.observe_everything():
        Crew(agents=list(agents.values()), tasks=tasks).kickoff()
    remove()


def openai_agents_tool(provider: LoopbackProvider) -> None:
    """An agent that another one uses as a tool."""
    from agents import Agent, Runner

    billing, model = _observed_billing(provider)
    used = billing.as_tool(tool_name="billing", tool_description="Answers questions about bills.")
    triage: Any = Agent(name="triage", instructions=INSTRUCTIONS["triage"], model=model, tools=[used])
    asyncio.run(Runner.run(triage, QUESTION))


def google_adk_tool(provider: LoopbackProvider) -> None:
    """An agent that another one uses as a tool."""
    from google.adk.agents import Agent
    from google.adk.apps import App
    from google.adk.models.google_llm import Gemini
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.agent_tool import AgentTool
    from google.genai import types

    os.environ["GOOGLE_API_KEY"] = "k"
    model = Gemini(model="gemini-2.5-flash", base_url=provider.url)
    billing = Agent(name="billing", instruction=INSTRUCTIONS["billing"], model=model, tools=[bill])
    triage = Agent(name="triage", instruction=INSTRUCTIONS["triage"], model=model, tools=[AgentTool(billing)])
    observed = windowpane.observe_everything()  # gives the runner its plugin
    runner = InMemoryRunner(app=App(name="bills", root_agent=triage))

    async def converse() -> None:
        session = await runner.session_service.create_session(app_name="bills", user_id="one")
        message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        async for _ in runner.run_async(user_id="one", session_id=session.id, new_message=message):
            pass

    with observed:
        asyncio.run(converse())


def crewai_coworker(provider: LoopbackProvider) -> None:
    """An agent that delegates to another one."""
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    llm = LLM(model="openai/gpt-4o", api_key="k", base_url=f"{provider.url}/v1")
    remove = windowpane.crewai_hooks()
    triage = Agent(
        role="triage", goal=INSTRUCTIONS["triage"], backstory="A clerk.", llm=llm, allow_delegation=True
    )
    billing = Agent(
        role="billing", goal=INSTRUCTIONS["billing"], backstory="A clerk.", llm=llm, tools=[tool(bill)]
    )
    task = Task(description=QUESTION, expected_output="A sentence.", agent=triage)
    with windowpane.observe_everything():
        Crew(agents=[triage, billing], tasks=[task]).kickoff()
    remove()


def script_of_tool(call: Call) -> list[Any]:
    """Return the replies of an agent that uses another one, and of that one."""
    return [Reply(text="", calls=(call,)), *script(Reply(text=""))[1:3], Reply(text="It is paid.")]


SCRIPTS: dict[str, Callable[[], list[Any]]] = {
    "openai_agents": lambda: script(Reply(text="", calls=(Call("transfer_to_billing", {}, HAND_OVER),))),
    "google_adk": lambda: script(
        Reply(text="", calls=(Call("transfer_to_agent", {"agent_name": "billing"}, HAND_OVER),))
    ),
    "crewai": lambda: script(Reply(text="Ask billing.")),
    "openai_agents_tool": lambda: script_of_tool(Call("billing", {"input": QUESTION}, HAND_OVER)),
    "google_adk_tool": lambda: script_of_tool(Call("billing", {"request": QUESTION}, HAND_OVER)),
    "crewai_coworker": lambda: script_of_tool(
        Call(
            "delegate_work_to_coworker",
            {"task": QUESTION, "context": "A customer asks.", "coworker": "billing"},
            HAND_OVER,
        )
    ),
}
FRAMEWORKS = {
    one.__name__: one
    for one in (openai_agents, google_adk, crewai, openai_agents_tool, google_adk_tool, crewai_coworker)
}


def main() -> None:
    store, framework = Path(sys.argv[1]), sys.argv[2]
    windowpane.start(port=0, store=store, notify=[])
    counter_for("gpt-4o", wait=True)
    with loopback_provider() as provider:
        provider.script = replies = SCRIPTS[framework]()
        answered = list(replies)
        FRAMEWORKS[framework](provider)
        windowpane.start().flush()
        exchanges = list(zip(provider.requests, answered, strict=True))
        for agent, instructions in INSTRUCTIONS.items():
            own = [one for one in exchanges if instructions in json.dumps(one[0].body)]
            provider.script = [reply for _, reply in own]
            with windowpane.session(session_id=f"{agent}/bare", agent="bare"):
                for request, _ in own:
                    send_bare(request, provider)
    windowpane.stop()


if __name__ == "__main__":
    main()
