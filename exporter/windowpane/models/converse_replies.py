"""Replies of Amazon Bedrock's Converse in the form of all providers, whole or as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from windowpane.core.events import Usage
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.models.replies import Reply, ReplyPart

Fields = Mapping[str, Any]


def read_converse_reply(reply: object) -> Reply:
    """Return a whole reply."""
    message = _fields(_fields(_fields(reply).get("output")).get("message"))
    parts = [_part(_fields(part)) for part in message.get("content") or ()]
    return Reply(
        tuple(part for part in parts if part is not None),
        _usage(_fields(reply).get("usage")),
        stop_reason=_fields(reply).get("stopReason"),
    )


def read_converse_events(events: Iterable[object]) -> Reply:
    """Return the reply in *events*, which may end early."""
    blocks: dict[int, dict[str, Any]] = {}
    usage: Usage | None = None
    stop_reason = None
    for event in map(_fields, events):
        start, delta = _fields(event.get("contentBlockStart")), _fields(event.get("contentBlockDelta"))
        if start:
            blocks[start.get("contentBlockIndex", 0)] = dict(_fields(_fields(start.get("start")).get("toolUse")))
        elif delta:
            _extend(blocks.setdefault(delta.get("contentBlockIndex", 0), {}), _fields(delta.get("delta")))
        elif "messageStop" in event:
            stop_reason = _fields(event["messageStop"]).get("stopReason")
        elif "metadata" in event:
            usage = _usage(_fields(event["metadata"]).get("usage")) or usage
    parts = [part for _, block in sorted(blocks.items()) if (part := _streamed(block)) is not None]
    return Reply(tuple(parts), usage, stop_reason=stop_reason)


def _extend(block: dict[str, Any], delta: Fields) -> None:
    """Add a piece to the block it belongs to; a text block has no start."""
    reasoning = _fields(delta.get("reasoningContent"))
    pieces = {
        "text": delta.get("text"),
        "input": _fields(delta.get("toolUse")).get("input"),
        "thinking": reasoning.get("text") or reasoning.get("redactedContent"),
    }
    for name, piece in pieces.items():
        if isinstance(piece, str):
            block[name] = block.get(name, "") + piece


def _streamed(block: Fields) -> ReplyPart | None:
    if "toolUseId" in block:
        return _call({**block, "input": _parsed(block.get("input") or "{}")})
    if block.get("thinking"):
        return ReplyPart("thinking", block["thinking"])
    return ReplyPart("assistant_response", block["text"]) if block.get("text") else None


def _part(part: Fields) -> ReplyPart | None:
    if part.get("text"):
        return ReplyPart("assistant_response", part["text"])
    if "toolUse" in part:
        return _call(_fields(part["toolUse"]))
    reasoning = _fields(part.get("reasoningContent"))
    text = _fields(reasoning.get("reasoningText")).get("text") or reasoning.get("redactedContent")
    return ReplyPart("thinking", text) if isinstance(text, str) else None


def _call(call: Fields) -> ReplyPart:
    sent = call.get("input")
    arguments = sent if isinstance(sent, str) else json.dumps(sent or {}, ensure_ascii=False)
    return ReplyPart("tool_call", arguments, str(call.get("toolUseId") or ""), str(call.get("name") or ""))


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:  # a stream that was closed within them
        return arguments


def _usage(usage: object) -> Usage | None:
    """Convert a usage report, whose input excludes the cache."""
    if not isinstance(usage, Mapping):
        return None
    written = [_fields(entry) for entry in usage.get("cacheDetails") or ()]
    return Usage(
        _count(usage, "inputTokens"),
        _count(usage, "outputTokens"),
        _count(usage, "cacheReadInputTokens"),
        _count(usage, "cacheWriteInputTokens"),
        hour_write_tokens=sum(_count(entry, "inputTokens") for entry in written if entry.get("ttl") == "1h"),
    )


def _count(usage: Fields, name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) and 0 < count <= MAXIMUM_TOKENS else 0


def _fields(value: object) -> Fields:
    return value if isinstance(value, Mapping) else {}
