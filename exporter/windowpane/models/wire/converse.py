"""Amazon Bedrock's Converse.

Each part of a message's content is an object with one field, which names its kind: `text`, `toolUse`,
`toolResult`, `reasoningContent`, media, or a marker such as `cachePoint`, which the model does not see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import (
    BlockSpec,
    Key,
    call_spec,
    field_of,
    items_of,
    json_text,
    media_spec,
    parts_of,
    text_specs,
)
from windowpane.models.wire.replies import Reply, reply_parts
from windowpane.models.wire.usage import CONVERSE

_MEDIA: Final = ("image", "document", "video", "audio")
_MARKERS: Final = ("cachePoint",)
_REPLY_PARTS: Final = ("text", "toolUse", "reasoningContent")
"""Parts of a reply that enter the window."""


def head(body: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the system prompt and the tools of a call."""
    tools = [tool for tool in parts_of(field_of(body.get("toolConfig"), "tools")) if not _has(tool, _MARKERS)]
    return body.get("system"), [field_of(tool, "toolSpec") or tool for tool in tools]


def message_blocks(message: object) -> Iterator[BlockSpec]:
    """Yield the blocks of one message."""
    content_type: ContentType = (
        "assistant_response" if field_of(message, "role") == "assistant" else "user_message"
    )
    for part in parts_of(field_of(message, "content")):
        yield from _part(content_type, part)


def _part(content_type: ContentType, part: object) -> Iterator[BlockSpec]:
    call, result = field_of(part, "toolUse"), field_of(part, "toolResult")
    if field_of(part, "text") is not None:
        yield from text_specs(content_type, field_of(part, "text"))
    elif call is not None:
        yield call_spec(field_of(call, "toolUseId"), field_of(call, "name"), field_of(call, "input"))
    elif result is not None:
        yield _result(result)
    elif field_of(part, "reasoningContent") is not None:
        yield from text_specs("thinking", _reasoning_text(field_of(part, "reasoningContent")))
    elif _has(part, _MEDIA):
        yield media_spec(part)
    elif field_of(part, "guardContent") is not None:
        yield from text_specs(content_type, field_of(field_of(field_of(part, "guardContent"), "text"), "text"))
    elif part and not _has(part, _MARKERS):
        yield from text_specs(content_type, json_text(part))


def _result(result: object) -> BlockSpec:
    call_id = str(field_of(result, "toolUseId") or "")
    texts, media = [], 0
    for part in parts_of(field_of(result, "content")):
        text, value = field_of(part, "text"), field_of(part, "json")
        if isinstance(text, str):
            texts.append(text)
        elif value is not None:
            texts.append(json_text(value))
        else:
            media += 1
    return BlockSpec("tool_result", "".join(texts), Key("tool_result", call_id), call_id, None, media)


def _reasoning_text(reasoning: object) -> str:
    """Return the text of a reasoning part, or its encrypted form."""
    text = field_of(field_of(reasoning, "reasoningText"), "text") or field_of(reasoning, "redactedContent")
    return text if isinstance(text, str) else ""


def _has(part: object, names: tuple[str, ...]) -> bool:
    return any(field_of(part, name) is not None for name in names)


def read_reply(reply: object) -> Reply:
    """Return a whole reply."""
    parts = items_of(field_of(field_of(reply, "output"), "message"), "content")
    return _reply(parts, CONVERSE.read(field_of(reply, "usage")), field_of(reply, "stopReason"))


def _reply(parts: Iterable[object], usage: Usage | None, stop_reason: str | None) -> Reply:
    read = [part for part in parts if _has(part, _REPLY_PARTS)]
    return Reply(
        tuple(reply_parts(message_blocks({"role": "assistant", "content": read}))), usage, stop_reason=stop_reason
    )


def read_events(events: Iterable[object]) -> Reply:
    """Return the reply in *events* of a stream, which may end early."""
    blocks: dict[int, dict[str, Any]] = {}
    usage: Usage | None = None
    stop_reason = None
    for event in events:
        start, delta = field_of(event, "contentBlockStart"), field_of(event, "contentBlockDelta")
        if start:
            call = field_of(field_of(start, "start"), "toolUse")
            blocks[field_of(start, "contentBlockIndex") or 0] = {"call": call, "input": ""} if call else {}
        elif delta:
            _extend(blocks.setdefault(field_of(delta, "contentBlockIndex") or 0, {}), field_of(delta, "delta"))
        elif field_of(event, "messageStop") is not None:
            stop_reason = field_of(field_of(event, "messageStop"), "stopReason")
        else:
            usage = CONVERSE.read(field_of(field_of(event, "metadata"), "usage")) or usage
    return _reply([_whole(block) for _, block in sorted(blocks.items())], usage, stop_reason)


def _extend(block: dict[str, Any], delta: object) -> None:
    """Add a piece to the block it belongs to; a text block has no start."""
    reasoning = field_of(delta, "reasoningContent")
    pieces = {
        "text": field_of(delta, "text"),
        "input": field_of(field_of(delta, "toolUse"), "input"),
        "thinking": field_of(reasoning, "text") or field_of(reasoning, "redactedContent"),
    }
    for name, piece in pieces.items():
        if isinstance(piece, str):
            block[name] = block.get(name, "") + piece


def _whole(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block of a stream as a whole reply would hold it."""
    if "call" in block:
        return {"toolUse": {**block["call"], "input": _parsed(block["input"] or "{}")}}
    if block.get("thinking"):
        return {"reasoningContent": {"redactedContent": block["thinking"]}}
    return {"text": block.get("text", "")}


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:  # a stream that was closed within them
        return arguments
