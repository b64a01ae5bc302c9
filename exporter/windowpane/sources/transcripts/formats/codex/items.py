"""The items of a response in a rollout, as content with its counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, Final

from windowpane.core.names import name_in_namespace
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import is_media, text_and_media
from windowpane.sources.transcripts.json_lines import as_json, mapping, sequence, text
from windowpane.sources.transcripts.records import ContentAdded

_CALLS: Final = frozenset(
    {
        "custom_tool_call",
        "function_call",
        "image_generation_call",
        "local_shell_call",
        "tool_search_call",
        "web_search_call",
    }
)
_INJECTED: Final = (
    "# AGENTS.md instructions", "<environment_context>", "<user_instructions>", "<turn_aborted>",
    "<recommended_plugins>", "<skill>", "<subagent_notification>",
)  # fmt: skip
"""First words of user messages that Codex writes itself."""
_REASONING_OVERHEAD_BYTES: Final = 650
_BYTES_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ResponseItem:
    """The content of one `response_item`, with its counts for the statistics."""

    contents: tuple[ContentAdded, ...]
    reply: bool
    """The model wrote it."""
    counts: bool = True
    """It counts as a message; reasoning does not."""
    chars: int = 0
    tool_calls: int = 0
    output_chars: int = 0


def item_of(payload: dict[str, Any], at: float | None) -> ResponseItem | None:
    """Return the content of one payload; None for an unknown kind."""
    kind = text(payload.get("type"))
    if kind in _CALLS:
        return _call(payload, kind, at)
    if kind.endswith("_output"):
        return _output(payload, at)
    reading = _READINGS.get(kind)
    return None if reading is None else reading(payload, at)


def message_key(payload: dict[str, Any]) -> str:
    """Return a key made of a message's text, since survivors of a compaction are repeated without an id."""
    role = text(payload.get("role"))
    digest = blake2b(role.encode(errors="replace"), digest_size=8)
    for part in sequence(payload.get("content")):
        digest.update(text(mapping(part).get("text")).encode(errors="replace"))
    return f"message-{digest.hexdigest()}"


def _message(payload: dict[str, Any], at: float | None) -> ResponseItem:
    role = payload.get("role")
    key = message_key(payload)
    contents = []
    chars = 0
    stated = mapping(payload.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    for part, kind in zip_longest(sequence(payload.get("content")), sequence(stated)):
        inner = mapping(part)
        written = text(inner.get("text"))
        if is_media(inner):
            contents.append(ContentAdded("media", None, media=1, key=key, at=at))
        elif written:
            chars += len(written)
            contents.append(ContentAdded(_type_of(role, written, text(kind)), written, key=key, at=at))
    return ResponseItem(tuple(contents), reply=role == "assistant", chars=chars)


def _type_of(role: object, written: str, kind: str) -> ContentType:
    """Return the type of a text; releases since August 2026 state its *kind*, such as `user.text`."""
    if role == "assistant":
        return "assistant_response"
    if role in ("developer", "system"):
        return "system_prompt"
    is_injected = "." in kind and not kind.startswith("user.")
    return "memory_injection" if is_injected or written.startswith(_INJECTED) else "user_message"


def _agent_message(payload: dict[str, Any], at: float | None) -> ResponseItem:
    """Return a message from another agent, which the model is sent."""
    parts = [mapping(part) for part in sequence(payload.get("content"))]
    written = "\n".join(filter(None, (text(part.get("text")) for part in parts)))
    contents = [ContentAdded("memory_injection", written, at=at)] if written else []
    contents += [
        ContentAdded("memory_injection", None, tokens=_hidden_tokens(part), at=at)
        for part in parts
        if "encrypted_content" in part
    ]
    return ResponseItem(tuple(contents), reply=False, chars=len(written))


def _reasoning(payload: dict[str, Any], at: float | None) -> ResponseItem:
    """Return reasoning: as text where a model sends that, else with its size estimated from the cipher text."""
    parts = (text(mapping(part).get("text")) for part in sequence(payload.get("content")))
    written = "\n".join(filter(None, parts)) or None
    tokens = None if written else _hidden_tokens(payload)
    return ResponseItem((ContentAdded("thinking", written, tokens=tokens, at=at),), reply=True, counts=False)


def _tools(payload: dict[str, Any], at: float | None) -> ResponseItem:
    """Return definitions of tools that are sent within the conversation."""
    tools = [ContentAdded("tool_definition", as_json(tool), at=at) for tool in sequence(payload.get("tools"))]
    return ResponseItem(tuple(tools), reply=False, counts=False)


def _hidden_tokens(holder: dict[str, Any]) -> int | None:
    """Return the size of encrypted content; None without any."""
    hidden = len(text(holder.get("encrypted_content"))) * 3 // 4 - _REASONING_OVERHEAD_BYTES
    return max(0, hidden // _BYTES_PER_TOKEN) or None


def _call(payload: dict[str, Any], kind: str, at: float | None) -> ResponseItem:
    name = text(name_in_namespace(payload.get("namespace"), payload.get("name"))) or kind.removesuffix("_call")
    arguments = payload.get("arguments", payload.get("input", payload.get("action")))
    written = arguments if isinstance(arguments, str) else as_json(arguments)
    call_id = text(payload.get("call_id")) or text(payload.get("id")) or None
    content = ContentAdded("tool_call", written, call_id, name, key=call_id or "", at=at)
    return ResponseItem((content,), reply=True, chars=len(written), tool_calls=1)


def _output(payload: dict[str, Any], at: float | None) -> ResponseItem:
    output = payload.get("output")
    if isinstance(output, dict):
        output = output.get("content", output)
    written, media = text_and_media(output) if isinstance(output, list | str) else (as_json(output), 0)
    call_id = text(payload.get("call_id")) or None
    content = ContentAdded("tool_result", written, call_id, media=media, key=call_id or "", at=at)
    return ResponseItem((content,), reply=False, chars=len(written), output_chars=len(written))


_READINGS: Final[dict[str, Callable[[dict[str, Any], float | None], ResponseItem]]] = {
    "additional_tools": _tools,
    "agent_message": _agent_message,
    "message": _message,
    "reasoning": _reasoning,
}
