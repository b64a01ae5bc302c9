"""The public functions of observing mode: `observe(client)`, `observe_everything()` and `session(...)`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.core.names import check_description, check_name, check_project
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.runtime.current import running_outputs
from windowpane.sources.clients.anthropic import watch_anthropic
from windowpane.sources.clients.bedrock import watch_bedrock
from windowpane.sources.clients.calls import WatchedClient, boundary, current_scope
from windowpane.sources.clients.everything import ObservedEverything
from windowpane.sources.clients.frameworks import watch_framework
from windowpane.sources.clients.google_genai import watch_google_genai
from windowpane.sources.clients.litellm import make_callback, watch_litellm
from windowpane.sources.clients.openai import watch_openai
from windowpane.sources.clients.recording import live_conversations
from windowpane.sources.conversations.conversations import Scope

C = TypeVar("C")

AGENT: Final = "agent"
ADAPTERS: Final = (watch_openai, watch_anthropic, watch_google_genai, watch_bedrock, watch_litellm)
"""One function per provider: starts watching a client and returns True, or returns False for any other object."""
ACCEPTED: Final = (
    "a client of openai, anthropic, google-genai or boto3's bedrock-runtime, the module litellm, or a model, "
    "provider or agent that holds one, of LangChain, Pydantic AI, LlamaIndex, Strands, Agno, AutoGen, smolagents "
    "or OpenAI Agents"
)


def observe(client: C, *, agent: str = AGENT, limit_tokens: int | None = None) -> C:
    """Watch the calls of a provider's client, or of what a framework holds one in; returns the same object.

    The clients are those of openai, anthropic, google-genai and boto3's bedrock-runtime, sync and async, and the
    module litellm; docs/observing.md lists the frameworks.

    *agent* names the caller of all calls outside a `session(...)`, and *limit_tokens* is the size of the window
    where the catalog does not have the model's. Observing a client twice changes nothing. Calls are observed
    while the outputs run that `windowpane.start()` sets up. Raises `TypeError` for any other object and
    `ConfigurationError` for an empty name or a size below 1.
    """
    watched = WatchedClient(_scope(agent, limit_tokens=limit_tokens))
    watch = partial(_watch, watched)
    if watch(client) or watch_framework(client, watch):
        return client
    raise TypeError(f"cannot observe a {type(client).__name__}: expected {ACCEPTED}")


def observe_everything(*, agent: str = AGENT, limit_tokens: int | None = None) -> ObservedEverything:
    """Watch the calls of all clients of openai, anthropic, google-genai, boto3 and litellm in this process.

    The clients that exist are watched, those made later, and those of packages imported later. A client that is
    passed to `observe` keeps the name given there. Ends with `close()` of the result or with its `with` block. A
    second use while the first is open changes nothing.
    """
    return ObservedEverything(WatchedClient(_scope(agent, limit_tokens=limit_tokens)))


def litellm_callback(*, agent: str = AGENT, limit_tokens: int | None = None) -> Any:
    """Return a callback for `litellm.callbacks`, or for the settings of LiteLLM's proxy."""
    return make_callback(WatchedClient(_scope(agent, limit_tokens=limit_tokens)))


def _watch(watched: WatchedClient, client: object) -> bool:
    return any(watch(client, watched) for watch in ADAPTERS)


@contextmanager
def session(
    *,
    agent: str = AGENT,
    session_id: str | None = None,
    limit_tokens: int | None = None,
    parent_session_id: str | None = None,
    title: str = "",
    label: str = "",
    project: str = "",
) -> Iterator[str]:
    """Assign the calls made within the block to one session, which ends with the block; yields the session's id.

    Applies to the thread or task that enters it and to tasks started there. A call under another system prompt
    becomes a child session. People recognize the session by *title* and *label*, which are stored without secrets
    and are never labels of metrics. It belongs to *project*, by default the configured one. Raises
    `ConfigurationError` for an empty name or a size below 1.
    """
    session_id = session_id or secrets.token_hex(16)
    scope = _scope(
        agent,
        session_id,
        limit_tokens=limit_tokens,
        parent_session_id=parent_session_id,
        title=title,
        label=label,
        project=project,
    )
    outer = current_scope.get()
    current_scope.set(scope)
    reason = "completed"
    try:
        yield session_id
    except BaseException:
        reason = "failed"
        raise
    finally:
        # Not by a token: a generator may be closed in another context, where the scope was never set.
        if current_scope.get() is scope:
            current_scope.set(outer)
        with boundary.contain("ending a session"):
            outputs = running_outputs()
            if outputs is not None:
                end = partial(live_conversations.end, scope, outputs, reason, time.time())
                outputs.observations.put("ending a session", end, required=True)


def _scope(
    agent: str,
    session_id: str | None = None,
    *,
    limit_tokens: int | None,
    parent_session_id: str | None = None,
    title: str = "",
    label: str = "",
    project: str = "",
) -> Scope:
    check_name("agent", agent)
    check_description(title=title, label=label)
    check_project("project", project)
    for key, name in (("session_id", session_id), ("parent_session_id", parent_session_id)):
        if name is not None:
            check_name(key, name)
    if limit_tokens is not None and (isinstance(limit_tokens, bool) or not 1 <= limit_tokens <= MAXIMUM_TOKENS):
        expected = f"a window size from 1 to {MAXIMUM_TOKENS}"
        raise ConfigurationError("limit_tokens", f"got {limit_tokens!r}", expected=expected)
    return Scope(agent, session_id, limit_tokens, parent_session_id, title, label, project)
