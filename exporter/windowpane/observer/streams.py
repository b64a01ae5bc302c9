"""A streamed reply put together from its pieces, as they pass, for its content and its usage.

Duck-typed over the chunks of OpenAI chat completions and the events of OpenAI responses and Anthropic messages.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, Protocol

from windowpane.core.events import Usage
from windowpane.models.replies import Reply, ReplyPart, read_reply, read_usage
from windowpane.observer.messages import Shape, field_of


class ReplyAssembler(Protocol):
    """Takes the pieces of one reply in order."""

    response_id: str | None
    """The provider's id of the reply, once it was seen."""

    def take(self, piece: object) -> None:
        """One chunk or event."""
        ...

    def reply(self) -> Reply:
        """What has come so far."""
        ...


def assembler_for(shape: Shape) -> ReplyAssembler:
    """What puts a streamed reply of *shape* together."""
    if shape == "chat":
        return ChatAssembler()
    return ResponsesAssembler() if shape == "responses" else AnthropicAssembler()


class ChatAssembler:
    """Chunks of a chat completion. Usage comes in the last one, where the agent asked for it."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self._text: list[str] = []
        self._calls: dict[int, _ToolCall] = {}
        self._usage: Usage | None = None
        self._model = ""
        self._stop_reason: str | None = None

    def take(self, piece: object) -> None:
        """One chunk."""
        self.response_id = field_of(piece, "id") or self.response_id
        self._model = field_of(piece, "model") or self._model
        self._usage = read_usage(field_of(piece, "usage")) or self._usage
        choices = field_of(piece, "choices")
        if not choices:
            return
        choice = choices[0]
        self._stop_reason = field_of(choice, "finish_reason") or self._stop_reason
        delta = field_of(choice, "delta")
        text = field_of(delta, "content") or field_of(delta, "refusal")
        if text:
            self._text.append(text)
        for part in field_of(delta, "tool_calls") or ():
            function = field_of(part, "function")
            call = self._calls.setdefault(field_of(part, "index") or 0, _ToolCall())
            call.id = field_of(part, "id") or call.id
            call.name += field_of(function, "name") or ""
            call.arguments.append(field_of(function, "arguments") or "")

    def reply(self) -> Reply:
        """What has come so far."""
        text = "".join(self._text)
        parts = [ReplyPart("assistant_response", text)] if text else []
        parts += [call.part() for _, call in sorted(self._calls.items())]
        return Reply(tuple(parts), self._usage, self._model, self._stop_reason)


class ResponsesAssembler:
    """Events of a response; the last one carries the whole."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self._response: object = None
        self._items: list[object] = []

    def take(self, piece: object) -> None:
        """One event."""
        kind = field_of(piece, "type")
        if kind == "response.output_item.done":
            self._items.append(field_of(piece, "item"))
            return
        response = field_of(piece, "response")
        if response is not None:
            self.response_id = field_of(response, "id") or self.response_id
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                self._response = response

    def reply(self) -> Reply:
        """What has come so far."""
        whole = self._response
        if whole is not None and (field_of(whole, "output") or not self._items):
            return read_reply(whole)
        return read_reply({"output": self._items, "usage": field_of(whole, "usage")})


class AnthropicAssembler:
    """Events of a message: usage at its start and, cumulative, near its end."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._model = ""
        self._stop_reason: str | None = None

    def take(self, piece: object) -> None:
        """One event."""
        kind = field_of(piece, "type")
        if kind == "message_start":
            message = field_of(piece, "message")
            self.response_id = field_of(message, "id") or self.response_id
            self._model = field_of(message, "model") or self._model
            self._count(field_of(message, "usage"))
        elif kind == "message_delta":
            self._stop_reason = field_of(field_of(piece, "delta"), "stop_reason") or self._stop_reason
            self._count(field_of(piece, "usage"))
        elif kind == "content_block_start":
            self._blocks[field_of(piece, "index") or 0] = _Block(field_of(piece, "content_block"))
        elif kind == "content_block_delta":
            block = self._blocks.get(field_of(piece, "index") or 0)
            if block is not None:
                block.take(field_of(piece, "delta"))

    def reply(self) -> Reply:
        """What has come so far."""
        parts = [part for _, block in sorted(self._blocks.items()) if (part := block.part()) is not None]
        return Reply(tuple(parts), read_usage(self._usage or None), self._model, self._stop_reason)

    def _count(self, usage: object) -> None:
        for name in _USAGE_NAMES:
            value = field_of(usage, name)
            if isinstance(value, int):
                self._usage[name] = value


_USAGE_NAMES: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_KINDS: Final[dict[str, Literal["assistant_response", "thinking", "tool_call"]]] = {
    "text": "assistant_response",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool_call",
}


class _ToolCall:
    """A tool call of a chat completion as it comes in."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []

    def part(self) -> ReplyPart:
        return ReplyPart("tool_call", "".join(self.arguments), self.id, self.name)


class _Block:
    """A content block of a message as it comes in."""

    def __init__(self, begun: object) -> None:
        self._begun = begun
        self._kind = _KINDS.get(str(field_of(begun, "type")))
        first = field_of(begun, "text") or field_of(begun, "thinking") or field_of(begun, "data")
        self._pieces: list[str] = [first] if isinstance(first, str) else []

    def take(self, delta: object) -> None:
        for name in ("text", "thinking", "partial_json"):
            piece = field_of(delta, name)
            if isinstance(piece, str):
                self._pieces.append(piece)

    def part(self) -> ReplyPart | None:
        text = "".join(self._pieces)
        if self._kind == "tool_call":
            name, call_id = field_of(self._begun, "name"), field_of(self._begun, "id")
            return ReplyPart("tool_call", _same_as_sent(text), call_id, name)
        return None if self._kind is None or not text else ReplyPart(self._kind, text)


def _same_as_sent(arguments: str) -> str:
    """Streamed arguments written as they are when the object made of them is sent back."""
    try:
        value: Any = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return json.dumps(value, ensure_ascii=False)
