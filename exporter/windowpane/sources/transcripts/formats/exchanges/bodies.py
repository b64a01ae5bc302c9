"""The bodies of recorded requests and responses, as the calls and replies that the observer compares.

Anthropic messages, OpenAI chat completions and responses, and Gemini's `generateContent`; responses whole or as
the events of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from windowpane.models.wire.calls import ApiCall, Shape, parse_call, read_events, read_whole, sent_messages
from windowpane.models.wire.replies import Reply
from windowpane.sources.transcripts.formats.exchanges.exchange import is_nested_too_deeply
from windowpane.sources.transcripts.json_document import MAXIMUM_NAME_CHARS, parse_embedded
from windowpane.sources.transcripts.json_lines import as_json, mapping, sequence, text

Api = Literal["chat", "responses", "anthropic", "gemini"]
"""The interface that a request was made to."""

MAXIMUM_REASON_CHARS: Final = 64
_PATHS: Final[tuple[tuple[str, Api], ...]] = (
    ("/chat/completions", "chat"),
    ("/responses", "responses"),
    ("/responses/compact", "responses"),
    ("/messages", "anthropic"),
    (":generatecontent", "gemini"),
    (":streamgeneratecontent", "gemini"),
)
"""Ends of the paths of the interfaces, in lower case."""
_LIST_FIELDS: Final[dict[Api, str]] = {
    "chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents",
}  # fmt: skip


class UnreadableBodyError(Exception):
    """A body holds no call or reply; the message states what was expected."""


def api_of(uri: str, request: Mapping[str, Any], response: object) -> Api | None:
    """Return the interface of a call, by its address or the fields of its bodies; None for any other request."""
    api = api_of_path(uri)
    if api is not None and isinstance(request.get(_LIST_FIELDS[api]), list | str):
        return api
    if uri.startswith(("http://", "https://", "/")):
        return None
    if isinstance(request.get("contents"), list):
        return "gemini"
    if isinstance(request.get("messages"), list):
        return "anthropic" if _is_anthropic(request, response) else "chat"
    return "responses" if isinstance(request.get("input"), list) else None


def api_of_path(uri: str) -> Api | None:
    """Return the interface at an address; None for any other."""
    path = uri.partition("?")[0].rstrip("/").lower()
    return next((api for end, api in _PATHS if path.endswith(end)), None)


def read_call(api: Api, request: Mapping[str, Any], *, uri: str = "") -> ApiCall:
    """Return the call that a request's body makes. Raises `UnreadableBodyError`."""
    if is_nested_too_deeply(request):
        raise UnreadableBodyError("the request is nested too deeply")
    if api == "gemini":
        request = {**request, "model": _gemini_model(request, uri)}
    field = _LIST_FIELDS[api]
    messages = sent_messages(api, request)
    if isinstance(messages, list):
        request = {**request, field: [message for message in messages if isinstance(message, dict)]}
    elif not isinstance(messages, str | tuple):
        raise UnreadableBodyError(f"expected a list of messages in {field}")
    call = parse_call(api, request)
    return replace(call, model=call.model[:MAXIMUM_NAME_CHARS])


def read_response(api: Api, response: object) -> Reply:
    """Return the reply of a response's body: one object, a list of streamed events, or their text.

    Raises `FailedReplyError` for an error of the provider and `UnreadableBodyError` for anything else.
    """
    if isinstance(response, str):
        whole = parse_embedded(response)
        response = list(server_events(response)) if whole is None else whole
    if is_nested_too_deeply(response):
        raise UnreadableBodyError("the response is nested too deeply")
    try:
        reply = _read(api, response)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise UnreadableBodyError(f"expected a reply of {api}, got {type(response).__name__}") from error
    return cleaned(reply)


def cleaned(reply: Reply) -> Reply:
    """Return a reply without values that only a damaged recording has, such as an object as the model."""
    reason = reply.stop_reason
    return replace(
        reply,
        model=reply.model[:MAXIMUM_NAME_CHARS],
        stop_reason=reason[:MAXIMUM_REASON_CHARS] if isinstance(reason, str) else None,
        response_id=reply.response_id[:MAXIMUM_NAME_CHARS],
    )


def server_events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a body of server-sent events; other events, and a last one cut short, are skipped."""
    data: list[str] = []
    for line in (*text.splitlines(), ""):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            value = parse_embedded("\n".join(data))
            data.clear()
            if isinstance(value, dict):
                yield value


def _gemini_model(request: Mapping[str, Any], uri: str) -> str:
    """Return the model of a `generateContent`, which is part of the address."""
    model = text(request.get("model")) or uri.partition("?")[0].rpartition("/")[2].partition(":")[0]
    return model.removeprefix("models/")


def _read(api: Api, response: object) -> Reply:
    shape: Shape = api
    if isinstance(response, list):
        events = [event for event in response if isinstance(event, dict)]
        if not events:
            raise UnreadableBodyError("the response has no events")
        return read_events(shape, events)
    if not isinstance(response, dict):
        raise UnreadableBodyError(f"expected a reply of {api}, got {type(response).__name__}")
    return read_whole(response, shape)


def _is_anthropic(request: Mapping[str, Any], response: object) -> bool:
    """Distinguish Anthropic's messages from OpenAI's, whose requests share the field `messages`."""
    if isinstance(response, dict):
        return response.get("type") in ("message", "error") and "choices" not in response
    if isinstance(response, str):
        return '"message_start"' in response
    if any(mapping(event).get("type") == "message_start" for event in sequence(response)[:5]):
        return True
    return "system" in request or any("input_schema" in mapping(tool) for tool in sequence(request.get("tools")))


def as_text(value: object) -> str:
    """Return *value* as JSON, as a client writes it; text unchanged."""
    return value if isinstance(value, str) else as_json(value)
