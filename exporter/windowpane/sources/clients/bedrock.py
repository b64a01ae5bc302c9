"""Watches the clients of `boto3` and `botocore` for `bedrock-runtime`.

Observed are `converse` and `converse_stream` of every model, and `invoke_model` with and without a stream for the
models of Anthropic, whose requests name their version. Every call of a client is made by `_make_api_call`.
"""

from __future__ import annotations

import json
import sys
import weakref
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

from windowpane.models.wire.calls import Shape, read_events
from windowpane.models.wire.messages import copy_structure
from windowpane.models.wire.replies import Reply
from windowpane.sources.clients.bodies import read_body
from windowpane.sources.clients.calls import WatchedCall, WatchedClient
from windowpane.sources.clients.methods import Restore, watch_class, watch_object
from windowpane.sources.clients.replies import StreamedReply

BASE_MODULE: Final = "botocore.client"
"""The module whose class makes the calls of all clients."""
_METHODS: Final = ("_make_api_call",)
_CONVERSE: Final = ("Converse", "ConverseStream")
_INVOKE: Final = ("InvokeModel", "InvokeModelWithResponseStream")


class FailedStreamError(Exception):
    """The service ended a stream with an exception; the message is the service's."""


def watch_bedrock(client: object, watched: WatchedClient) -> bool:
    """Watch *client* and return True if it is one of `botocore` for `bedrock-runtime`; nothing is imported."""
    base = sys.modules.get(BASE_MODULE)
    if base is None or not isinstance(client, base.BaseClient) or not _is_runtime(client):
        return False
    watch_object(client, _METHODS, partial(_start, watched), _end)
    return True


def watch_all_bedrock(base: ModuleType, watched: WatchedClient) -> list[Restore]:
    """Watch every client for `bedrock-runtime`, now and later."""

    def start(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
        return _start(watched, args, kwargs) if _is_runtime(args[0]) else None

    return [watch_class(base.BaseClient, _METHODS, start, _end)]


def _is_runtime(client: Any) -> bool:
    return bool(client.meta.service_model.service_name == "bedrock-runtime")


def _start(watched: WatchedClient, args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> WatchedCall | None:
    _, operation, body = args
    model = str(body.get("modelId", "")).rpartition("/")[2]  # of an ARN the name alone, without the account
    if operation in _CONVERSE:
        return watched.start("converse", {**body, "model": model, "stream": operation != "Converse"})
    sent = body.get("body")
    if operation not in _INVOKE or not isinstance(sent, str | bytes):
        return None
    if not (b"anthropic_version" in sent if isinstance(sent, bytes) else "anthropic_version" in sent):
        return None
    return watched.start("anthropic", sent, model=model)


def _end(call: WatchedCall, result: Any) -> Any:
    stream = result.get("stream") or result.get("body")
    if stream is None:
        call.record_reply(copy_structure(result))  # callers take its fields out, as LangChain does
    elif hasattr(stream, "_event_generator"):
        _watch_events(stream, StreamedReply(call, _read_events if "stream" in result else _read_chunks))
    elif hasattr(stream, "_raw_stream"):
        _watch_body(stream._raw_stream, StreamedReply(call, _read_pieces))
    else:
        call.record_unread_reply()
    return result


def _watch_events(stream: Any, reply: StreamedReply[Any]) -> None:
    """Record the events of a stream as the agent reads them."""

    def retain(event: Any) -> None:
        if event.headers.get(":message-type", "event") != "event":
            kind = event.headers.get(":exception-type") or event.headers.get(":error-code")
            reply.fail(FailedStreamError(f"{kind}: {event.payload.decode(errors='replace')}"))
        reply.add(event, len(event.payload))

    def close() -> None:
        reply.end()
        type(stream).close(stream)

    stream._event_generator = reply.iterate(stream._event_generator, retain)
    stream.close = close


def _watch_body(raw: Any, reply: StreamedReply[bytes]) -> None:
    """Record the body of a response through the method by which every reader of it reads."""
    weak = weakref.ref(raw)

    def read(*args: Any, **kwargs: Any) -> bytes:
        own: Any = weak()
        try:
            piece: bytes = type(own).read(own, *args, **kwargs)
        except BaseException as error:
            reply.fail(error)
            raise
        reply.add(piece, len(piece))
        size = args[0] if args else kwargs.get("amt")
        if size is None or (not piece and size):
            reply.end()
        return piece

    raw.read = read


def _read_events(events: list[Any], shape: Shape) -> Reply:
    return read_events(shape, ({e.headers[":event-type"]: json.loads(e.payload)} for e in events))


def _read_chunks(events: list[Any], shape: Shape) -> Reply:
    """Return the reply that the events of the model's own format make up."""

    def chunks() -> Iterator[object]:
        for event in events:
            chunk = json.loads(event.payload).get("bytes")
            if chunk:
                yield json.loads(b64decode(chunk))

    return read_events(shape, chunks())


def _read_pieces(pieces: list[bytes], _shape: Shape) -> Reply:
    return read_body(b"".join(pieces), _shape, decoder=None)
