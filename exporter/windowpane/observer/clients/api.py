"""Observing mode as users call it: `observe(client)` and `session(...)`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from windowpane.exceptions import ConfigurationError
from windowpane.observer.clients.anthropic import watch_anthropic
from windowpane.observer.clients.calls import WatchedClient, boundary, current_scope, registry
from windowpane.observer.clients.openai import watch_openai
from windowpane.observer.conversations import Scope

C = TypeVar("C")

AGENT: Final = "agent"


def observe(client: C, *, agent: str = AGENT, limit_tokens: int | None = None) -> C:
    """Watch the calls of an OpenAI or Anthropic client, sync or async; returns the same client.

    *agent* names who makes the calls where no `session(...)` does, and *limit_tokens* the size of the window
    where the catalog does not know it. Observing a client twice changes nothing. Calls are observed while the
    outputs run that `windowpane.start()` sets up. Raises `TypeError` for anything that is no such client.
    """
    watched = WatchedClient(Scope(_named(agent), limit_tokens=_sized(limit_tokens)))
    if watch_openai(client, watched) or watch_anthropic(client, watched):
        return client
    raise TypeError(f"a {type(client).__name__} is no client of openai or anthropic")


@contextmanager
def session(
    *,
    agent: str = AGENT,
    session_id: str | None = None,
    limit_tokens: int | None = None,
    parent_session_id: str | None = None,
) -> Iterator[str]:
    """The calls made within belong to one session, which ends with the block; gives its id.

    Holds for the thread or task it is entered in and for tasks started there. A call under another system prompt
    becomes a child session.
    """
    named = session_id or secrets.token_hex(16)
    scope = Scope(_named(agent), named, _sized(limit_tokens), parent_session_id)
    token = current_scope.set(scope)
    reason = "completed"
    try:
        yield named
    except BaseException:
        reason = "failed"
        raise
    finally:
        current_scope.reset(token)
        with boundary.contain("ending a session"):
            for conversation in registry.leave(scope):
                with conversation.lock:
                    conversation.observer.end(reason, time.time())


def _named(agent: str) -> str:
    if not agent:
        raise ConfigurationError("agent", "the agent has no name", expected="a short name")
    return agent


def _sized(limit_tokens: int | None) -> int | None:
    if limit_tokens is not None and (isinstance(limit_tokens, bool) or limit_tokens < 1):
        raise ConfigurationError("limit_tokens", f"{limit_tokens!r} is no window size", expected=">= 1")
    return limit_tokens
