"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from windowpane.models.wire.messages import BlockSpec, as_dict, content_blocks, field_of, items_of, json_text
from windowpane.models.wire.replies import Compaction, ContextEdit, Reply, ReplyPart, made_summary, reply_parts
from windowpane.models.wire.usage import read_iterations, read_usage, tokens_of

_REPLY_BLOCKS: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""Blocks of a reply that enter the window: others are the provider's own tools."""


def head(body: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the system prompt and the tools of a call."""
    return body.get("system"), body.get("tools")


def message_blocks(message: object) -> list[BlockSpec]:
    """Return the blocks of one message."""
    return content_blocks(field_of(message, "role"), field_of(message, "content"))


def read_reply(reply: object) -> Reply:
    """Return a whole reply."""
    parts: list[ReplyPart] = []
    unread: list[str] = []
    compactions: list[object] = []
    for block in items_of(reply, "content"):
        kind = field_of(block, "type")
        if kind in ("thinking", "redacted_thinking"):
            raw = as_dict(block)
            parts.append(ReplyPart("thinking", str(raw.get("thinking") or raw.get("data") or ""), raw=raw))
        elif kind in _REPLY_BLOCKS:
            parts += reply_parts(content_blocks("assistant", [block]))
        elif kind == "compaction":
            compactions.append(block)
        else:
            unread.append(str(kind))
    return _with_iterations(
        Reply(
            tuple(parts),
            read_usage(field_of(reply, "usage")),
            str(field_of(reply, "model") or ""),
            field_of(reply, "stop_reason"),
            unread=tuple(unread),
            response_id=str(field_of(reply, "id") or ""),
            edits=read_edits(field_of(reply, "context_management")),
        ),
        field_of(reply, "usage"),
        compactions,
    )


def _with_iterations(reply: Reply, usage: object, compactions: Sequence[object]) -> Reply:
    """Return *reply* with what the provider did before it wrote the content: the blocks of its *compactions*."""
    window_tokens, spent, advisors = read_iterations(usage)
    reply = replace(reply, advisors=advisors) if advisors else reply
    if spent is None and not compactions:
        return reply if window_tokens is None else replace(reply, window_tokens=window_tokens)
    summary = made_summary(content_blocks("assistant", compactions))
    if reply.parts or (reply.usage is not None and reply.usage.input_total):
        return replace(reply, compaction=Compaction(summary, spent), window_tokens=window_tokens)
    # Nothing was generated from the summary: the call is the compaction, whose input may be a part of the window.
    return replace(reply, usage=spent, compaction=Compaction(summary), window_tokens=0)


def read_edits(context_management: object) -> tuple[ContextEdit, ...]:
    """Return the edits of the context that a reply reports."""
    return tuple(
        ContextEdit(
            str(field_of(edit, "type") or ""),
            tokens_of(field_of(edit, "cleared_tool_uses"))
            or tokens_of(field_of(edit, "cleared_thinking_turns"))
            or 0,
        )
        for edit in items_of(context_management, "applied_edits")
    )


class AnthropicAssembler:
    """Assembles events of a reply: usage is at its start and, cumulative, near its end."""

    def __init__(self) -> None:
        self._id: object = None
        self._edits: tuple[ContextEdit, ...] = ()
        self._blocks: dict[int, _StreamedBlock] = {}
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
            self._blocks[field_of(piece, "index") or 0] = _StreamedBlock(field_of(piece, "content_block"))
        elif kind == "content_block_delta":
            block = self._blocks.get(field_of(piece, "index") or 0)
            if block is not None:
                block.add(field_of(piece, "delta"))

    def reply(self) -> Reply:
        """Return the reply as far as its pieces have come."""
        blocks = [block.whole() for _, block in sorted(self._blocks.items()) if block.is_read]
        return _with_iterations(
            Reply(
                tuple(reply_parts(content_blocks("assistant", blocks))),
                read_usage(self._usage or None),
                self._model,
                self._stop_reason,
                response_id=str(self._id or ""),
                edits=self._edits,
            ),
            self._usage,
            [block for block in blocks if block["type"] == "compaction"],
        )

    def _count(self, usage: object) -> None:
        for name in _USAGE_NAMES:
            value = field_of(usage, name)
            if value is not None:
                self._usage[name] = value


_USAGE_NAMES: Final = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation",
    "output_tokens_details", "iterations",
)  # fmt: skip
_DELTAS: Final = ("text", "thinking", "partial_json", "content")


class _StreamedBlock:
    """A content block, in pieces."""

    def __init__(self, start: object) -> None:
        self._start = start
        self._kind = field_of(start, "type")
        self.is_read = self._kind in _REPLY_BLOCKS or self._kind == "compaction"
        """It enters the window."""
        names = ("text", "thinking", "data", "content")
        first = next((value for name in names if (value := field_of(start, name))), None)
        self._pieces: list[str] = [first] if isinstance(first, str) else []

    def add(self, delta: object) -> None:
        self._pieces += [piece for name in _DELTAS if isinstance(piece := field_of(delta, name), str)]

    def whole(self) -> dict[str, Any]:
        """Return the block as a whole reply would hold it."""
        text = "".join(self._pieces)
        if self._kind != "tool_use":
            return {"type": self._kind, "text": text, "thinking": text, "content": text}
        call_id, name = field_of(self._start, "id"), field_of(self._start, "name")
        return {"type": self._kind, "id": call_id, "name": name, "input": _arguments_as_sent_back(text)}


def _arguments_as_sent_back(arguments: str) -> str:
    """Return streamed arguments as they are written when the object made of them is sent back."""
    try:
        value: Any = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return json_text(value)
