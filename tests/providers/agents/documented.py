"""The Python blocks of the README, docs/engine.md and docs/observing.md, run as they are printed."""

from __future__ import annotations

import os
from typing import Any

import openai
from tests.providers.agent_runs import QUESTION
from tests.providers.documented import execute
from tests.providers.formats import Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

OBSERVING = "docs/observing.md"
MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]


def call(client: Any) -> None:
    """Make the call that a reader adds to a block."""
    client.chat.completions.create(model="gpt-4o", messages=MESSAGES)


def with_provider(provider: LoopbackProvider) -> None:
    """Let the clients that blocks make call the provider."""
    os.environ |= {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}


def turns_of(session_id: str) -> int:
    """Return the turns of a session that a block names itself."""
    runtime = windowpane.start()
    runtime.flush()
    assert runtime.store is not None
    row = runtime.store.session(session_id)
    return 0 if row is None else row.turns


def client_of_the_docs(provider: LoopbackProvider) -> None:
    with_provider(provider)
    execute(OBSERVING, "windowpane.observe(OpenAI()", messages=MESSAGES)


def client_of_the_readme(provider: LoopbackProvider) -> None:
    with_provider(provider)
    call(execute("README.md", "windowpane.observe(OpenAI()")["client"])


def named_session(provider: LoopbackProvider) -> None:
    with_provider(provider)
    execute(OBSERVING, "windowpane.session(", windowpane=windowpane, client=client_of(provider), run=call)
    assert turns_of("job-7") == 1


def client_of(provider: LoopbackProvider) -> Any:
    return windowpane.observe(openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0))


def manager_of_the_docs(provider: LoopbackProvider) -> None:
    with_provider(provider)
    names = execute("docs/engine.md", "client = openai.OpenAI()")
    assert turns_of(names["window"].session_id) == 1


def all_clients(provider: LoopbackProvider) -> None:
    """Comes last: the block observes the process until its end."""
    with_provider(provider)
    execute(OBSERVING, "windowpane.observe_everything(")
    call(openai.OpenAI())


SCENARIOS = {
    agent.__name__: agent
    for agent in (client_of_the_docs, client_of_the_readme, named_session, manager_of_the_docs, all_clients)
}
for _agent in SCENARIOS.values():
    _agent.replies = lambda: [Reply()]  # type: ignore[attr-defined]
for _agent in (named_session, manager_of_the_docs):  # their sessions have names of their blocks
    _agent.turns, _agent.compared = 0, False  # type: ignore[attr-defined]
