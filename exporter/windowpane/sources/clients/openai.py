"""Watches the clients of the `openai` package: chats and responses, also under `beta`, sync and async."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

from windowpane.sources.clients.calls import WatchedClient
from windowpane.sources.clients.methods import Restore, mark_watched
from windowpane.sources.clients.resources import Paths, watch_copies, watch_posts, watch_requests

BASE_MODULE: Final = "openai._base_client"
"""The module whose classes send the requests of all clients."""
PATHS: Final[Paths] = {
    "/chat/completions": "chat", "/responses": "responses", "/responses/compact": "responses",
}  # fmt: skip
_RESOURCES: Final = ("chat.completions", "responses", "beta.chat.completions", "beta.responses")


def watch_openai(client: object, watched: WatchedClient) -> bool:
    """Watch *client* and return True if it is a client of `openai`, which is not imported for this check."""
    openai = sys.modules.get("openai")
    if openai is None or not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        return False
    _watch(client, watched)
    return True


def watch_all_openai(base: ModuleType, watched: WatchedClient) -> list[Restore]:
    """Watch every client of the package, now and later."""
    kinds = (base.SyncAPIClient, base.AsyncAPIClient)
    return [restore for kind in kinds for restore in watch_requests(kind, PATHS, watched)]


def _watch(client: object, watched: WatchedClient) -> None:
    watch_posts(client, _RESOURCES, PATHS, watched)
    watch_copies(client, lambda made: _watch(made, watched))
    mark_watched(client)
