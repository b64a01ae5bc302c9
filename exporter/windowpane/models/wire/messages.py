"""Fields of a provider's message, a dictionary or an object of a client, and the blocks that are made of them.

A block is built alike whatever the shape of its message: proxies accept the parts of OpenAI's and Anthropic's
messages in either. Markers without an effect on the model, such as `cache_control`, are not part of a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import ContentType

_CAPITAL: Final = re.compile(r"[A-Z]")


# -- fields -----------------------------------------------------------------------------------------------------


def field_of(value: object, name: str) -> Any:
    """Return a field of a dictionary or of an object; None where it has no such field."""
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # the check of a dict is much faster
        return value.get(name)
    return getattr(value, name, None)


def member_of(value: object, name: str) -> Any:
    """Return a field by its name in camel case, or in snake case where it is written so."""
    field = field_of(value, name)
    return field_of(value, _snake(name)) if field is None else field


@cache
def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


def items_of(value: object, name: str) -> Sequence[Any]:
    """Return the items of a field that holds a list; none where it holds anything else, such as a text."""
    items = field_of(value, name)
    return items if isinstance(items, list | tuple) else ()


def name_of(value: object, default: str) -> str:
    """Return the role or kind of something, which may be a member of an enumeration of texts."""
    return str.__str__(value) if isinstance(value, str) and value else default


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


def text_and_media(content: Any) -> tuple[str, int]:
    """Return the texts of a message's content, joined, and the number of images and documents in it."""
    if isinstance(content, str):
        return content, 0
    return "".join(texts_of(content)), sum(map(is_media, parts_of(content)))


def as_dict(value: object) -> dict[str, Any]:
    """Return a provider's block or message as a dictionary."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    return dict(dump(exclude_none=True) if callable(dump) else vars(value))


def copy_structure(value: Any) -> Any:
    """Return a copy of a message that shares its texts, so that later edits in place are noticed."""
    if isinstance(value, dict):
        return {key: copy_structure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_structure(item) for item in value]
    return value


def json_text(value: object) -> str:
    """Return a value as JSON, objects of the clients too."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else str(value)


def canonical_json(text: str | None) -> str | None:
    """Return JSON with sorted keys and no spaces; other text unchanged."""
    try:
        return json.dumps(json.loads(text or "{}"), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


# -- blocks -----------------------------------------------------------------------------------------------------

TEXT_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
"""Kinds of parts that are text."""
MEDIA_KINDS: Final = frozenset(
    {
        "image", "image_url", "input_image", "document", "file", "input_file", "audio", "input_audio", "video",
        "video_url", "media", "blob", "uri", "image-data", "file-data",
    }
)  # fmt: skip
"""Kinds of parts that are images, documents, recordings or films, by providers and tracing conventions."""
TYPE_OF_ROLE: Final[dict[str, ContentType]] = {
    "system": "system_prompt",
    "developer": "system_prompt",
    "assistant": "assistant_response",
}
"""The content type of texts by the role of their message; all others are the user's."""


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


def text_specs(content_type: ContentType, text: object) -> list[BlockSpec]:
    """Return the block of a text; none for a blank one."""
    if not isinstance(text, str) or not text.strip():
        return []
    return [BlockSpec(content_type, text, Key(content_type, text.strip()))]


def result_spec(call_id: object, content: Any, *, tool_name: object = None) -> BlockSpec:
    """Return the block of a tool result, with its images counted."""
    text, media = text_and_media(content)
    if content and not text and not media:
        text = json_text(content)
    name = None if call_id is None else str(call_id)
    return BlockSpec(
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


def is_media(part: object) -> bool:
    """Return whether a part that names its kind is an image, a document or a recording."""
    return not isinstance(part, str) and name_of(field_of(part, "type"), "") in MEDIA_KINDS


def content_blocks(role: object, content: Any) -> list[BlockSpec]:
    """Return the blocks of the content of a message."""
    content_type = TYPE_OF_ROLE.get(name_of(role, "user"), "user_message")
    specs: list[BlockSpec] = []
    for part in parts_of(content):
        specs += _part(content_type, part)
    return specs


def _part(content_type: ContentType, part: object) -> list[BlockSpec]:
    if isinstance(part, str):
        return text_specs(content_type, part)
    kind = name_of(field_of(part, "type"), "text")
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(part)
    if kind in TEXT_KINDS:
        return text_specs(content_type, field_of(part, "text") or field_of(part, "refusal"))
    if kind.endswith("_tool_result"):
        return _tool_result(part)
    if kind in MEDIA_KINDS:
        return [media_spec(part)]
    return text_specs(content_type, json_text(part))


def _thinking(part: object) -> list[BlockSpec]:
    thought = field_of(part, "thinking") or field_of(part, "data")
    return text_specs("thinking", "".join(texts_of(thought)) if isinstance(thought, list) else thought)


def _tool_use(part: object) -> list[BlockSpec]:
    return [call_spec(field_of(part, "id"), field_of(part, "name"), field_of(part, "input"))]


def _tool_result(part: object) -> list[BlockSpec]:
    name = field_of(part, "name")
    return [result_spec(field_of(part, "tool_use_id"), field_of(part, "content"), tool_name=name)]


def _compaction(part: object) -> list[BlockSpec]:
    """Return the summary by which a provider replaced the conversation; none for an attempt that failed."""
    summary = text_specs("summary", field_of(part, "content"))
    call_id = field_of(part, "id")
    return summary or ([hidden_summary(call_id)] if isinstance(call_id, str) and call_id else [])


def hidden_summary(content: str) -> BlockSpec:
    """Return the block of a summary that only its provider can read, by its encrypted *content* or its id."""
    digest = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return BlockSpec("summary", None, Key("summary", digest))


_READERS: Final[dict[str, Callable[[object], list[BlockSpec]]]] = {
    "compaction": _compaction,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "tool_use": _tool_use,
    "server_tool_use": _tool_use,
    "tool_result": _tool_result,
}


def same_content(one: Sequence[BlockSpec], other: Sequence[BlockSpec]) -> bool:
    """Return whether the blocks of two messages hold the same, however their messages are written."""
    return [_content(spec) for spec in one] == [_content(spec) for spec in other]


def same_rendering(one: BlockSpec, other: BlockSpec) -> bool:
    """Return whether two blocks differ in nothing but blanks, or for a tool call in its id and JSON format."""
    if one.content_type != other.content_type or one.media or other.media:
        return False
    if one.content_type == "tool_call":
        return _content(one) == _content(other)
    return (one.text or "").split() == (other.text or "").split()


def _content(spec: BlockSpec) -> tuple[Key, str | None, int]:
    """Return what two writings of one block have in common."""
    if spec.content_type == "tool_call":
        return Key("tool_call", spec.tool_name or ""), canonical_json(spec.text), 0
    return spec.key, None if spec.text is None else spec.text.strip(), spec.media
