"""The window as messages a provider accepts: OpenAI chat completions, or Anthropic messages.

Every tool call is followed by exactly one result and every result has its call, whatever was masked, removed or
never answered. Summaries and memories are sent as user messages: they may quote tool output, which must not gain
the authority of the system.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from windowpane.core.vocabulary import REPLY_TYPES
from windowpane.core.window.blocks import Block
from windowpane.core.window.repair import ABORTED
from windowpane.manager.state import Payload

Message = dict[str, Any]

OPENING: Final = "(The conversation begins here.)"
"""First user message for Anthropic, which requires one, if the window has none."""
EMPTY: Final = "(no output)"


@dataclass(slots=True)
class _Unit:
    """A reply with the results of its calls, or one message."""

    blocks: list[Block] = field(default_factory=list)
    results: dict[str, Block] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The arguments of an Anthropic call: the system prompt apart from the messages."""

    system: str
    messages: list[Any]
    """Dictionaries; typed as the client's own parameter types accept them."""


def openai_messages(blocks: Iterable[Block], payloads: Mapping[str, Payload]) -> list[Message]:
    """Return messages for OpenAI's chat completions."""
    messages: list[Message] = []
    for unit in _units(blocks, payloads):
        first = unit.blocks[0]
        if first.content_type in REPLY_TYPES:
            messages.extend(_openai_reply(unit, payloads))
        elif first.content_type == "system_prompt":
            if first.text:
                messages.append({"role": "system", "content": first.text})
        else:
            messages.append({"role": "user", "content": _user_content(unit.blocks, payloads, _as_openai)})
    return messages


def anthropic_messages(blocks: Iterable[Block], payloads: Mapping[str, Payload]) -> AnthropicMessages:
    """Return system prompt and messages for Anthropic; neighbors of one role become one message."""
    system: list[str] = []
    turns: list[Message] = []
    used_ids: set[str] = set()
    for unit in _units(blocks, payloads):
        first = unit.blocks[0]
        if first.content_type == "system_prompt":
            system.append(first.text or "")
        elif first.content_type in REPLY_TYPES:
            ids = _unused(unit, used_ids)
            content = _anthropic_reply(unit, ids, payloads)
            if content:
                _append(turns, "assistant", content)
            results = _anthropic_results(unit, ids, payloads)
            if results:
                _append(turns, "user", results)
        else:
            body = _user_content(unit.blocks, payloads, _as_anthropic)
            _append(turns, "user", [_text(body)] if isinstance(body, str) else body)
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [_text(OPENING)]})
    return AnthropicMessages("\n\n".join(part for part in system if part), turns)


def _units(blocks: Iterable[Block], payloads: Mapping[str, Payload]) -> Iterable[_Unit]:
    """Return the units in order; a result belongs to the unit of its call, wherever it is in the window."""
    units: dict[str, _Unit] = {}
    last: _Unit | None = None
    for block in blocks:
        kind = block.content_type
        if kind in ("tool_definition", "unattributed"):
            continue
        if kind in REPLY_TYPES:
            last = units.setdefault(block.group, _Unit())
            last.blocks.append(block)
        elif block.tool_call_id is not None and _owner(units.get(block.group), block) is not None:
            units[block.group].results.setdefault(block.tool_call_id, block)
        elif last is not None and payloads.get(block.id, _NOTHING).joined:
            last.blocks.append(block)
        else:
            last = units[block.id] = _Unit([block])
    return units.values()


_NOTHING: Final = Payload()


def _owner(unit: _Unit | None, result: Block) -> Block | None:
    if unit is None:
        return None
    return next(
        (
            block
            for block in unit.blocks
            if block.content_type == "tool_call" and block.tool_call_id == result.tool_call_id
        ),
        None,
    )


def _openai_reply(unit: _Unit, payloads: Mapping[str, Payload]) -> list[Message]:
    texts = [block.text or "" for block in unit.blocks if block.content_type == "assistant_response"]
    calls = [block for block in unit.blocks if block.content_type == "tool_call"]
    if not calls and not texts:
        return []
    message: Message = {"role": "assistant", "content": "\n".join(texts) or None}
    if not calls:
        message["content"] = message["content"] or ""
        return [message]
    message["tool_calls"] = [
        {
            "id": call.tool_call_id,
            "type": "function",
            "function": {"name": call.tool_name or "tool", "arguments": call.text or "{}"},
        }
        for call in calls
    ]
    results = [
        {"role": "tool", "tool_call_id": call.tool_call_id, "content": _result(unit, call)} for call in calls
    ]
    visible = [
        {"role": "user", "content": [_text(f"[Output of {call.tool_name or 'a tool'}]"), *map(_as_openai, media)]}
        for call in calls
        if (media := _media(unit, call, payloads))
    ]
    return [message, *results, *visible]


