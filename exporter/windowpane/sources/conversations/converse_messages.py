"""Calls of Amazon Bedrock's Converse, read as blocks.

Each part of a message's content is an object with one field, which names its kind: `text`, `toolUse`,
`toolResult`, `reasoningContent`, media, or a marker such as `cachePoint`, which the model does not see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from windowpane.core.vocabulary import ContentType
from windowpane.sources.conversations.block_specs import (
    BlockSpec,
    Key,
    call_spec,
    field_of,
    json_text,
    media_spec,
    parts_of,
    text_specs,
)

_MEDIA: Final = ("image", "document", "video", "audio")
_MARKERS: Final = ("cachePoint",)


def converse_tools(body: Mapping[str, Any]) -> list[Any]:
    """Return the definitions of the tools."""
    tools = parts_of(field_of(body.get("toolConfig"), "tools"))
    return [field_of(tool, "toolSpec") or tool for tool in tools if not any(name in tool for name in _MARKERS)]


def converse_blocks(message: object) -> Iterator[BlockSpec]:
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
        yield from text_specs("thinking", reasoning_text(field_of(part, "reasoningContent")))
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


def reasoning_text(reasoning: object) -> str:
    """Return the text of a reasoning part, or its encrypted form."""
    text = field_of(field_of(reasoning, "reasoningText"), "text") or field_of(reasoning, "redactedContent")
    return text if isinstance(text, str) else ""


def _has(part: object, names: tuple[str, ...]) -> bool:
    return any(field_of(part, name) is not None for name in names)
