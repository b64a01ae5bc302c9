"""OpenInference: `llm.input_messages.N.message.…`, `llm.token_count.…`."""

from __future__ import annotations

from typing import Any

from windowpane.models.wire.traced import Message, decoded, message_of, messages_of, reply_parts
from windowpane.models.wire.usage import OPENINFERENCE
from windowpane.sources.telemetry.attributes import amount_of, first_of, text_of, unflattened
from windowpane.sources.telemetry.records import Attributes
from windowpane.sources.telemetry.reported_call import ReportedCall


def is_call(attributes: Attributes) -> bool:
    """Return whether the attributes are those of one model call."""
    return attributes.get("openinference.span.kind") == "LLM"


def read_call(attributes: Attributes) -> ReportedCall:
    """Return the call that the attributes report."""
    replies = unflattened(attributes, "llm.output_messages")
    output = decoded(attributes.get("output.value"))
    call = ReportedCall(
        "openinference",
        text_of(attributes, "llm.model_name", "llm.response.model_name", "llm.request.model_name"),
        messages=_messages(attributes),
        tools=_tools(attributes),
        reply=reply_parts(_message(replies[0], "assistant")) if replies else None,
        usage=OPENINFERENCE.read(attributes),
        stop_reason=first_of(attributes.get("llm.finish_reason")),
        cost_dollars=amount_of(attributes, "llm.cost.total"),
    )
    if isinstance(output, dict) and isinstance(output.get("id"), str):
        call.response_id = output["id"][:200]
    parameters = decoded(attributes.get("llm.invocation_parameters"))
    if isinstance(parameters, dict):
        call.continues = text_of(parameters, "previous_response_id")
    return call


def _messages(attributes: Attributes) -> list[Message] | None:
    listed = unflattened(attributes, "llm.input_messages")
    if listed:
        return [_message(item, "user") for item in listed]
    prompts = unflattened(attributes, "llm.prompts")
    return messages_of([_first_text(item) for item in prompts]) if prompts else None


def _message(item: Any, role: str) -> Message:
    """Return a message whose fields are nested in `message`, and its parts in `message_content`."""
    fields = item.get("message") if isinstance(item, dict) else None
    if not isinstance(fields, dict):
        return message_of(item, role=role)
    calls = fields.get("tool_calls")
    contents = fields.get("contents")
    message = {**fields, "tool_calls": [_tool_call(call) for call in calls] if isinstance(calls, list) else None}
    if isinstance(contents, list) and contents:
        parts = [_content(part) for part in contents]
        message["content"] = [part for part in parts if part.get("type") not in ("tool_use", "tool_call")]
    return message_of(message, role=role)


def _content(part: Any) -> dict[str, Any]:
    if not isinstance(part, dict):
        return {"type": "text", "text": str(part)}
    content = part.get("message_content")
    content = dict(content) if isinstance(content, dict) else dict(part)
    content.setdefault("type", "text")
    return content


def _tool_call(call: Any) -> Any:
    return call["tool_call"] if isinstance(call, dict) and isinstance(call.get("tool_call"), dict) else call


def _tools(attributes: Attributes) -> list[Any] | None:
    listed = unflattened(attributes, "llm.tools")
    schemas = [tool["tool"].get("json_schema") for tool in listed if isinstance(tool, dict) and "tool" in tool
               and isinstance(tool["tool"], dict)]  # fmt: skip
    return [schema for text in schemas if isinstance(schema := decoded(text), dict)] or None


def _first_text(item: Any) -> str:
    while isinstance(item, dict) and item:
        item = next(iter(item.values()))
    return item if isinstance(item, str) else ""
