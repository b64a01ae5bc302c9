"""Watches DSPy's own client, which sends the calls of models since release 3.4 unless they go to LiteLLM.

The client has one class of transports for sync and one for async calls, which gets every request as it is on the
wire. A reply is recorded from its body as the client reads it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

from windowpane.models.wire.calls import Shape
from windowpane.models.wire.replies import FailedReplyError, Reply
from windowpane.sources.clients.calls import WatchedCall, WatchedClient
from windowpane.sources.clients.methods import Restore, watch_class
from windowpane.sources.clients.replies import StreamedReply
from windowpane.sources.transcripts.formats.exchanges.bodies import api_of_path, read_response

BASE_MODULE: Final = "dspy._vendor.lm15.transports"
"""The module of the transports; earlier releases of DSPy send all calls by LiteLLM."""
_METHODS: Final = (("StdlibTransport", "stream"), ("StdlibAsyncTransport", "_do_stream"))
_MODEL_IN_PATH: Final = re.compile(r"/models/([^/:?]+):(?:stream)?(generateContent|rawPredict)", re.IGNORECASE)
"""Of Gemini, and of Anthropic's models on Vertex."""
_FIRST_FAILURE: Final = 400
"""Status codes from here on are failures."""


def watch_all_dspy(transports: ModuleType, watched: WatchedClient) -> list[Restore]:
    """Watch every transport of DSPy's client, now and later."""
    start = partial(_start, watched)
    return [watch_class(getattr(transports, kind), (name,), start, _end) for kind, name in _METHODS]


def _start(watched: WatchedClient, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
    """Start a record of a request, whose arguments are the transport and the request."""
    request = kwargs.get("request") or args[1]
    in_path = _MODEL_IN_PATH.search(request.url)
    if in_path is not None:
        shape: Shape | None = "anthropic" if in_path[2].lower() == "rawpredict" else "gemini"
    else:
        shape = api_of_path(request.url)
    if shape is None or request.method != "POST":
        return None
    return watched.start(shape, request.body, model="" if in_path is None else in_path[1])


def _end(call: WatchedCall, response: Any) -> Any:
    """Record the body of the response as it is read, until the response is released."""
    reply = StreamedReply(call, partial(_read, status=response.status))
    if response.status >= _FIRST_FAILURE:
        reply.add(b"", 0)  # an error may have no body
    iterate = reply.aiterate if inspect.isasyncgen(response._chunks) else reply.iterate
    chunks = iterate(response._chunks, lambda chunk: reply.add(chunk, len(chunk)))
    release = response._release

    def end_and_release(*args: Any, **kwargs: Any) -> Any:
        reply.end()
        return release(*args, **kwargs)

    response._chunks, response._release = chunks, end_and_release
    return response


def _read(chunks: list[bytes], shape: Shape, *, status: int) -> Reply:
    body = b"".join(chunks).decode("utf-8", "replace")
    if status >= _FIRST_FAILURE:
        raise FailedReplyError(f"{status} {body}")
    assert shape != "converse"
    return read_response(shape, body)
