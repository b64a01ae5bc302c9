"""Content whose parts name their kind, as in the messages of OpenAI and Anthropic.

Proxies accept the parts of either in the messages of the other. Markers that change nothing the model sees, such
as `cache_control`, are not part of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.blocks import (
    MEDIA_KINDS,
    TEXT_KINDS,
    BlockSpec,
    call_spec,
    media_spec,
    result_specs,
    text_specs,
)
from windowpane.models.wire.fields import field_of, json_text, name_of, parts_of, texts_of

TYPE_OF_ROLE: Final[dict[str, ContentType]] = {
    "system": "system_prompt",
    "developer": "system_prompt",
    "assistant": "assistant_response",
}
"""The content type of texts by the role of their message; all others are the user's."""


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
