"""Watches the clients of the `openai` package: chats and responses, also under `beta`, sync and async."""

from __future__ import annotations

import sys

from windowpane.observer.clients.calls import WatchedClient
from windowpane.observer.clients.resources import watch_copies, watch_resource


def watch_openai(client: object, watched: WatchedClient) -> bool:
    """Watch *client* and return True if it is a client of `openai`, which is not imported for this check."""
    openai = sys.modules.get("openai")
    if openai is None or not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        return False
    _watch(client, watched)
    return True


def _watch(client: object, watched: WatchedClient) -> None:
    for parent in (client, getattr(client, "beta", None)):
        chat = getattr(parent, "chat", None)
        watch_resource(getattr(chat, "completions", None), "chat", "/chat/completions", watched)
        watch_resource(getattr(parent, "responses", None), "responses", "/responses", watched)
    watch_copies(client, lambda made: _watch(made, watched))
