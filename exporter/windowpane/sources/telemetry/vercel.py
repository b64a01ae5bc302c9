"""The Vercel AI SDK: `ai.prompt.messages`, `ai.response.…`, `ai.usage.…`.

Its outer spans (`ai.generateText`) repeat the usage of the inner ones, one of which is each model call.
"""

from __future__ import annotations

from typing import Any, Final

from windowpane.models.wire.replies import ReplyPart
from windowpane.models.wire.traced import decoded, message_of, messages_of, reply_parts, tools_of
from windowpane.models.wire.usage import VERCEL
from windowpane.sources.telemetry.attributes import first_of, text_of
from windowpane.sources.telemetry.records import Attributes
from windowpane.sources.telemetry.reported_call import ReportedCall

CALLS: Final = (".doGenerate", ".doStream")
OPENCODE: Final = "opencode"
"""The agent whose calls state in their headers the session that started theirs."""
OPENCODE_PARENT: Final = "ai.request.headers.x-parent-session-id"
OPENCODE_SIDE: Final = "side"
"""The part of a session that its calls without tools belong to, such as the one that writes its title."""


def is_reported(attributes: Attributes) -> bool:
    """Return whether the attributes are of this convention."""
    return isinstance(attributes.get("ai.operationId"), str)


def is_call(attributes: Attributes) -> bool:
    """Return whether the attributes are those of one model call."""
    return str(attributes.get("ai.operationId")).endswith(CALLS)


def read_call(attributes: Attributes) -> ReportedCall:
    """Return the call that the attributes report."""
    prompt = attributes.get("ai.prompt.messages")
    tools = attributes.get("ai.prompt.tools")
    call = ReportedCall(
        "vercel",
        text_of(attributes, "ai.response.model", "ai.model.id", "gen_ai.response.model", "gen_ai.request.model"),
        messages=None if prompt is None else messages_of(prompt),
        tools=None if tools is None else tools_of(tools),
        reply=_reply(attributes),
        usage=VERCEL.read(attributes),
        response_id=text_of(attributes, "ai.response.id", "gen_ai.response.id"),
        stop_reason=first_of(attributes.get("ai.response.finishReason")),
    )
    if text_of(attributes, "ai.request.headers.User-Agent").startswith(f"{OPENCODE}/"):
        call.agent = OPENCODE
        call.parent = text_of(attributes, OPENCODE_PARENT)
        call.part = "" if tools else OPENCODE_SIDE
    return call


def _reply(attributes: Attributes) -> tuple[ReplyPart, ...] | None:
    text = next(
        (value for name in ("ai.response.text", "ai.response.object")
         if isinstance(value := attributes.get(name), str) and value),
        None,
    )  # fmt: skip
    calls: Any = decoded(attributes.get("ai.response.toolCalls"))
    if text is None and not isinstance(calls, list):
        return None
    parts: list[ReplyPart] = []
    reasoning = attributes.get("ai.response.reasoning")
    if isinstance(reasoning, str) and reasoning:
        parts.append(ReplyPart("thinking", reasoning))
    if text is not None:
        parts.append(ReplyPart("assistant_response", text))
    if isinstance(calls, list):
        parts += reply_parts(message_of({"role": "assistant", "content": None, "tool_calls": _calls(calls)}))
    return tuple(parts)


def _calls(calls: list[Any]) -> list[Any]:
    return [{**call, "id": call.get("toolCallId")} for call in calls if isinstance(call, dict)]
