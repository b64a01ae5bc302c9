"""OpenAI's chat completions, whose messages other providers and frameworks use too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windowpane.core.events import Usage
from windowpane.models.wire.messages import (
    BlockSpec,
    call_spec,
    content_blocks,
    field_of,
    items_of,
    name_of,
    result_spec,
    text_specs,
)
from windowpane.models.wire.replies import Reply, ReplyPart, reply_parts
from windowpane.models.wire.usage import read_usage


def head(body: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the system prompt and the tools of a call; the former is among the messages."""
    return None, body.get("tools")


def message_blocks(message: object, *, role: str = "user") -> list[BlockSpec]:
    """Return the blocks of one message; *role* is that of a message without one."""
    reasoning = reasoning_of(message)
    role = name_of(field_of(message, "role"), role)
    content, calls = field_of(message, "content"), items_of(message, "tool_calls")
    refusal = field_of(message, "refusal")
    if role in ("tool", "function"):
        name = field_of(message, "tool_call_id") or field_of(message, "name")
        blocks = [result_spec(name, content, tool_name=field_of(message, "name"))]
    else:
        blocks = text_specs("thinking", reasoning) + content_blocks(role, content)
    for call in calls:
        function = field_of(call, "function") or field_of(call, "custom")
        arguments = field_of(function, "arguments")
        if arguments is None:
            arguments = field_of(function, "input")
        blocks.append(call_spec(field_of(call, "id"), field_of(function, "name"), arguments))
    return blocks + text_specs("assistant_response", refusal) if refusal else blocks


def reasoning_of(message: object) -> object:
    """Return the reasoning in a reply or a piece of one; within a loop of tools it is sent back."""
    return field_of(message, "reasoning_content") or field_of(message, "reasoning")


def read_reply(reply: object) -> Reply:
    """Return the first choice of a reply."""
    choice = field_of(reply, "choices")[0]
    return read_message(field_of(choice, "message"), reply, stop_reason=field_of(choice, "finish_reason"))


def read_message(message: object, reply: object, *, stop_reason: str | None = None) -> Reply:
    """Return a reply's *message*; *reply* has the usage and the id."""
    return Reply(
        tuple(reply_parts(message_blocks(message))),
        read_usage(field_of(reply, "usage")),
        str(field_of(reply, "model") or ""),
        stop_reason,
        response_id=str(field_of(reply, "id") or ""),
    )


class ChatAssembler:
    """Assembles chunks of a reply. Usage is in the last one, where the agent requested it."""

    def __init__(self) -> None:
        self._id: object = None
        self._reasoning: list[str] = []
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
        reasoning = reasoning_of(delta)
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
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
        reasoning, text = "".join(self._reasoning), "".join(self._text)
        parts = [ReplyPart("thinking", reasoning)] if reasoning else []
        parts += [ReplyPart("assistant_response", text)] if text else []
        parts += [call.part() for _, call in sorted(self._calls.items())]
        return Reply(tuple(parts), self._usage, self._model, self._stop_reason, response_id=str(self._id or ""))


class _ToolCall:
    """A tool call, in pieces."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []

    def part(self) -> ReplyPart:
        return ReplyPart("tool_call", "".join(self.arguments), self.id, self.name)
