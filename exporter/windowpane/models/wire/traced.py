"""Messages as tracing conventions and frameworks write them, converted to chat messages.

Parts of OpenTelemetry, OpenAI, Anthropic, Gemini and the Vercel AI SDK are read, and messages of LangChain and
inspect_ai. What is in none of these forms becomes text, so that no content is lost. The result is a role and a
list of the parts `text`, `thinking`, `tool_use`, `tool_result`, `image` and `compaction`, which
`chat.message_blocks` reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from windowpane.core.decoders import decode_json
from windowpane.models.wire.chat import message_blocks
from windowpane.models.wire.gemini import unwrapped
from windowpane.models.wire.messages import MEDIA_KINDS, TEXT_KINDS
from windowpane.models.wire.replies import Compaction, ReplyPart, made_summary
from windowpane.models.wire.replies import reply_parts as parts_of_blocks

Message = dict[str, Any]
MAXIMUM_MESSAGES: Final = 20_000
"""Messages of one call that are read."""
MAXIMUM_DEPTH: Final = 4
"""Lists and objects of messages within each other."""
REMEMBERED_MESSAGES: Final = 4_096
REMEMBERED_BYTES: Final = 16_384
"""Messages whose conversion is remembered, and the largest of them; nothing changes a converted message."""

_ROLES: Final = {
    "human": "user", "humanmessage": "user", "humanmessagechunk": "user", "user": "user", "chat": "user",
    "ai": "assistant", "aimessage": "assistant", "aimessagechunk": "assistant", "assistant": "assistant",
    "model": "assistant", "system": "system", "systemmessage": "system", "developer": "system",
    "tool": "tool", "toolmessage": "tool", "function": "tool", "functionmessage": "tool",
}  # fmt: skip
"""Roles by their names in any convention, and by LangChain's classes."""
_THINKING_KINDS: Final = frozenset({"thinking", "reasoning", "redacted_thinking", "thought"})
_CALL_KINDS: Final = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "server_tool_call"})
_RESULT_KINDS: Final = frozenset(
    {"tool_call_response", "tool-result", "tool_result", "function_call_output", "server_tool_call_response"}
)
_LISTS: Final = ("messages", "input", "prompt")
"""Names under which an object holds messages."""
_CONTENT: Final = ("content", "parts", "tool_calls", "refusal", "additional_kwargs")
"""Names of the fields of a message."""


def decoded(value: Any) -> Any:
    """Return *value* with JSON text decoded; text that is not JSON unchanged."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return value
    return value


def messages_of(value: Any, *, role: str = "user") -> list[Message] | None:
    """Return the messages in *value*, one or a list of them or its JSON text; None where it holds none.

    *role* is that of messages without one.
    """
    listed = _listed(value)
    if listed is not None:
        return listed
    items = _flattened(decoded(value))
    if items is None:
        return None
    return [message_of(item, role=role) for item in items[:MAXIMUM_MESSAGES]]


def _flattened(value: Any, depth: int = 0) -> list[Any] | None:
    """Return the messages of nested lists and objects; LangChain writes a batch as a list of lists."""
    value = decoded(value)
    if isinstance(value, Mapping):
        name = next((name for name in _LISTS if value.get(name)), None)
        if name is None or depth >= MAXIMUM_DEPTH:
            return [value] if value else None
        system = [{"role": "system", "content": value["system"]}] if isinstance(value.get("system"), str) else []
        return [*system, *(_flattened(value[name], depth + 1) or ())]
    if isinstance(value, str):
        return [value] if value else None
    if not isinstance(value, list):
        return None
    if depth >= MAXIMUM_DEPTH or not any(isinstance(item, list) for item in value):
        return value
    return [inner for item in value for inner in (_flattened(item, depth + 1) or ())]


def _listed(value: Any) -> list[Message] | None:
    """Return the messages of a list in JSON text; None where *value* is anything else.

    Every call of a conversation sends those before it again: what was converted recently is not converted again.
    """
    if not isinstance(value, str) or value[:1] != "[":
        return None
    try:
        items = [*map(bytes, decode_json(value, list[msgspec.Raw])[:MAXIMUM_MESSAGES])]
        if any(item[:1] != b"{" for item in items):
            return None
        return [_converted(item) for item in items]
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
    fields = _fields(item)
    names = (fields.get("role"), fields.get("type"), _class_name(item))
    stated = next((common for name in names if (common := _ROLES.get(str(name).lower()))), None)
    if stated is None and item and not any(name in fields for name in _CONTENT):
        return {"role": role, "content": _json(item)}
    stated = stated or str(fields.get("role") or role)
    parts = list(_parts(fields, is_result=stated == "tool"))
    return {"role": "user" if stated == "tool" else stated, "content": parts}


def _fields(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message, which LangChain nests."""
    for name in ("kwargs", "data", "message"):
        inner = item.get(name)
        if isinstance(inner, Mapping) and "content" not in item and "role" not in item:
            return {**inner, "type": inner.get("type") or item.get("type")}
    return item


