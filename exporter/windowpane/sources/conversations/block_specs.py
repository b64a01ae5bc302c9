"""Pieces of a message as they were sent, and how each kind is built, whatever the format of the message.

Pure and duck-typed: messages may be dictionaries or objects of the clients, and nothing of a provider's library
is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import ContentType

_RESULT_MEDIA: Final = frozenset({"image", "document", "input_image", "image_url", "input_file"})


class Key(NamedTuple):
    """The identity of a piece of content: a tool call's id where it has one, else the text."""

    content_type: ContentType
    name: str


class BlockSpec(FastDataclass, frozen=True):
    """One piece of content as it was sent."""

    content_type: ContentType
    text: str | None
    key: Key
    tool_call_id: str | None = None
    tool_name: str | None = None
    media: int = 0
    """Images or documents in it, counted at a flat rate each; their bytes are never counted as text."""


def field_of(value: object, name: str) -> Any:
    """Return a field of a dictionary or of an object; None where it has no such field."""
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # the check of a dict is much faster
        return value.get(name)
    return getattr(value, name, None)


def items_of(value: object, name: str) -> Sequence[Any]:
    """Return the items of a field that holds a list; none where it holds anything else, such as a text."""
    items = field_of(value, name)
    return items if isinstance(items, list | tuple) else ()


def name_of(value: object, default: str) -> str:
    """Return the role or kind of something, which may be a member of an enumeration of texts."""
    return str.__str__(value) if isinstance(value, str) and value else default


def copy_structure(value: Any) -> Any:
    """Return a copy of a message that shares its texts, so that later edits in place are noticed."""
    if isinstance(value, dict):
        return {key: copy_structure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_structure(item) for item in value]
    return value


def canonical_json(text: str | None) -> str | None:
    """Return JSON with sorted keys and no spaces; other text unchanged."""
    try:
        return json.dumps(json.loads(text or "{}"), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


def parts_of(content: Any) -> Sequence[Any]:
    """Return the parts of a message's content, which may be one text."""
    if content is None:
        return ()
    return content if isinstance(content, list | tuple) else (content,)


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message's content; parts without text are skipped."""
    for part in parts_of(content):
        text = part if isinstance(part, str) else field_of(part, "text")
        if isinstance(text, str):
            yield text


def text_specs(content_type: ContentType, text: object) -> Iterator[BlockSpec]:
    """Yield the block of a text; none for a blank one."""
    if isinstance(text, str) and text.strip():
        yield BlockSpec(content_type, text, Key(content_type, text.strip()))


def result_specs(call_id: object, content: Any, *, tool_name: object = None) -> Iterator[BlockSpec]:
    """Yield the block of a tool result, with its images counted."""
    media = sum(
        name_of(field_of(part, "type"), "") in _RESULT_MEDIA
        for part in parts_of(content)
        if not isinstance(part, str)
    )
    text = content if isinstance(content, str) else "".join(texts_of(content))
    if not text and not media and content and not isinstance(content, str):
        text = json_text(content)
    name = None if call_id is None else str(call_id)
    yield BlockSpec(
        "tool_result",
        text,
        Key("tool_result", text if name is None else name),
        name,
        tool_name if isinstance(tool_name, str) else None,
        media,
    )


def call_spec(call_id: object, name: object, arguments: object) -> BlockSpec:
    """Return the block of a tool call, with its arguments as JSON."""
    text = arguments if isinstance(arguments, str) else json_text(arguments or {})
    tool_name = str(name or "")
    tool_call_id = None if call_id is None else str(call_id)
    key = Key("tool_call", tool_call_id or f"{tool_name}\0{text}")
    return BlockSpec("tool_call", text, key, tool_call_id, tool_name)


def tool_spec(tool: object) -> BlockSpec:
    """Return the block of a tool's definition."""
    definition = field_of(tool, "function") or tool
    name = str(field_of(definition, "name") or field_of(tool, "type") or "")
    return BlockSpec("tool_definition", json_text(tool), Key("tool_definition", name), tool_name=name or None)


def media_spec(part: object) -> BlockSpec:
    """Return the block of an image, a document or a recording, counted at a flat rate."""
    return BlockSpec("media", None, Key("media", json_text(part)), media=1)


def json_text(value: object) -> str:
    """Return a value as JSON, objects of the clients too."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else str(value)
