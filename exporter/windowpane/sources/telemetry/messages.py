"""Messages in the forms of the conventions, converted to the one that the observer reads.

The result is a role and a list of parts: `text`, `thinking`, `tool_use`, `tool_result` and `image`. Read are the
parts of OpenTelemetry, OpenAI, Anthropic, the Vercel AI SDK and LangChain; what is in none of these forms becomes
text, so that no content is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from windowpane.models.wire.replies import ReplyPart

Message = dict[str, Any]
MAXIMUM_MESSAGES: Final = 20_000
"""Messages of one call that are read."""
REMEMBERED_MESSAGES: Final = 4_096
REMEMBERED_BYTES: Final = 16_384
"""Messages whose conversion is remembered, and the largest of them; nothing changes a converted message."""

_ROLES: Final = {
    "human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool",
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "HumanMessageChunk": "user", "AIMessageChunk": "assistant", "FunctionMessage": "tool",
}  # fmt: skip
_TEXT_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_THINKING_KINDS: Final = frozenset({"thinking", "reasoning", "redacted_thinking", "thought"})
_CALL_KINDS: Final = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "server_tool_call"})
_RESULT_KINDS: Final = frozenset(
    {"tool_call_response", "tool-result", "tool_result", "function_call_output", "server_tool_call_response"}
)
_WRAPPERS: Final = frozenset({"result", "output", "error"})
_MEDIA_KINDS: Final = frozenset(
    {
        "image",
        "image_url",
        "input_image",
        "file",
        "document",
        "blob",
        "uri",
        "audio",
        "video",
        "input_audio",
        "media",
    }
)


def decoded(value: Any) -> Any:
    """Return *value* with JSON text decoded; text that is not JSON unchanged."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return value
    return value


def messages_of(value: Any) -> list[Message] | None:
    """Return the messages in *value*, a list or its JSON text; None where it holds no list."""
    listed = _listed(value)
    if listed is not None:
        return listed
    items = decoded(value)
    if isinstance(items, Mapping):
        items = next((items[name] for name in ("messages", "input", "prompt") if items.get(name)), None)
        items = decoded(items)
    if isinstance(items, str) and items:
        return [{"role": "user", "content": items}]
    if not isinstance(items, list):
        return None
    if len(items) == 1 and isinstance(items[0], list):  # LangChain: a batch of one list
        items = items[0]
    return [message_of(item) for item in items[:MAXIMUM_MESSAGES]]


def _listed(value: Any) -> list[Message] | None:
    """Return the messages of a list in JSON text; None where *value* is anything else.

    Every call of a conversation sends those before it again: what was converted recently is not converted again.
    """
    if not isinstance(value, str) or value[:1] != "[":
        return None
    try:
        items = msgspec.json.decode(value, type=list[msgspec.Raw])[:MAXIMUM_MESSAGES]
        if len(items) == 1 and bytes(items[0])[:1] == b"[":  # a batch
            return None
        return [_converted(item) for item in map(bytes, items)]
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _converted(item: bytes) -> Message:
    return (_remembered if len(item) <= REMEMBERED_BYTES else _remembered.__wrapped__)(item)


@lru_cache(maxsize=REMEMBERED_MESSAGES)
def _remembered(item: bytes) -> Message:
    return message_of(msgspec.json.decode(item))


def message_of(item: Any, *, role: str = "user") -> Message:
    """Return one message; *role* is that of a message without one."""
    item = decoded(item)
    if not isinstance(item, Mapping):
        return {"role": role, "content": item if isinstance(item, str) else _json(item)}
    if item.get("lc") and isinstance(item.get("kwargs"), Mapping):
        kind = item.get("id")
        role = _ROLES.get(str(kind[-1]) if isinstance(kind, list) and kind else "", role)
        item = item["kwargs"]
    data = item.get("data")
    if isinstance(data, Mapping) and isinstance(item.get("type"), str):
        item = {**data, "type": item["type"]}
    stated = str(item.get("role") or _ROLES.get(str(item.get("type")), role))
    stated = _ROLES.get(stated, stated)
    parts = list(_parts(item))
    return {"role": "user" if stated == "tool" else stated, "content": parts}


def reply_parts(message: Message) -> tuple[ReplyPart, ...]:
    """Return the parts of a reply that was converted by `message_of`."""
    content = message["content"]
    if isinstance(content, str):
        return (ReplyPart("assistant_response", content),) if content else ()
    return tuple(part for item in content if (part := _reply_part(item)) is not None)


def has_text(message: Message) -> bool:
    """Return whether a message converted by `message_of` has any content, not only roles and ids."""
    content = message["content"]
    if isinstance(content, str):
        return bool(content)
    names = ("text", "thinking", "content")
    return any(part.get(name) for part in content for name in names)


def system_text(value: Any) -> Any:
    """Return a system prompt, given as text, or as a list of parts or its JSON text, as the observer reads it."""
    value = decoded(value)
    if isinstance(value, list):
        texts = [item if isinstance(item, str) else _text_of(item) for item in value]
        return [{"type": "text", "text": text} for text in texts if text] or None
    return value if isinstance(value, str) and value else None


def tools_of(value: Any) -> list[Any] | None:
    """Return tool definitions, given as a list of objects or of their JSON texts."""
    items = decoded(value)
    if not isinstance(items, list):
        return None
    tools = [tool for item in items if isinstance(tool := decoded(item), Mapping)]
    return [_nested(tool) for tool in tools] or None


# -- parts ----------------------------------------------------------------------------------------------------


