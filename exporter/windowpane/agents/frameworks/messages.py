"""The messages of a framework beside their form in OpenAI's chat API, and the way back."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from windowpane.core.events import Usage

Message = dict[str, Any]
Build = Callable[[Message], list[Any]]
"""Makes the framework's objects for a message that the manager wrote or changed."""


@dataclass(frozen=True, slots=True)
class FrameworkMessage:
    """One message of a chat, with the objects of the framework that it was read from."""

    chat: Message
    originals: tuple[Any, ...]
    usage: Usage | None = None
    """The provider's count of the call that this reply ended."""


def assistant_message(text: str, calls: Iterable[tuple[str, str, object]]) -> Message:
    """Return a reply; *calls* are the ids, names and arguments of its tool calls."""
    message: Message = {"role": "assistant", "content": text or None}
    tool_calls = [
        {
            "id": call_id,
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments
                if isinstance(arguments, str)
                else json.dumps(arguments or {}, ensure_ascii=False, default=str),
            },
        }
        for call_id, name, arguments in calls
    ]
    return {**message, "tool_calls": tool_calls} if tool_calls else message


def tool_message(call_id: str, name: str, text: str, *, is_error: bool = False) -> Message:
    """Return the result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text, "is_error": is_error}


def text_of(content: object) -> str:
    """Return the text of a message's content; other parts are named in brackets."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return "" if content is None else str(content)
    return "\n".join(_part_text(part) for part in content)


def message_key(message: Mapping[str, Any]) -> bytes:
    """Return a digest of what the model sees of a message."""
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    content = message.get("content") or ""
    if isinstance(content, list | tuple):
        texts = [part["text"] for part in content if _is_text(part)]
        content = [*texts, *(part for part in content if not _is_text(part))]
        content = content[0] if len(content) == 1 else content
    seen = (message["role"], content, calls, message.get("tool_call_id"))
    return sha256(json.dumps(seen, sort_keys=True, default=repr).encode()).digest()


def restore(managed: Iterable[Message], sent: Iterable[FrameworkMessage], build: Build) -> list[Any]:
    """Return the framework's objects for the *managed* messages: the original ones where nothing was changed."""
    originals: dict[bytes, deque[FrameworkMessage]] = {}
    for message in sent:
        originals.setdefault(message_key(message.chat), deque()).append(message)
    restored: list[Any] = []
    for chat in managed:
        unchanged = originals.get(message_key(chat))
        restored += unchanged.popleft().originals if unchanged else build(chat)
    return restored


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return f"[{type(part).__name__}]"
    return str(part["text"]) if _is_text(part) else f"[{part.get('type', 'media')}]"
