"""Manages the windows of Pydantic AI's agents, as a history processor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from windowpane.agents.frameworks.conversations import Conversations, boundary
from windowpane.agents.frameworks.messages import (
    FrameworkMessage,
    Message,
    assistant_message,
    text_of,
    tool_message,
)
from windowpane.models.wire.usage import FLAT

Processor = Callable[[Any, list[Any]], Awaitable[list[Any]]]


def pydantic_ai_processor(*, agent: str, model: str, **options: Any) -> Processor:
    """Return a history processor that manages the window of each conversation; the arguments are the manager's.

    Use it in `Agent(..., capabilities=[ProcessHistory(processor)])`, or `history_processors=[processor]` before
    Pydantic AI 2. Its attribute `close` ends the sessions.
    """
    from pydantic_ai import RunContext

    conversations = Conversations(agent=agent, model=model, **options)

    async def process(context: Any, messages: list[Any]) -> list[Any]:
        """Return the managed history of a call."""
        try:
            return await asyncio.to_thread(_managed, conversations, context, messages)
        except Exception as error:  # noqa: BLE001  # the agent then sends its own history
            boundary.log_failure("managing a call of Pydantic AI", error)
            return messages

    process.__annotations__["context"] = RunContext  # the framework reads it to pass the context
    process.close = conversations.close  # type: ignore[attr-defined]
    return process


class _RequestPart(NamedTuple):
    """A part of a request, which may be sent in another one."""

    part: Any
    request: Any
    """The request that it was in; None for a part that was made."""


def _managed(conversations: Conversations, context: Any, messages: list[Any]) -> list[Any]:
    instructions = next((one.instructions for one in reversed(messages) if one.kind == "request"), None) or ""
    call = conversations.prepare(
        [one for message in messages for one in _read(message)],
        build=_build,
        system=instructions,
        tools=_tools(context),
        scope=getattr(context, "conversation_id", None) or "",
    )
    if call.system:
        call.messages[:0] = _build({"role": "system", "content": call.system})
    return _joined(call.messages, messages[-1])


def _tools(context: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "description": tool.description, "parameters": tool.parameters_json_schema}
        for name, tool in (getattr(context, "tools", None) or {}).items()
    ]


def _read(message: Any) -> list[FrameworkMessage]:
    if message.kind == "response":
        texts = [part.content for part in message.parts if part.part_kind == "text"]
        functions = [part for part in message.parts if part.part_kind == "tool-call"]
        calls = [(part.tool_call_id, part.tool_name, part.args) for part in functions]
        chat = assistant_message("\n".join(texts), calls)
        return [FrameworkMessage(chat, (message,), FLAT.read_sent(message.usage))]
    return [FrameworkMessage(_chat(part), (_RequestPart(part, message),)) for part in message.parts]


def _chat(part: Any) -> Message:
    match part.part_kind:
        case "system-prompt":
            return {"role": "system", "content": part.content}
        case "tool-return":
            return tool_message(part.tool_call_id, part.tool_name, part.model_response_str())
        case "retry-prompt" if part.tool_name is not None:
            return tool_message(part.tool_call_id, part.tool_name, part.model_response(), is_error=True)
        case "retry-prompt":
            return {"role": "user", "content": part.model_response()}
        case "user-prompt":
            text = part.content if isinstance(part.content, str) else None
            return {"role": "user", "content": text or [_user_part(content) for content in part.content]}
    boundary.warn_once(part.part_kind, "parts of kind %s are managed as their text", part.part_kind)
    return {"role": "user", "content": str(getattr(part, "content", part))}


def _user_part(content: Any) -> dict[str, Any]:
    """Return a part of a prompt; media are named by a digest, and stay the framework's objects."""
    if isinstance(content, str):
        return {"type": "text", "text": content}
    text = getattr(content, "content", None)
    if isinstance(text, str):
        return {"type": "text", "text": text}
    return {
        "type": getattr(content, "kind", "media"),
        "identifier": getattr(content, "identifier", repr(content)),
    }


def _joined(parts: Sequence[Any], last: Any) -> list[Any]:
    """Return messages: neighboring parts are one request, the last with the properties of the *last* one."""
    from pydantic_ai.messages import ModelRequest

    messages: list[Any] = []
    for is_request, group in groupby(parts, lambda one: isinstance(one, _RequestPart)):
        if not is_request:
            messages += group
            continue
        members = list(group)
        request = next((one.request for one in reversed(members) if one.request is not None), ModelRequest([]))
        messages.append(replace(request, parts=[one.part for one in members]))
    if messages and messages[-1].kind == "request" and last.kind == "request":
        messages[-1] = replace(last, parts=messages[-1].parts)
    return messages


def _build(chat: Message) -> list[Any]:
    from pydantic_ai import messages as types

    if chat["role"] == "assistant":
        content = [types.TextPart(chat["content"])] if chat.get("content") else []
        functions = [(call["id"], call["function"]) for call in chat.get("tool_calls") or ()]
        calls = [types.ToolCallPart(one["name"], one["arguments"], call_id) for call_id, one in functions]
        return [types.ModelResponse([*content, *calls])]
    if chat["role"] == "tool":
        return [
            _RequestPart(
                types.ToolReturnPart(chat.get("name") or "tool", chat["content"], chat["tool_call_id"]), None
            )
        ]
    made = types.SystemPromptPart if chat["role"] == "system" else types.UserPromptPart
    return [_RequestPart(made(text_of(chat["content"])), None)]
