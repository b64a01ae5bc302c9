"""OpenTelemetry's GenAI conventions, old and new, and OpenLLMetry's and LangSmith's forms of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from windowpane.models.wire.replies import ReplyPart
from windowpane.models.wire.traced import (
    Message,
    compaction_of,
    decoded,
    has_text,
    message_of,
    messages_of,
    reply_parts,
    system_text,
    tools_of,
)
from windowpane.models.wire.usage import GEN_AI
from windowpane.sources.telemetry.attributes import count_of, first_of, text_of, unflattened
from windowpane.sources.telemetry.records import Attributes
from windowpane.sources.telemetry.reported_call import ReportedCall

CALLS: Final = frozenset({"chat", "text_completion", "generate_content", "completion", "llm_call", "responses"})
"""Operations that are one model call."""
OTHER_KINDS: Final = frozenset({"workflow", "task", "agent", "tool", "chain", "retriever", "embedding", "prompt"})
"""Kinds of spans around and beside calls, by OpenLLMetry and LangSmith."""
DETAILS: Final = "gen_ai.client.inference.operation.details"
"""The event that carries the attributes of a call, beside its span or instead of them."""
MESSAGE_EVENTS: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
"""Events that carry one message each, with their role."""
CHOICE: Final = "gen_ai.choice"
_PROMPT: Final = "gen_ai.content.prompt"
_COMPLETION: Final = "gen_ai.content.completion"


def is_call(attributes: Attributes) -> bool:
    """Return whether the attributes are those of one model call."""
    kind = attributes.get("traceloop.span.kind") or attributes.get("langsmith.span.kind")
    if isinstance(kind, str) and kind.lower() in OTHER_KINDS:
        return False
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation:
        return operation in CALLS
    if kind == "llm" or attributes.get("llm.request.type") in ("chat", "completion"):
        return True
    return "gen_ai.usage.output_tokens" in attributes or "gen_ai.usage.completion_tokens" in attributes


def read_call(attributes: Attributes) -> ReportedCall:
    """Return the call that the attributes report."""
    call = ReportedCall(
        "gen_ai",
        text_of(attributes, "gen_ai.response.model", "gen_ai.request.model", "llm.request.model"),
        usage=GEN_AI.read(attributes),
        response_id=text_of(attributes, "gen_ai.response.id"),
        stop_reason=first_of(attributes.get("gen_ai.response.finish_reasons")),
        continues=text_of(
            attributes,
            "gen_ai.request.previous_response.id",
            "gen_ai.request.previous_response_id",
            "gen_ai.openai.previous_response_id",
        ),
    )
    call.is_compacted = str(attributes.get("gen_ai.conversation.compacted")).lower() == "true"
    call.window_tokens = count_of(attributes, "gen_ai.context.window_size") or None
    _read_prompt(call, attributes)
    _read_reply(call, attributes)
    return call


def complete_from_events(call: ReportedCall, events: Iterable[tuple[str, Attributes, Any]]) -> None:
    """Add the content of a call that is in events: their names, attributes and bodies, in order."""
    messages: list[Message] = []
    reply: tuple[ReplyPart, ...] | None = None
    for name, attributes, body in events:
        content = body if isinstance(body, dict) else attributes
        if name in MESSAGE_EVENTS:
            messages.append(_event_message(content, MESSAGE_EVENTS[name]))
        elif name == CHOICE and reply is None:
            reply = reply_parts(_event_message(decoded(content.get("message")) or content, "assistant"))
            call.stop_reason = call.stop_reason or first_of(content.get("finish_reason"))
        elif name == DETAILS:
            call.complete(read_call(attributes))
        elif name == _PROMPT:
            messages += messages_of(attributes.get("gen_ai.prompt")) or []
        elif name == _COMPLETION and reply is None:
            reply = _completion(attributes.get("gen_ai.completion"))
    if messages and call.messages is None and not any(map(has_text, messages)):
        return  # the events hold roles and ids only: content is not captured
    if messages and call.messages is None:
        call.messages = messages
    if reply is not None and call.reply is None:
        call.reply = reply


def _event_message(content: Any, role: str) -> Message:
    if not isinstance(content, dict):
        return message_of(content, role=role)
    if isinstance(content.get("content"), str) and role != "tool":
        content = {**content, "content": decoded(content["content"])}
    return message_of({"role": role, **content} if "role" not in content else content, role=role)


def _read_prompt(call: ReportedCall, attributes: Attributes) -> None:
    system = attributes.get("gen_ai.system_instructions")
    call.system = None if system is None else system_text(system)
    definitions = attributes.get("gen_ai.tool.definitions") or attributes.get("gen_ai.request.tools")
    call.tools = tools_of(definitions) if definitions is not None else _functions(attributes)
    given = attributes.get("gen_ai.input.messages")
    if given is not None:
        call.messages = messages_of(given)
        return
    listed = unflattened(attributes, "gen_ai.prompt")
    if listed:
        call.messages = [message_of(item) for item in listed]
    elif attributes.get("gen_ai.prompt") is not None:
        call.messages = messages_of(attributes["gen_ai.prompt"])


def _read_reply(call: ReportedCall, attributes: Attributes) -> None:
    given = attributes.get("gen_ai.output.messages")
    if given is not None:
        messages = messages_of(given)
        call.reply = reply_parts(messages[0]) if messages else None
        call.compaction = compaction_of(messages[0]) if messages else None
        return
    listed = unflattened(attributes, "gen_ai.completion")
    if listed:
        call.reply = reply_parts(message_of(listed[0], role="assistant"))
        if isinstance(listed[0], dict):
            call.stop_reason = call.stop_reason or first_of(listed[0].get("finish_reason"))
    elif attributes.get("gen_ai.completion") is not None:
        call.reply = _completion(attributes["gen_ai.completion"])


def _completion(value: Any) -> tuple[ReplyPart, ...] | None:
    """Return a reply in the form of LangSmith or of a provider: generations, choices, messages or one message."""
    value = decoded(value)
    while isinstance(value, dict | list):
        if isinstance(value, list):
            if not value:
                return None
            value = value[0]
            continue
        inner = next(
            (
                value[name]
                for name in ("generations", "choices", "messages", "output", "message")
                if value.get(name)
            ),
            None,
        )
        if inner is None:
            return reply_parts(message_of(value, role="assistant"))
        value = inner
    return reply_parts(message_of(value, role="assistant")) if isinstance(value, str) and value else None


def _functions(attributes: Attributes) -> list[Any] | None:
    """Return the tool definitions of OpenLLMetry, whose parameters are JSON text."""
    listed = unflattened(attributes, "llm.request.functions")
    return [
        {"type": "function", "function": {key: decoded(value) for key, value in tool.items()}}
        for tool in listed
        if isinstance(tool, dict)
    ] or None
