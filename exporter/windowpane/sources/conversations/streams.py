"""Streamed replies, assembled from their pieces, with content and usage.

Duck-typed over the chunks of OpenAI chat completions and the events of OpenAI responses and Anthropic messages;
those of Gemini and Converse are read by `models.gemini_replies` and `models.converse_replies`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Protocol

from windowpane.core.events import Usage
from windowpane.models.converse_replies import read_converse_events, read_converse_reply
from windowpane.models.gemini_replies import read_gemini_chunks, read_gemini_reply
from windowpane.models.replies import ContextEdit, Reply, ReplyPart, read_edits, read_reply, read_usage
from windowpane.sources.conversations.block_specs import field_of, items_of
from windowpane.sources.conversations.messages import Shape


class ReplyAssembler(Protocol):
    """Assembles one reply from its pieces, in order."""

    def add(self, piece: object) -> None:
        """Add one chunk or event."""
        ...

    def reply(self) -> Reply:
        """Return the reply as far as its pieces have come."""
        ...


class FailedReplyError(Exception):
    """The provider reported an error in the reply itself; the message is the provider's."""


def raise_for_error(piece: object) -> None:
    """Raise `FailedReplyError` for an event or a document that reports an error instead of content."""
    error = field_of(piece, "error")
    if error is None and field_of(piece, "type") == "error":
        error = piece
    if error and field_of(piece, "type") in (None, "error"):
        code = field_of(error, "code") or field_of(error, "type")
        raise FailedReplyError(f"{code or 'error'}: {field_of(error, 'message') or error}")


def read_events(shape: Shape, events: Iterable[object]) -> Reply:
    """Return the reply in *events*, which may end early. Raises `FailedReplyError` for an error among them."""
    return _READERS[shape](_without_errors(events))


def _without_errors(events: Iterable[object]) -> Iterator[object]:
    for event in events:
        raise_for_error(field_of(event, "response") if field_of(event, "type") == "response.failed" else event)
        yield event


def read_whole(reply: object, shape: Shape) -> Reply:
    """Return a reply that came whole. Raises `FailedReplyError` where it reports an error instead of content."""
    if isinstance(reply, Reply):
        return reply
    raise_for_error(reply)
    if shape == "gemini":
        return read_gemini_reply(reply)
    return read_converse_reply(reply) if shape == "converse" else read_reply(reply)


class ChatAssembler:
    """Assembles chunks of a chat completion. Usage is in the last one, where the agent requested it."""

    def __init__(self) -> None:
        self._id: object = None
        self._text: list[str] = []
        self._calls: dict[int, _ToolCall] = {}
        self._usage: Usage | None = None
        self._model = ""
        self._stop_reason: str | None = None

    def add(self, piece: object) -> None:
        """Add one chunk."""
        self._id = field_of(piece, "id") or self._id
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
        for part in items_of(delta, "tool_calls"):
            function = field_of(part, "function")
            call = self._calls.setdefault(field_of(part, "index") or 0, _ToolCall())
            call.id = field_of(part, "id") or call.id
            call.name += field_of(function, "name") or ""
            call.arguments.append(field_of(function, "arguments") or "")

    def reply(self) -> Reply:
        """Return the reply as far as its pieces have come."""
        text = "".join(self._text)
        parts = [ReplyPart("assistant_response", text)] if text else []
        parts += [call.part() for _, call in sorted(self._calls.items())]
        return Reply(tuple(parts), self._usage, self._model, self._stop_reason, response_id=str(self._id or ""))


class ResponsesAssembler:
    """Assembles events of a response; the last one holds the whole response."""

    def __init__(self) -> None:
        self._id: object = None
        self._response: object = None
        self._items: list[object] = []

    def add(self, piece: object) -> None:
        """Add one event."""
        kind = field_of(piece, "type")
        if kind == "response.output_item.done":
            self._items.append(field_of(piece, "item"))
            return
        response = field_of(piece, "response")
        if response is not None:
            self._id = field_of(response, "id") or self._id
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                self._response = response

    def reply(self) -> Reply:
        """Return the reply as far as its pieces have come."""
        whole = self._response
        if whole is not None and (field_of(whole, "output") or not self._items):
            return read_reply(whole)
        return read_reply({"id": self._id, "output": self._items, "usage": field_of(whole, "usage")})


