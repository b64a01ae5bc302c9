"""Pieces of a message as they were sent, and how each kind is built, whatever the shape of the message.

Proxies accept the parts of OpenAI's and Anthropic's messages in either. Markers without an effect on the model,
such as `cache_control`, are not part of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.fields import canonical_json, field_of, json_text, name_of, parts_of, texts_of

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


def text_specs(content_type: ContentType, text: object) -> Iterator[BlockSpec]:
    """Yield the block of a text; none for a blank one."""
    if isinstance(text, str) and text.strip():
        yield BlockSpec(content_type, text, Key(content_type, text.strip()))


def result_specs(call_id: object, content: Any, *, tool_name: object = None) -> Iterator[BlockSpec]:
    """Yield the block of a tool result, with its images counted."""
    media = sum(map(is_media, parts_of(content)))
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


def is_media(part: object) -> bool:
    """Return whether a part that names its kind is an image, a document or a recording."""
    return not isinstance(part, str) and name_of(field_of(part, "type"), "") in MEDIA_KINDS


def content_blocks(role: object, content: Any) -> Iterator[BlockSpec]:
    """Yield the blocks of the content of a message."""
    content_type = TYPE_OF_ROLE.get(name_of(role, "user"), "user_message")
    for part in parts_of(content):
        yield from _part(content_type, part)


def _part(content_type: ContentType, part: object) -> Iterator[BlockSpec]:
    if isinstance(part, str):
        yield from text_specs(content_type, part)
        return
    kind = name_of(field_of(part, "type"), "text")
    reader = _READERS.get(kind)
    if reader is not None:
        yield from reader(part)
    elif kind in TEXT_KINDS:
        yield from text_specs(content_type, field_of(part, "text") or field_of(part, "refusal"))
    elif kind.endswith("_tool_result"):
        yield from _tool_result(part)
    elif kind in MEDIA_KINDS:
        yield media_spec(part)
    else:
        yield from text_specs(content_type, json_text(part))


def _thinking(part: object) -> Iterator[BlockSpec]:
    thought = field_of(part, "thinking") or field_of(part, "data")
    return text_specs("thinking", "".join(texts_of(thought)) if isinstance(thought, list) else thought)


def _tool_use(part: object) -> Iterator[BlockSpec]:
    yield call_spec(field_of(part, "id"), field_of(part, "name"), field_of(part, "input"))


def _tool_result(part: object) -> Iterator[BlockSpec]:
    name = field_of(part, "name")
    return result_specs(field_of(part, "tool_use_id"), field_of(part, "content"), tool_name=name)


_READERS: Final[dict[str, Callable[[object], Iterator[BlockSpec]]]] = {
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
