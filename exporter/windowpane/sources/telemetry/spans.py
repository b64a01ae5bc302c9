"""The statements of one span: the call that it reports, its conversation and its agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from windowpane.models.wire.traced import decoded
from windowpane.sources.telemetry import coding_agents, gen_ai, openinference, vercel
from windowpane.sources.telemetry.attributes import text_of
from windowpane.sources.telemetry.records import Attributes, Span
from windowpane.sources.telemetry.reported_call import ReportedCall

CONVERSATION_NAMES: Final = (
    "gen_ai.conversation.id", "session.id", "gen_ai.thread.id", "thread.id", "thread_id", "conversation.id",
    "conversation_id", "session_id", "langsmith.trace.session_id", "langsmith.metadata.thread_id",
    "langsmith.metadata.session_id", "langsmith.metadata.conversation_id", "langfuse.session.id",
    "traceloop.association.properties.session_id", "traceloop.association.properties.thread_id",
    "traceloop.association.properties.conversation_id", "traceloop.association.properties.chat_id",
    "ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.threadId", "ai.telemetry.metadata.conversationId",
    "ai.telemetry.metadata.chatId", "ai.telemetry.metadata.session_id", "ai.telemetry.metadata.thread_id",
)  # fmt: skip
"""Attributes that name a conversation, the most specific first."""
AGENT_NAMES: Final = ("gen_ai.agent.name", "agent.name", "langsmith.metadata.agent_name")
_METADATA: Final = ("thread_id", "session_id", "conversation_id")
_NAMING: Final = frozenset({*CONVERSATION_NAMES, "metadata"})
"""Attributes of which at least one is needed to name a conversation: most spans have none."""


@dataclass(slots=True)
class SpanFacts:
    """The statements of a span about itself and the spans below it."""

    conversation: str
    agent: str
    call: ReportedCall | None


def facts_of(span: Span) -> SpanFacts:
    """Return the statements of *span*."""
    attributes = span.attributes
    call = read_call(span)
    if call is not None:
        call.error = span.error
    return SpanFacts(
        (call.conversation if call is not None else "") or conversation_of(attributes),
        (call.agent if call is not None else "") or agent_of(attributes),
        call,
    )


def read_call(span: Span) -> ReportedCall | None:
    """Return the call that *span* reports; None for a span beside or around calls."""
    attributes = span.attributes
    if span.name == coding_agents.LLM_REQUEST:
        return coding_agents.claude_call(attributes)
    if vercel.is_reported(attributes):
        return vercel.read_call(attributes) if vercel.is_call(attributes) else None
    if "openinference.span.kind" in attributes:
        return openinference.read_call(attributes) if openinference.is_call(attributes) else None
    if not gen_ai.is_call(attributes):
        return None
    call = gen_ai.read_call(attributes)
    if span.events:
        gen_ai.complete_from_events(call, ((event.name, event.attributes, None) for event in span.events))
    return call


def conversation_of(attributes: Attributes) -> str:
    """Return the conversation that the attributes name; empty where they name none."""
    if _NAMING.isdisjoint(attributes):
        return ""
    name = text_of(attributes, *CONVERSATION_NAMES)
    if name or "metadata" not in attributes:
        return name
    metadata: Any = decoded(attributes["metadata"])
    return text_of(metadata, *_METADATA) if isinstance(metadata, Mapping) else ""


def agent_of(attributes: Attributes) -> str:
    """Return the agent that the attributes name; empty where they name none."""
    if attributes.get("traceloop.span.kind") == "agent":
        name = text_of(attributes, *AGENT_NAMES, "traceloop.entity.name")
    else:
        name = text_of(attributes, *AGENT_NAMES)
    return name or text_of(attributes, "ai.telemetry.functionId")


def service_of(resource: Attributes) -> str:
    """Return the name of the process that sent a span; empty for a default name."""
    service = text_of(resource, "service.name")
    return "" if service.startswith("unknown_service") else service