def _class_name(item: Mapping[str, Any]) -> Any:
    path = item.get("id")
    return path[-1] if isinstance(path, list) and path else None


def reply_parts(message: Message) -> tuple[ReplyPart, ...]:
    """Return the parts of a reply that was converted by `message_of`."""
    return tuple(parts_of_blocks(message_blocks({**message, "role": "assistant"})))


def reply_parts_of(value: Any) -> tuple[ReplyPart, ...]:
    """Return the parts of the messages in *value* that a model wrote."""
    messages = messages_of(value, role="assistant") or ()
    return tuple(part for message in messages if message["role"] == "assistant" for part in reply_parts(message))


def compaction_of(message: Message) -> Compaction | None:
    """Return the compaction of the provider in a reply that was converted by `message_of`."""
    summary = made_summary([*message_blocks({**message, "role": "assistant"})])
    return None if summary is None else Compaction(summary)


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


def _parts(item: Mapping[str, Any], *, is_result: bool) -> Iterator[dict[str, Any]]:
    call_id = _identifier(item, "tool_call_id", "toolCallId", *(("id",) if is_result else ()))
    content = decoded_parts(item.get("parts") if item.get("parts") is not None else item.get("content"))
    if is_result and not (isinstance(content, list) and any(_kind(part) in _RESULT_KINDS for part in content)):
        name = _identifier(item, "name")
        yield {"type": "tool_result", "tool_use_id": call_id, "content": content, "name": name}
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
    return {"type": "text", "text": text if text or kind in TEXT_KINDS else _json(part)}


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
    tool_name = _identifier(function, "name", "function") or _identifier(part, "toolName") or ""
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
    calls = decoded(item.get("tool_calls")) or _inner(item, "additional_kwargs").get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield _call(call)


def _result(part: Mapping[str, Any]) -> dict[str, Any]:
    part = _inner(part, "functionResponse", "function_response")
    names = ("response", "result", "output", "content", "text")
    content = next((part[name] for name in names if part.get(name) is not None), None)
    if isinstance(content, Mapping) and set(content) <= {"type", "value", "providerOptions"}:  # Vercel AI SDK
        content = content.get("value")
    text = unwrapped(content)
    content = content if text is None else text
    call_id = _identifier(part, "tool_use_id", "id", "toolCallId", "call_id")
    if content is not None and not isinstance(content, str | list):
        content = _json(content)
    name = _identifier(part, "name", "toolName")
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "name": name}


_READERS: Final[tuple[tuple[frozenset[str], Callable[[Mapping[str, Any]], dict[str, Any]]], ...]] = (
    (_CALL_KINDS, _call),
    (_RESULT_KINDS, _result),
    (_THINKING_KINDS, _thinking),
    (MEDIA_KINDS, _media),
    (frozenset({"compaction"}), dict),
)
"""Readers of the kinds of parts other than text."""


def _text_of(part: Any) -> str:
    if not isinstance(part, Mapping):
        return ""
    for name in ("text", "content", "thinking", "reasoning", "refusal", "summary"):
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
