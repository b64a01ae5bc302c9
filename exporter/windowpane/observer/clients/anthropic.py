"""Watches the clients of the `anthropic` package: messages and beta messages, sync and async."""

from __future__ import annotations

import sys

from windowpane.observer.clients.calls import WatchedClient
from windowpane.observer.clients.resources import watch_copies, watch_resource

NAMES = ("Anthropic", "AsyncAnthropic", "AnthropicBedrock", "AsyncAnthropicBedrock", "AnthropicVertex",
         "AsyncAnthropicVertex")  # fmt: skip


def watch_anthropic(client: object, watched: WatchedClient) -> bool:
    """Watch *client* and return True if it is a client of `anthropic`, which is not imported for this check."""
    anthropic = sys.modules.get("anthropic")
    if anthropic is None:
        return False
    kinds = tuple(kind for name in NAMES if isinstance(kind := getattr(anthropic, name, None), type))
    if not isinstance(client, kinds):
        return False
    _watch(client, watched)
    return True


def _watch(client: object, watched: WatchedClient) -> None:
    watch_resource(getattr(client, "messages", None), "anthropic", "/v1/messages", watched)
    beta = getattr(client, "beta", None)
    watch_resource(getattr(beta, "messages", None), "anthropic", "/v1/messages", watched)
    watch_copies(client, lambda made: _watch(made, watched))
