"""Images between the shapes of OpenAI, Anthropic and the Model Context Protocol; all else stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = Mapping[str, Any]


def as_openai(part: Part) -> dict[str, Any]:
    """A content part as the chat API takes it."""
    address = _address(part)
    if address is None or part.get("type") == "image_url":
        return dict(part)
    return {"type": "image_url", "image_url": {"url": address}}


def as_anthropic(part: Part) -> dict[str, Any]:
    """A content part as the messages API takes it."""
    address = _address(part)
    if address is None or "source" in part:
        return dict(part)
    head, comma, data = address.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return {"type": "image", "source": {"type": "url", "url": address}}
    kind = head.removeprefix("data:").removesuffix(";base64")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _address(part: Part) -> str | None:
    """Where an image is: its address, or itself as a data address; None for anything else."""
    kind, source = part.get("type"), part.get("source")
    if kind in ("image_url", "input_image"):
        named = part.get("image_url")
        url = named.get("url") if isinstance(named, Mapping) else named
        return url if isinstance(url, str) else None
    if kind != "image":
        return None
    if isinstance(source, Mapping):
        if source.get("type") == "base64":
            return f"data:{source.get('media_type')};base64,{source.get('data')}"
        url = source.get("url")
        return url if isinstance(url, str) else None
    return f"data:{part.get('mimeType')};base64,{part['data']}" if isinstance(part.get("data"), str) else None