def _parts(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    is_result = item.get("role") in ("tool", "function") or item.get("type") in ("tool", "ToolMessage")
    call_id = _identifier(item, "tool_call_id", "toolCallId", *(("id",) if is_result else ()))
    content = decoded_parts(item.get("parts") if item.get("parts") is not None else item.get("content"))
    if is_result and not (isinstance(content, list) and any(_kind(part) in _RESULT_KINDS for part in content)):
        yield {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": content,
            "name": _identifier(item, "name"),
        }
        return
    called: set[Any] = set()
    for part in content if isinstance(content, list) else [content]:
        converted = _part(part)
        if converted is not None:
            called.add(converted.get("id"))
            yield converted
    if item.get("refusal"):
        yield {"type": "text", "text": str(item["refusal"])}
    for call in _tool_calls(item):
        if call["id"] is None or call["id"] not in called:
            yield call


def decoded_parts(content: Any) -> Any:
    """Return content whose parts are in JSON text as a list of parts; other text unchanged."""
    if isinstance(content, str) and content[:2] == "[{":
        parts = decoded(content)
        if isinstance(parts, list) and all(isinstance(part, Mapping) and "type" in part for part in parts):
            return parts
    return content


def _part(part: Any) -> dict[str, Any] | None:
    if part is None:
        return None
    if not isinstance(part, Mapping):
        return {"type": "text", "text": part if isinstance(part, str) else _json(part)}
    kind = _kind(part)
    reader = next((reader for kinds, reader in _READERS if kind in kinds), None)
    if reader is not None:
        return reader(part)
    text = _text_of(part)
    return {"type": "text", "text": text if text or kind in _TEXT_KINDS else _json(part)}


def _thinking(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "thinking", "thinking": _text_of(part)}


def _media(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image or a file without its bytes."""
    described = {key: value for key, value in part.items() if isinstance(value, str) and len(value) <= 200}
    return {**described, "type": "image"}


def _kind(part: Any) -> str:
    if not isinstance(part, Mapping):
        return "text"
    if "functionCall" in part or "function_call" in part:
        return "tool_call"
    if "functionResponse" in part or "function_response" in part:
        return "tool_result"
    return str(part.get("type") or "text")


def _call(part: Mapping[str, Any]) -> dict[str, Any]:
    part = _inner(part, "functionCall", "function_call", "tool_call")
    function = _inner(part, "function", "custom")
    given = (function.get(name) for name in ("arguments", "input", "args"))
    arguments = next((value for value in given if value is not None), None)
    tool_name = _identifier(function, "name") or _identifier(part, "toolName") or ""
    call_id = _identifier(part, "id", "toolCallId", "call_id")
    return {"type": "tool_use", "id": call_id, "name": tool_name, "input": arguments}


def _identifier(part: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of *names* that holds text or a number, as text."""
    values = (part.get(name) for name in names)
    return next((str(value) for value in values if isinstance(value, str | int) and value), None)


def _inner(part: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the object that *part* holds under one of *names*, else *part* itself."""
    return next((inner for name in names if isinstance(inner := part.get(name), Mapping)), part)


def _tool_calls(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    calls = decoded(item.get("tool_calls"))
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield _call(call)


def _result(part: Mapping[str, Any]) -> dict[str, Any]:
    part = _inner(part, "functionResponse", "function_response")
    names = ("response", "result", "output", "content", "text")
    content = next((part[name] for name in names if part.get(name) is not None), None)
    if isinstance(content, Mapping) and set(content) <= {"type", "value", "providerOptions"}:  # Vercel AI SDK
        content = content.get("value")
    content = _unwrapped(content)
    call_id = _identifier(part, "tool_use_id", "id", "toolCallId", "call_id")
    if content is not None and not isinstance(content, str | list):
        content = _json(content)
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def _unwrapped(content: Any) -> Any:
    """Return the text that Gemini's clients wrap into an object of one field; other content as it is."""
    if isinstance(content, Mapping) and len(content) == 1:
        [(name, value)] = content.items()
        if name in _WRAPPERS and isinstance(value, str):
            return value
    return content


def _reply_part(item: Mapping[str, Any]) -> ReplyPart | None:
    kind = item["type"]
    if kind == "tool_use":
        arguments = item.get("input")
        text = arguments if isinstance(arguments, str) else _json(arguments or {})
        call_id = item.get("id")
        return ReplyPart(
            "tool_call", text, None if call_id is None else str(call_id), str(item.get("name") or "")
        )
    if kind == "thinking":
        return ReplyPart("thinking", str(item.get("thinking") or ""))
    visible = item.get("text") if kind == "text" else None
    return ReplyPart("assistant_response", visible) if isinstance(visible, str) and visible else None


_READERS: Final[tuple[tuple[frozenset[str], Callable[[Mapping[str, Any]], dict[str, Any]]], ...]] = (
    (_CALL_KINDS, _call),
    (_RESULT_KINDS, _result),
    (_THINKING_KINDS, _thinking),
    (_MEDIA_KINDS, _media),
)
"""Readers of the kinds of parts other than text."""


def _text_of(part: Any) -> str:
    if not isinstance(part, Mapping):
        return ""
    for name in ("text", "content", "thinking", "reasoning", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    return ""


def _nested(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a definition in the form of OpenAI's chat API, which conventions write without its nesting."""
    if (
        tool.get("type") == "function"
        and "function" not in tool
        and "inputSchema" not in tool
        and "strict" not in tool
    ):
        return {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}
    return tool


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
