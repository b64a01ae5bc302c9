"""OpenAI's responses, whose input and output are lists of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from windowpane.core.names import name_in_namespace
from windowpane.models.wire import chat
from windowpane.models.wire.messages import (
    BlockSpec,
    call_spec,
    field_of,
    hidden_summary,
    items_of,
    json_text,
    name_of,
    result_spec,
    tool_spec,
)
from windowpane.models.wire.replies import Compaction, Reply, ReplyPart, made_summary, reply_parts
from windowpane.models.wire.usage import read_usage

ADDITIONAL_TOOLS: Final = "additional_tools"
"""The item in which an agent sends definitions of tools within the conversation."""
COMPACTIONS: Final = ("compaction", "compaction_summary")
"""Items of a summary that only the provider can read."""
_REPLY_ITEMS: Final = ("message", "function_call", "custom_tool_call")
"""Items of a reply that enter the window: others are the provider's own tools, and encrypted reasoning."""


def head(body: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the system prompt and the tools of a call."""
    return body.get("instructions"), body.get("tools")


def continues(body: Mapping[str, Any]) -> str | None:
    """Return the response or stored conversation that the provider puts before the messages."""
    conversation = body.get("conversation")
    stored = body.get("previous_response_id") or field_of(conversation, "id") or conversation
    return stored if isinstance(stored, str) else None


def item_blocks(item: object, *, role: str = "user") -> Iterator[BlockSpec]:
    """Yield the blocks of one item; *role* is that of a message without one.

    Reasoning is encrypted or a summary, and a reference has no text: only the provider's total includes them.
    """
    kind = name_of(field_of(item, "type"), "message")
    if kind == "message":
        yield from chat.message_blocks(item, role=role)
        return
    call_id = field_of(item, "call_id") or field_of(item, "id")
    if kind in ("function_call", "custom_tool_call"):
        arguments = field_of(item, "arguments" if kind == "function_call" else "input")
        name = name_in_namespace(field_of(item, "namespace"), field_of(item, "name"))
        yield call_spec(call_id, name, arguments)
    elif kind.endswith("_output"):
        yield result_spec(call_id, field_of(item, "output"))
    elif kind.endswith("_call"):
        yield call_spec(call_id, kind, json_text(item))
    elif kind in COMPACTIONS:
        content = field_of(item, "encrypted_content") or call_id
        if isinstance(content, str):
            yield hidden_summary(content)
    elif kind == ADDITIONAL_TOOLS:
        yield from map(tool_spec, items_of(item, "tools"))


def read_reply(reply: object) -> Reply:
    """Return a whole reply."""
    parts: list[ReplyPart] = []
    unread: list[str] = []
    compaction: Compaction | None = None
    retained: list[BlockSpec] = []
    """Messages of the user, which only a compaction on request returns."""
    for item in items_of(reply, "output"):
        kind = field_of(item, "type")
        if kind == "message" and field_of(item, "role") in ("user", "developer", "system"):
            retained += item_blocks(item)
        elif kind in _REPLY_ITEMS:
            parts += reply_parts(item_blocks(item, role="assistant"))
        elif kind in COMPACTIONS:
            compaction = Compaction(made_summary([*item_blocks(item)]))
        else:
            unread.append(str(kind))
    return Reply(
        tuple(parts),
        read_usage(field_of(reply, "usage")),
        str(field_of(reply, "model") or ""),
        field_of(reply, "status"),
        unread=tuple(unread),
        response_id=str(field_of(reply, "id") or ""),
        compaction=None if compaction is None else replace(compaction, retained=tuple(retained)),
        window_tokens=0 if compaction is not None and parts else None,  # it may count both runs
    )


class ResponsesAssembler:
    """Assembles events of a reply; the last one holds the whole response."""

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
