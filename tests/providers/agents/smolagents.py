"""Agents of smolagents, observed by their model or agent."""

from __future__ import annotations

import litellm
from smolagents import LiteLLMModel, OpenAIModel, ToolCallingAgent, tool
from tests.providers.agent_runs import QUESTION, report
from tests.providers.formats import Call, Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

litellm.suppress_debug_info = True


@tool
def weather(city: str) -> str:
    """Return the weather in a city.

    Args:
        city: The name of the city.
    """
    return report(city)


def final_script() -> list[Reply]:
    """Return two rounds of tools and the call of the tool by which these agents answer."""
    calls = [(("Paris", "Rome"), 40), (("Oslo",), 20)]
    rounds = [
        Reply(
            "",
            tuple(Call("weather", {"city": city}, f"call_{city}_{'0' * 20}") for city in cities),
            output_tokens=count,
        )
        for cities, count in calls
    ]
    return [*rounds, Reply("", (Call("final_answer", {"answer": "The same."}, f"call_end_{'0' * 20}"),))]


def openai_model(provider: LoopbackProvider) -> None:
    model = OpenAIModel("gpt-4o", api_base=f"{provider.url}/v1", api_key="k")
    ToolCallingAgent([weather], windowpane.observe(model), verbosity_level=0).run(QUESTION)


def openai_agent(provider: LoopbackProvider) -> None:
    model = OpenAIModel("gpt-4o", api_base=f"{provider.url}/v1", api_key="k")
    agent = windowpane.observe(ToolCallingAgent([weather], model, verbosity_level=0, stream_outputs=True))
    for _ in agent.run(QUESTION, stream=True):
        pass


def litellm_model(provider: LoopbackProvider) -> None:
    model = LiteLLMModel("openai/gpt-4o", api_base=f"{provider.url}/v1", api_key="k")
    ToolCallingAgent([weather], windowpane.observe(model), verbosity_level=0).run(QUESTION)


SCENARIOS = {agent.__name__: agent for agent in (openai_model, openai_agent, litellm_model)}
for _agent in SCENARIOS.values():
    _agent.replies = final_script  # type: ignore[attr-defined]
