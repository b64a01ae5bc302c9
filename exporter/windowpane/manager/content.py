"""Content that comes into the window: user messages, replies and tool definitions.

Nothing that an agent passes as a user message is refused: one that was lost would harm the agent more than one
read wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windowpane.effects.commands import Effect
from windowpane.manager.engine import Engine
from windowpane.manager.state import OpenCall, Payload
from windowpane.manager.tool_results import add_tool_result
from windowpane.models.wire.calls import read_reply
from windowpane.models.wire.replies import Reply, ReplyPart


@dataclass(frozen=True, slots=True)
class UserContent:
    """A user message as it enters the window."""

    parts: tuple[Mapping[str, Any], ...]
    results: tuple[Mapping[str, Any], ...] = ()
    """Anthropic's `tool_result` parts, which answer calls and were not written by the user."""


def read_user(content: object) -> UserContent:
    """Return the parts of a user message: a text, content parts, a whole message, or tool results among parts."""
    if isinstance(content, Mapping):
        content = [content] if "type" in content else content.get("content", "")
    if not isinstance(content, list | tuple):
        return UserContent((_text("" if content is None else str(content)),))
    parts = [part if isinstance(part, Mapping) else _text(str(part)) for part in content]
    results = tuple(part for part in parts if part.get("type") == "tool_result")
    return UserContent(tuple(part for part in parts if part.get("type") != "tool_result"), results)


def add_user(engine: Engine, content: object, *, pinned: bool = False) -> Effect[None]:
    """Add a user message; tool results among its parts answer their calls."""
    read = read_user(content)
    for part in read.results:
        output, failed = part.get("content") or "", part.get("is_error") is True
        yield from add_tool_result(engine, "", output, part.get("tool_use_id"), is_error=failed)
    if read.parts or not read.results:
        _add_user_parts(engine, read.parts, pinned=pinned)


def returned_reply(reply: object) -> Reply:
    """Return a provider's reply in neutral form, without unsigned reasoning, which is not sent back."""
    if isinstance(reply, Reply):
        return reply
    read = read_reply(reply)
    return replace(read, parts=tuple(part for part in read.parts if part.kind != "thinking" or part.raw))


def add_reply(engine: Engine, parts: Sequence[ReplyPart]) -> None:
    """Add a model's reply; calls of earlier replies that have no result will never get one."""
    if parts:
        engine.insert_opening()
        engine.calls.start_reply()
    for part in parts:
        if part.kind == "tool_call":
            _add_call(engine, part)
        else:
            _add_reply_part(engine, part)


def add_tool_definitions(engine: Engine, tools: str | Iterable[Mapping[str, Any]]) -> None:
    """Add tool definitions as they are sent with each call."""
    if isinstance(tools, str):
        engine.add("tool_definition", tools)
        return
    for tool in tools:
        function = tool.get("function") or tool
        engine.add("tool_definition", json.dumps(tool, ensure_ascii=False), tool_name=function.get("name"))


def _add_user_parts(engine: Engine, parts: Sequence[Mapping[str, Any]], *, pinned: bool) -> None:
    """Add the parts of a message; the first user message states the task, unless a goal was given."""
    engine.reduction.breaker.reset()
    engine.reduction.fruitless_used = None
    joined = False
    engine.insert_opening()
    for part in parts:
        if part.get("type") in ("text", "input_text"):
            block = engine.add("user_message", str(part.get("text", "")), pinned=pinned)
            if engine.task.goal_block is None:
                engine.task.goal_block = block.id
                engine.task.goal = engine.task.goal or block.text or ""
        else:
            block = engine.tracker.add("media", None, engine.settings.image_tokens, pinned=pinned)
            engine.payloads[block.id] = Payload(raw=part, joined=joined)
        if joined:
            engine.payloads.setdefault(block.id, Payload(joined=True))
        joined = True


def _add_reply_part(engine: Engine, part: ReplyPart) -> None:
    source = engine.counter.source
    block = engine.tracker.add(part.kind, part.text, engine.counter.count(part.text), count_source=source)
    engine.refer(block)
    if part.raw is not None:
        engine.payloads[block.id] = Payload(raw=part.raw)


def _add_call(engine: Engine, part: ReplyPart) -> None:
    call_id = part.tool_call_id or f"call-{engine.tracker.turn}-{len(engine.calls.open)}"
    name = part.tool_name or "tool"
    source = engine.counter.source
    block = engine.tracker.add(
        "tool_call",
        part.text,
        engine.counter.count(part.text) + engine.counter.count(name),
        count_source=source,
        digest=engine.digest(f"{name}\0{part.text}"),
        tool_call_id=call_id,
        tool_name=name,
    )
    engine.refer(block)
    engine.calls.open[call_id] = OpenCall(block.group, name)


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "text": text}
