"""Model replies of all providers in one form: the parts that enter the window, and the usage.

Reads OpenAI chat completions, OpenAI responses and Anthropic messages, as objects of the clients or as plain
dictionaries. No provider's library is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from windowpane.core.events import Usage
from windowpane.core.limits import MAXIMUM_TOKENS


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """One piece of a reply."""

    kind: Literal["assistant_response", "thinking", "tool_call"]
    text: str
    """Text; for a tool call its arguments as JSON."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    raw: Mapping[str, Any] | None = None
    """The provider's block, if it must be sent back byte for byte (signed thinking)."""


@dataclass(frozen=True, slots=True)
class ContextEdit:
    """An edit of the context that the provider made before the model saw it (Anthropic context management)."""

    kind: str
    """The provider's name of it, such as `clear_tool_uses_20250919`."""
    cleared_tokens: int
    cleared_count: int = 0
    """Tool uses, or turns of thinking, that were cleared."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply in provider-neutral form."""

    parts: tuple[ReplyPart, ...] = ()
    usage: Usage | None = None
    model: str = ""
    stop_reason: str | None = None
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    unread: tuple[str, ...] = field(default=())
    """Kinds of content that do not enter the window."""
    response_id: str = ""
    """The provider's id of the reply."""
    edits: tuple[ContextEdit, ...] = ()
    """Edits of the context that the provider applied to the call."""


def read_reply(reply: object) -> Reply:
    """Convert *reply* to the neutral form. Raises `TypeError` for a shape of no known provider."""
    if isinstance(reply, Reply):
        return reply
    if isinstance(reply, str):
        return Reply((ReplyPart("assistant_response", reply),)) if reply else Reply()
    if _get(reply, "choices"):
        return _chat(reply)
    if isinstance(_get(reply, "output"), list | tuple):
        return _responses(reply)
    content = _get(reply, "content")
    if _get(reply, "role") == "assistant" or _get(reply, "type") == "message":
        blocks = content if isinstance(content, list | tuple) else None
        if blocks is not None and _get(reply, "tool_calls") is None:
            return _anthropic(reply, blocks)
        return _reply(reply, *_chat_message(reply), stop_reason=None)
    raise TypeError(
        f"expected a reply of a chat completion, response or messages call, got {type(reply).__name__}"
    )


