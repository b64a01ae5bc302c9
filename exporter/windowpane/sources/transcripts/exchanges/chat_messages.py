"""Messages as tracing tools and frameworks write them, read as the chat messages that the observer compares.

LangChain's messages (serialized, dumped or in the short form), the parts of the Vercel AI SDK, and inspect_ai's
messages; everything that is in the shape of OpenAI or Anthropic already stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from windowpane.models.wire.calls import message_blocks
from windowpane.models.wire.replies import Reply, ReplyPart
from windowpane.sources.transcripts.json_document import parse_embedded
from windowpane.sources.transcripts.json_lines import as_json, mapping, sequence, text

_ROLES: Final = {
    "human": "user", "humanmessage": "user", "humanmessagechunk": "user", "user": "user", "chat": "user",
    "ai": "assistant", "aimessage": "assistant", "aimessagechunk": "assistant", "assistant": "assistant",
    "model": "assistant", "system": "system", "systemmessage": "system", "developer": "developer",
    "tool": "tool", "toolmessage": "tool", "function": "tool", "functionmessage": "tool",
}  # fmt: skip
_REPLY_KINDS: Final = ("assistant_response", "thinking", "tool_call")
MAXIMUM_FLATTENED: Final = 4
"""Lists within lists of messages."""


def chat_messages(value: object, *, role: str = "user", depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the messages in *value*: one or a list, as objects or as their JSON; other text is one of *role*."""
    if isinstance(value, str):
        parsed = parse_embedded(value) if value[:1] in ("{", "[") else None
        if isinstance(parsed, dict | list) and depth < MAXIMUM_FLATTENED:
            yield from chat_messages(parsed, role=role, depth=depth + 1)
        elif value:
            yield {"role": role, "content": value}
    elif isinstance(value, list):
        if depth < MAXIMUM_FLATTENED:
            for item in value:
                yield from chat_messages(item, role=role, depth=depth + 1)
    elif isinstance(value, dict):
        if isinstance(value.get("messages"), list) and depth < MAXIMUM_FLATTENED:
            if isinstance(value.get("system"), str):
                yield {"role": "system", "content": value["system"]}
            yield from chat_messages(value["messages"], role=role, depth=depth + 1)
        else:
            yield from _message(value, role)


def reply_parts(messages: Iterator[dict[str, Any]]) -> tuple[ReplyPart, ...]:
    """Return the parts of the messages that a model wrote."""
    return tuple(
        ReplyPart(spec.content_type, spec.text or "", spec.tool_call_id, spec.tool_name)
        for message in messages
        if message.get("role") == "assistant"
        for spec in message_blocks("chat", message)
        if spec.content_type in _REPLY_KINDS
    )


def is_empty(reply: Reply) -> bool:
    """Return whether a reply holds neither content nor usage."""
    return not reply.parts and reply.usage is None


def _message(value: dict[str, Any], role: str) -> Iterator[dict[str, Any]]:
    fields = _fields(value)
    names = (text(fields.get("role")), text(fields.get("type")), _class_name(value))
    stated = next((_ROLES[name.lower()] for name in names if name.lower() in _ROLES), None)
    if stated is None and "content" not in fields:
        yield {"role": role, "content": as_json(value)}
        return
    message: dict[str, Any] = {"role": stated or role}
    calls = [*_calls(fields)]
    content = fields.get("content")
    parts = content if isinstance(content, list) else []
    written: list[Any] = []
    for part in parts:
        kind = text(mapping(part).get("type"))
        if kind in ("tool-call", "tool_call"):
            calls.append(_call(part.get("toolCallId") or part.get("id"), part.get("toolName") or part.get("name"),
                               part.get("args", part.get("input"))))  # fmt: skip
        elif kind == "tool-result":
            output = part.get("result", part.get("output"))
            yield {
                "role": "tool", "tool_call_id": text(part.get("toolCallId")), "name": text(part.get("toolName")),
                "content": output if isinstance(output, str) else as_json(output),
            }  # fmt: skip
        elif kind == "reasoning":
            thought = part.get("text") or part.get("reasoning") or part.get("summary") or ""
            written.append({"type": "thinking", "thinking": thought})
        elif kind != "tool_use" or not calls:  # LangChain lists the calls of Anthropic twice
            written.append(part)
    if parts and not written and not calls:
        return
    message["content"] = written if parts else content
    if calls:
        message["tool_calls"] = calls
    for name in ("tool_call_id", "name"):
        if isinstance(fields.get(name), str):
            message[name] = fields[name]
    yield message


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a message, which LangChain nests."""
    for name in ("kwargs", "data", "message"):
        inner = value.get(name)
        if isinstance(inner, dict) and "content" in inner and "content" not in value:
            return {**inner, "type": inner.get("type") or value.get("type")}
    return value


def _class_name(value: dict[str, Any]) -> str:
    path = sequence(value.get("id"))
    return text(path[-1]) if path else ""


def _calls(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls of a message, in OpenAI's shape or LangChain's."""
    listed = sequence(fields.get("tool_calls"))
    for entry in listed or sequence(mapping(fields.get("additional_kwargs")).get("tool_calls")):
        call = mapping(entry)
        function = call.get("function")
        if isinstance(function, dict):
            yield call
        else:  # LangChain: name and args; inspect_ai: function and arguments
            arguments = call.get("args", call.get("arguments"))
            yield _call(call.get("id"), function if isinstance(function, str) else call.get("name"), arguments)


def _call(call_id: object, name: object, arguments: object) -> dict[str, Any]:
    written = arguments if isinstance(arguments, str) else as_json(arguments or {})
    return {"id": text(call_id) or None, "function": {"name": text(name), "arguments": written}}
