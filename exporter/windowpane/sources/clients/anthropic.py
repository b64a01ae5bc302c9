"""Watches the clients of the `anthropic` package: messages and beta messages, sync and async.

The clients for Amazon Bedrock, Google Vertex and others are of the same base class and send the same messages.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

from windowpane.sources.clients.calls import WatchedClient
from windowpane.sources.clients.methods import Restore, mark_watched
from windowpane.sources.clients.resources import Paths, watch_copies, watch_posts, watch_requests

BASE_MODULE: Final = "anthropic._base_client"
"""The module whose classes send the requests of all clients."""
MESSAGES: Final[Paths] = {"/v1/messages": "anthropic"}


def watch_anthropic(client: object, watched: WatchedClient) -> bool:
    """Watch *client* and return True if it is a client of `anthropic`, which is not imported for this check."""
    base = sys.modules.get(BASE_MODULE)
    if base is None or not isinstance(client, base.SyncAPIClient | base.AsyncAPIClient):
        return False
    _watch(client, watched)
    return True


def watch_all_anthropic(base: ModuleType, watched: WatchedClient) -> list[Restore]:
    """Watch every client of the package, now and later."""
    kinds = (base.SyncAPIClient, base.AsyncAPIClient)
    return [restore for kind in kinds for restore in watch_requests(kind, MESSAGES, watched)]


def _watch(client: object, watched: WatchedClient) -> None:
    watch_posts(client, ("messages", "beta.messages"), MESSAGES, watched)
    watch_copies(client, lambda made: _watch(made, watched))
    mark_watched(client)