def read_usage(usage: object) -> Usage | None:
    """Convert a provider's usage; cached input that the provider includes in the input is subtracted from it."""
    if usage is None:
        return None
    if isinstance(usage, Usage):
        return usage
    prompt = _get(usage, "prompt_tokens")
    details = _get(usage, "prompt_tokens_details") or _get(usage, "input_tokens_details")
    output_details = _get(usage, "completion_tokens_details") or _get(usage, "output_tokens_details")
    reasoning = _count(output_details, "reasoning_tokens") or _count(output_details, "thinking_tokens")
    if prompt is not None or _get(usage, "input_tokens_details") is not None:
        total = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
        output = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
        cached = _count(details, "cached_tokens")
        written = _count(details, "cache_write_tokens") or _count(usage, "cache_creation_input_tokens")
        counted = Usage.of_prompt(total, output, cached=cached, written=written, reasoning=reasoning)
        return replace(counted, reasoning_retained=prompt is None and reasoning > 0)
    if _get(usage, "input_tokens") is None and _get(usage, "output_tokens") is None:
        return None
    return Usage(
        _count(usage, "input_tokens"),
        _count(usage, "output_tokens"),
        _count(usage, "cache_read_input_tokens"),
        _count(usage, "cache_creation_input_tokens"),
        reasoning,
        reasoning_retained=reasoning > 0,
        hour_write_tokens=_count(_get(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
    )


def read_edits(context_management: object) -> tuple[ContextEdit, ...]:
    """Return the edits of the context that an Anthropic reply reports."""
    edits = _get(context_management, "applied_edits")
    if not isinstance(edits, list | tuple):
        return ()
    return tuple(
        ContextEdit(
            str(_get(edit, "type") or ""),
            _count(edit, "cleared_input_tokens"),
            _count(edit, "cleared_tool_uses") or _count(edit, "cleared_thinking_turns"),
        )
        for edit in edits
    )


def _get(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def _items(value: object, name: str) -> Iterable[Any]:
    """Return the items of a field; none where text or an object is in the place of a list."""
    items = _get(value, name)
    return () if items is None or isinstance(items, str | bytes | Mapping) else items


def _count(value: object, name: str) -> int:
    count = _get(value, name)
    return count if isinstance(count, int) and 0 < count <= MAXIMUM_TOKENS else 0


def _reply(
    reply: object, parts: tuple[ReplyPart, ...], unread: tuple[str, ...], *, stop_reason: str | None
) -> Reply:
    return Reply(
        parts,
        read_usage(_get(reply, "usage")),
        str(_get(reply, "model") or ""),
        stop_reason,
        unread=unread,
        response_id=str(_get(reply, "id") or ""),
        edits=read_edits(_get(reply, "context_management")),
    )


def _chat(reply: object) -> Reply:
    choice = _get(reply, "choices")[0]
    parts, unread = _chat_message(_get(choice, "message"))
    return _reply(reply, parts, unread, stop_reason=_get(choice, "finish_reason"))


def _chat_message(message: object) -> tuple[tuple[ReplyPart, ...], tuple[str, ...]]:
    parts = [
        ReplyPart("assistant_response", text)
        for text in (_text(_get(message, "content")), _get(message, "refusal"))
        if text
    ]
    for call in _items(message, "tool_calls"):
        function = _get(call, "function") or _get(call, "custom")
        arguments = _get(function, "arguments")
        parts.append(
            _call(
                _get(call, "id"),
                _get(function, "name"),
                _get(function, "input") if arguments is None else arguments,
            )
        )
    unread = ("reasoning",) if _get(message, "reasoning_content") or _get(message, "reasoning") else ()
    return tuple(parts), unread


def _responses(reply: object) -> Reply:
    parts: list[ReplyPart] = []
    unread: list[str] = []
    for item in _items(reply, "output"):
        kind = _get(item, "type")
        if kind == "message":
            text = _text(_get(item, "content"))
            if text:
                parts.append(ReplyPart("assistant_response", text))
        elif kind in ("function_call", "custom_tool_call"):
            arguments = _get(item, "arguments") if kind == "function_call" else _get(item, "input")
            parts.append(_call(_get(item, "call_id"), _get(item, "name"), arguments))
        else:
            unread.append(str(kind))
    return _reply(reply, tuple(parts), tuple(unread), stop_reason=_get(reply, "status"))


def _anthropic(reply: object, blocks: Iterable[object]) -> Reply:
    parts: list[ReplyPart] = []
    unread: list[str] = []
    for block in blocks:
        kind = _get(block, "type")
        if kind == "text":
            if _get(block, "text"):
                parts.append(ReplyPart("assistant_response", _get(block, "text")))
        elif kind in ("thinking", "redacted_thinking"):
            raw = as_dict(block)
            parts.append(ReplyPart("thinking", str(raw.get("thinking") or raw.get("data") or ""), raw=raw))
        elif kind == "tool_use":
            parts.append(_call(_get(block, "id"), _get(block, "name"), _get(block, "input")))
        else:
            unread.append(str(kind))
    return _reply(reply, tuple(parts), tuple(unread), stop_reason=_get(reply, "stop_reason"))


def _call(call_id: object, name: object, arguments: object) -> ReplyPart:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ReplyPart("tool_call", text, None if call_id is None else str(call_id), str(name or ""))


def _text(content: object) -> str:
    """Return the text of a content field: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "".join(_get(part, "text") or _get(part, "refusal") or "" for part in content)
    return ""


def as_dict(value: object) -> dict[str, Any]:
    """Return a provider's block or message as a dictionary."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    return dict(dump(exclude_none=True) if callable(dump) else vars(value))
