"""Watches the clients of the `google-genai` package: models and chats, sync and async, whole and streamed.

Every request of a client is sent by its `_api_client`, with the body as it is on the wire; automatic function
calling sends one per round. The live interface and the interactions are other protocols and are not observed.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

from windowpane.models.wire.calls import Shape, read_events, read_whole
from windowpane.models.wire.replies import Reply
from windowpane.sources.clients.calls import WatchedCall, WatchedClient
from windowpane.sources.clients.methods import Restore, watch_class, watch_object
from windowpane.sources.clients.replies import StreamedReply

BASE_MODULE: Final = "google.genai._api_client"
"""The module whose class sends the requests of all clients."""
_METHODS: Final = ("request", "async_request", "request_streamed", "async_request_streamed")
_METHOD: Final = re.compile(r":(generate|streamGenerate)Content(?:\?|$)")


def watch_google_genai(client: object, watched: WatchedClient) -> bool:
    """Watch *client* and return True if it is a client of `google-genai`; nothing is imported."""
    module = sys.modules.get("google.genai.client")
    if module is None or not isinstance(client, module.Client | module.AsyncClient):
        return False
    watch_object(client._api_client, _METHODS, partial(_start, watched), _end)
    return True


def watch_all_google_genai(base: ModuleType, watched: WatchedClient) -> list[Restore]:
    """Watch every client of the package, now and later."""
    return [watch_class(base.BaseApiClient, _METHODS, partial(_start, watched), _end)]


def _start(watched: WatchedClient, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
    """Start a record of a request, whose arguments are the client, the HTTP method, the path and the body."""
    path = kwargs.get("path") or args[2]
    body = kwargs.get("request_dict") or args[3]
    requested = _METHOD.search(path)
    if requested is None or not isinstance(body, dict):
        return None
    model = path[: requested.start()].rpartition("/")[2]
    return watched.start("gemini", {**body, "model": model, "stream": requested[1] != "generate"})


def _end(call: WatchedCall, result: Any) -> Any:
    if inspect.isgenerator(result):
        reply = StreamedReply(call, _read_chunks)
        return reply.iterate(result, partial(_retain, reply))
    if inspect.isasyncgen(result):
        reply = StreamedReply(call, _read_chunks)
        return reply.aiterate(result, partial(_retain, reply))
    call.record_reply(_text(result), _read_body)
    return result


def _retain(reply: StreamedReply[str], chunk: Any) -> None:
    body = _text(chunk)
    reply.add(body, len(body))


def _text(response: Any) -> str:
    """Return the body of a response; early releases parse it themselves."""
    return json.dumps(response) if isinstance(response, dict) else response.body or ""


def _read_body(body: str, shape: Shape) -> Reply:
    return read_whole(json.loads(body), shape)


def _read_chunks(bodies: list[str], shape: Shape) -> Reply:
    return read_events(shape, map(json.loads, filter(None, bodies)))