def _media(unit: _Unit, call: Block, payloads: Mapping[str, Payload]) -> tuple[Mapping[str, Any], ...]:
    """Images in the result of a call; the chat API takes them in the user's messages only."""
    result = unit.results.get(call.tool_call_id or "")
    return () if result is None else payloads.get(result.id, _NOTHING).media


def _result(unit: _Unit, call: Block) -> str:
    result = unit.results.get(call.tool_call_id or "")
    return ABORTED if result is None else result.text or EMPTY


def _anthropic_reply(unit: _Unit, ids: Mapping[str, str], payloads: Mapping[str, Payload]) -> list[Message]:
    content: list[Message] = []
    for block in unit.blocks:
        if block.content_type == "thinking":
            raw = payloads.get(block.id, _NOTHING).raw
            if raw is not None:
                content.append(dict(raw))
        elif block.content_type == "assistant_response":
            if (block.text or "").strip():
                content.append(_text(block.text or ""))
        else:
            content.append(
                {
                    "type": "tool_use",
                    "id": ids[block.id],
                    "name": block.tool_name or "tool",
                    "input": _arguments(block.text),
                }
            )
    return content


def _anthropic_results(unit: _Unit, ids: Mapping[str, str], payloads: Mapping[str, Payload]) -> list[Message]:
    results: list[Message] = []
    for call in unit.blocks:
        if call.content_type == "tool_call":
            body, media = _result(unit, call), _media(unit, call, payloads)
            content = [_text(body), *map(_as_anthropic, media)] if media else body
            result: Message = {"type": "tool_result", "tool_use_id": ids[call.id], "content": content}
            answered = unit.results.get(call.tool_call_id or "")
            if answered is not None and payloads.get(answered.id, _NOTHING).is_error:
                result["is_error"] = True
            results.append(result)
    return results


def _unused(unit: _Unit, used: set[str]) -> dict[str, str]:
    """Return an unused id for each call by block: some servers number the calls of each reply from 0."""
    ids: dict[str, str] = {}
    for block in unit.blocks:
        if block.content_type == "tool_call":
            wanted = block.tool_call_id or block.id
            ids[block.id] = wanted if wanted not in used else f"{wanted}-{block.id}"
            used.add(ids[block.id])
    return ids


def _arguments(text: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}


def _user_content(
    blocks: Sequence[Block], payloads: Mapping[str, Payload], shaped: Callable[[Mapping[str, Any]], Message]
) -> str | list[Message]:
    texts = [_spoken(block) for block in blocks if block.content_type != "media"]
    media = [block for block in blocks if block.content_type == "media"]
    if not media:
        return "\n".join(texts)
    parts = [_text(text) for text in texts if text]
    for block in media:
        raw = payloads.get(block.id, _NOTHING).raw
        parts.append(_text(block.text or "[media]") if raw is None else shaped(raw))
    return parts


def _spoken(block: Block) -> str:
    text = block.text or ""
    if block.content_type in ("tool_result", "placeholder"):
        return f"[Output of {block.tool_name or 'a tool'}]\n{text}"
    return text or "(empty)"


def _text(text: str) -> Message:
    return {"type": "text", "text": text or "(empty)"}


def _append(messages: list[Message], role: str, content: list[Message]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(content)
    else:
        messages.append({"role": role, "content": list(content)})


def _as_openai(part: Mapping[str, Any]) -> dict[str, Any]:
    address = _address(part)
    if address is None or part.get("type") == "image_url":
        return dict(part)
    return {"type": "image_url", "image_url": {"url": address}}


def _as_anthropic(part: Mapping[str, Any]) -> dict[str, Any]:
    address = _address(part)
    if address is None or "source" in part:
        return dict(part)
    head, comma, data = address.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return {"type": "image", "source": {"type": "url", "url": address}}
    kind = head.removeprefix("data:").removesuffix(";base64")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _address(part: Mapping[str, Any]) -> str | None:
    """Return the address of an image, or itself as a data address; None for anything else."""
    kind, source = part.get("type"), part.get("source")
    if kind in ("image_url", "input_image"):
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else image
        return url if isinstance(url, str) else None
    if kind != "image":
        return None
    if isinstance(source, Mapping):
        if source.get("type") == "base64":
            return f"data:{source.get('media_type')};base64,{source.get('data')}"
        url = source.get("url")
        return url if isinstance(url, str) else None
    return f"data:{part.get('mimeType')};base64,{part['data']}" if isinstance(part.get("data"), str) else None
