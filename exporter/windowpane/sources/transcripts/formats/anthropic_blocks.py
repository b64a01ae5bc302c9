"""Blocks of Anthropic's Messages API, as agents store them."""

from __future__ import annotations

from typing import Any

from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import MEDIA_KINDS, text_and_media
from windowpane.sources.transcripts.json_lines import as_json, text
from windowpane.sources.transcripts.records import ContentAdded


def content_of(
    block: dict[str, Any], plain: ContentType, *, key: str = "", at: float | None
) -> ContentAdded | None:
    """Return the content of a block, *plain* that of a text; None for an unknown kind.

    A text may be empty. That of redacted thinking and of media is None.
    """
    kind = text(block.get("type"))
    if kind == "text":
        return ContentAdded(plain, text(block.get("text")), key=key, at=at)
    if kind in ("thinking", "redacted_thinking"):
        thought = text(block.get("thinking")) if kind == "thinking" else None
        return ContentAdded("thinking", thought, key=key, at=at)
    if kind in MEDIA_KINDS:
        return ContentAdded("media", None, media=1, key=key, at=at)
    if kind.endswith("tool_use"):
        call_id, name = text(block.get("id")) or None, text(block.get("name")) or None
        return ContentAdded("tool_call", as_json(block.get("input")), call_id, name, key=key, at=at)
    if kind.endswith("tool_result"):
        output, media = text_and_media(block.get("content"))
        call_id = text(block.get("tool_use_id")) or None
        return ContentAdded("tool_result", output, call_id, media=media, key=key, at=at)
    return None
