"""The calls that LiteLLM has started and not ended yet, with what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from windowpane.models.wire.calls import Shape
from windowpane.sources.conversations.conversations import Scope

SHAPES: Final[Mapping[str, tuple[Shape, str]]] = {
    "completion": ("chat", "messages"),
    "acompletion": ("chat", "messages"),
    "responses": ("responses", "input"),
    "aresponses": ("responses", "input"),
    "anthropic_messages": ("anthropic", "messages"),
}
"""Kinds of calls to their shape and the field of their messages."""


class LiteLLMCall:
    """A call that LiteLLM has started, with copies of its messages."""

    def __init__(self, shape: Shape, body: dict[str, Any], field: str, at: float, scope: Scope | None) -> None:
        self.shape: Shape = shape
        self.body = body
        self.at = at
        self.scope = scope
        self._field = field
        self.is_awaited = True
        """It has not ended, and no client has sent it."""

    def is_sent_as(self, shape: Shape, body: object) -> bool:
        """Return whether a request of a client is this call, which is sent once."""
        if not self.is_awaited or shape != self.shape or not isinstance(body, dict):
            return False
        is_this = bool(body.get(self._field) == self.body[self._field])
        self.is_awaited = not is_this
        return is_this
