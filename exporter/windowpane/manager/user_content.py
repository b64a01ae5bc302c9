"""What an agent gives as a user message: a text, content parts, a whole message, or tool results among parts.

Nothing of it is refused: a user message that was lost would harm the agent more than one read wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class UserContent:
    """A user message as it enters the window."""

    parts: tuple[Mapping[str, Any], ...]
    results: tuple[Mapping[str, Any], ...] = ()
    """Anthropic's `tool_result` parts, which answer calls and are nothing the user said."""


def read_user(content: object) -> UserContent:
    """The content parts of *content*, and the tool results that came with them."""
    if isinstance(content, Mapping):
        content = [content] if "type" in content else content.get("content", "")
    if not isinstance(content, list | tuple):
        return UserContent((_text("" if content is None else str(content)),))
    parts = [part if isinstance(part, Mapping) else _text(str(part)) for part in content]
    results = tuple(part for part in parts if part.get("type") == "tool_result")
    return UserContent(tuple(part for part in parts if part.get("type") != "tool_result"), results)


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "text": text}