class AnthropicAssembler:
    """Assembles events of a message: usage is at its start and, cumulative, near its end."""

    def __init__(self) -> None:
        self._id: object = None
        self._edits: tuple[ContextEdit, ...] = ()
        self._blocks: dict[int, _ContentBlock] = {}
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._stop_reason: str | None = None

    def add(self, piece: object) -> None:
        """Add one event."""
        kind = field_of(piece, "type")
        if kind == "message_start":
            message = field_of(piece, "message")
            self._id = field_of(message, "id") or self._id
            self._model = field_of(message, "model") or self._model
            self._count(field_of(message, "usage"))
        elif kind == "message_delta":
            self._stop_reason = field_of(field_of(piece, "delta"), "stop_reason") or self._stop_reason
            self._edits = read_edits(field_of(piece, "context_management")) or self._edits
            self._count(field_of(piece, "usage"))
        elif kind == "content_block_start":
            self._blocks[field_of(piece, "index") or 0] = _ContentBlock(field_of(piece, "content_block"))
        elif kind == "content_block_delta":
            block = self._blocks.get(field_of(piece, "index") or 0)
            if block is not None:
                block.add(field_of(piece, "delta"))

    def reply(self) -> Reply:
        """Return the reply as far as its pieces have come."""
        parts = [part for _, block in sorted(self._blocks.items()) if (part := block.part()) is not None]
        return Reply(
            tuple(parts),
            read_usage(self._usage or None),
            self._model,
            self._stop_reason,
            response_id=str(self._id or ""),
            edits=self._edits,
        )

    def _count(self, usage: object) -> None:
        for name in _USAGE_NAMES:
            value = field_of(usage, name)
            if isinstance(value, int):
                self._usage[name] = value
        writes = field_of(usage, "cache_creation")
        if writes is not None:
            self._usage["cache_creation"] = writes
        details = field_of(usage, "output_tokens_details")
        if details is not None:
            self._usage["output_tokens_details"] = details


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


def _assembled(events: Iterable[object], assembler: ReplyAssembler) -> Reply:
    for event in events:
        assembler.add(event)
    return assembler.reply()


_READERS: Final[dict[Shape, Callable[[Iterable[object]], Reply]]] = {
    "chat": lambda events: _assembled(events, ChatAssembler()),
    "responses": lambda events: _assembled(events, ResponsesAssembler()),
    "anthropic": lambda events: _assembled(events, AnthropicAssembler()),
    "gemini": read_gemini_chunks,
    "converse": read_converse_events,
}


class _ToolCall:
    """A tool call of a chat completion, in pieces."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []

    def part(self) -> ReplyPart:
        return ReplyPart("tool_call", "".join(self.arguments), self.id, self.name)


class _ContentBlock:
    """A content block of a message, in pieces."""

    def __init__(self, start: object) -> None:
        self._start = start
        self._kind = _KINDS.get(str(field_of(start, "type")))
        first = field_of(start, "text") or field_of(start, "thinking") or field_of(start, "data")
        self._pieces: list[str] = [first] if isinstance(first, str) else []

    def add(self, delta: object) -> None:
        for name in ("text", "thinking", "partial_json"):
            piece = field_of(delta, name)
            if isinstance(piece, str):
                self._pieces.append(piece)

    def part(self) -> ReplyPart | None:
        text = "".join(self._pieces)
        if self._kind == "tool_call":
            name, call_id = field_of(self._start, "name"), field_of(self._start, "id")
            return ReplyPart("tool_call", _arguments_as_sent_back(text), call_id, name)
        return None if self._kind is None or not text else ReplyPart(self._kind, text)


def _arguments_as_sent_back(arguments: str) -> str:
    """Return streamed arguments as they are written when the object made of them is sent back."""
    try:
        value: Any = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return json.dumps(value, ensure_ascii=False)
