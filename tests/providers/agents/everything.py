"""Clients of packages that are imported after `windowpane.observe_everything()`, and after its end."""

from __future__ import annotations

from typing import Any

from tests.providers.agent_runs import QUESTION, SYSTEM, bedrock_client, gemini_client
from tests.providers.formats import Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

everything = windowpane.observe_everything()

import anthropic as anthropic_package  # noqa: E402  # this order is what is tested
import openai as openai_package  # noqa: E402

MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]


def openai(provider: LoopbackProvider) -> None:
    client = openai_package.OpenAI(api_key="k", base_url=f"{provider.url}/v1")
    client.chat.completions.create(model="gpt-4o", messages=MESSAGES)
    client.close()


def openai_observed_by_itself(provider: LoopbackProvider) -> None:
    """A client that is passed to `observe` too, and a copy of it: each call is recorded once."""
    client = windowpane.observe(openai_package.OpenAI(api_key="k", base_url=f"{provider.url}/v1"))
    for one in (client, client.with_options(timeout=5)):
        one.responses.create(model="gpt-4o", input=QUESTION)
    client.close()


def anthropic(provider: LoopbackProvider) -> None:
    client = anthropic_package.Anthropic(api_key="k", base_url=provider.url)
    with client.messages.stream(
        model="claude-sonnet-4-5", max_tokens=100, system=SYSTEM, messages=MESSAGES
    ) as stream:
        stream.until_done()
    client.close()


def google(provider: LoopbackProvider) -> None:
    client = gemini_client(provider)
    for _ in client.models.generate_content_stream(model="gemini-2.5-flash", contents=QUESTION):
        pass


def bedrock(provider: LoopbackProvider) -> None:
    client = bedrock_client(provider)
    client.converse(modelId="amazon.nova-pro-v1:0", messages=[{"role": "user", "content": [{"text": QUESTION}]}])


def after_the_end(provider: LoopbackProvider) -> None:
    """Classes have their own methods again, and nothing is recorded."""
    everything.close()
    assert not hasattr(openai_package._base_client.SyncAPIClient.request, "_windowpane_watched")
    openai(provider)
    google(provider)


SCENARIOS = {
    agent.__name__: agent
    for agent in (openai, openai_observed_by_itself, anthropic, google, bedrock, after_the_end)
}
for _agent in SCENARIOS.values():
    _agent.replies = lambda: [Reply()]  # type: ignore[attr-defined]
openai_observed_by_itself.replies = after_the_end.replies = lambda: [Reply()] * 2  # type: ignore[attr-defined]
after_the_end.turns, after_the_end.compared = 0, False  # type: ignore[attr-defined]
