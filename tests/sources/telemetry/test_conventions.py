"""Every convention, as its real instrumentation writes it, gives the same calls."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from recordings import NAMES, assembled, items

from windowpane.models.wire.traced import message_of, messages_of
from windowpane.sources.telemetry import json_bodies, openinference, protobuf_bodies
from windowpane.sources.telemetry.gen_ai import read_call
from windowpane.sources.telemetry.json_bodies import traces_of
from windowpane.sources.telemetry.reported_call import AssembledCall

WITHOUT_CONTENT = {"otel_openai_usage_only"}
WITHOUT_CACHE = {"otel_openai_events", "otel_openai_structured", "otel_openai_usage_only"}
SYSTEM = "You are a careful weather guide. Answer briefly and name the path to take."
FIRST = "What is the weather in Oslo today, and which path should we take?"
SECOND = "And tomorrow, would you take the same path again?"


def calls(name: str) -> list[AssembledCall]:
    return [one for one in assembled(items(name)) if isinstance(one, AssembledCall)]


def shape(call: AssembledCall) -> list[tuple[str, list[str]]]:
    return [
        (message["role"], [part["type"] for part in message["content"]])
        for message in call.call.messages or ()
        if message["role"] != "system"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_each_call_counts_once_with_its_usage(name: str) -> None:
    read = [(one.call.usage.input_total, one.call.usage.output_tokens) for one in calls(name) if one.call.usage]

    assert read == [(150, 11), (200, 12), (250, 13)]
    assert all(one.ended_at > one.started_at > 1_700_000_000 for one in calls(name))


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_CACHE))
def test_the_cache_is_part_of_the_input(name: str) -> None:
    for one in calls(name):
        assert one.call.usage is not None
        assert one.call.usage.cache_read_tokens == 40
        assert one.call.usage.cache_write_tokens == (20 if "anthropic" in name else 0)


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_CONTENT))
def test_prompts_and_replies_are_read(name: str) -> None:
    first, second, third = calls(name)

    assert shape(first) == [("user", ["text"])]
    assert shape(second) == [("user", ["text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert shape(third)[3:] == [("assistant", ["text"]), ("user", ["text"])]
    assert third.call.messages is not None
    assert third.call.messages[-1]["content"][0]["text"] == SECOND
    system = third.call.system or third.call.messages[0]["content"]
    assert system[0]["text"] == SYSTEM
    assert first.call.reply is not None
    (called,) = first.call.reply
    assert (called.kind, called.tool_name, called.text.replace(" ", "")) == (
        "tool_call", "weather", '{"city":"Oslo"}',
    )  # fmt: skip
    result = second.call.messages[-1]["content"][0]  # type: ignore[index]
    assert result["tool_use_id"] == called.tool_call_id
    assert "Oslo: sunny, 21 degrees" in str(result["content"])
    assert [part.text for part in third.call.reply or ()] == [
        "Answer number 3: it is sunny, take the north path."
    ]


@pytest.mark.parametrize("name", sorted(WITHOUT_CONTENT))
def test_events_without_content_are_no_messages(name: str) -> None:
    assert [one.call.messages for one in calls(name)] == [None, None, None]
    assert [one.call.reply for one in calls(name)] == [None, None, None]


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_arrival_does_not_matter(name: str) -> None:
    sent = list(items(name))
    expected = [(one.call, one.started_at, one.agent) for one in calls(name)]
    for number in range(6):
        shuffled = sent.copy()
        random.Random(number).shuffle(shuffled)
        read = [one for one in assembled(shuffled) if isinstance(one, AssembledCall)]

        assert [(one.call, one.started_at, one.agent) for one in read] == expected


@pytest.mark.parametrize(
    ("name", "model", "agent", "conversation"),
    [
        ("vercel_proto", "gpt-4o-2024-08-06", "weather-guide", "chat-77"),
        ("openllmetry_anthropic", "claude-sonnet-4-5-20250929", "weather-app", ""),
        ("otel_google_genai", "gemini-2.5-flash", "weather-app", ""),
    ],
)
def test_model_agent_and_conversation(name: str, model: str, agent: str, conversation: str) -> None:
    for one in calls(name):
        assert (one.call.model, one.agent, one.call.conversation) == (model, agent, conversation)


OLD_OPENLLMETRY = {
    "llm.request.type": "chat",
    "gen_ai.system": "OpenAI",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": SYSTEM,
    "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": '[{"type": "text", "text": "Hello"}]',
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "call_1", "gen_ai.prompt.2.tool_calls.0.name": "weather",
    "gen_ai.prompt.2.tool_calls.0.arguments": '{"city": "Oslo"}',
    "gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.tool_call_id": "call_1", "gen_ai.prompt.3.content": "Sunny.",
    "gen_ai.prompt.10.role": "user", "gen_ai.prompt.10.content": "Thanks",
    "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Bye.",
    "gen_ai.completion.0.finish_reason": "stop",
    "llm.request.functions.0.name": "weather", "llm.request.functions.0.parameters": '{"type": "object"}',
    "gen_ai.usage.prompt_tokens": 90, "gen_ai.usage.completion_tokens": "7",
    "gen_ai.usage.cache_read_input_tokens": 20,
}  # fmt: skip


def test_openllmetry_with_flattened_prompts() -> None:
    call = read_call(OLD_OPENLLMETRY)

    assert call.messages is not None
    assert [message["role"] for message in call.messages] == ["system", "user", "assistant", "user", "user"]
    assert call.messages[1]["content"] == [{"type": "text", "text": "Hello"}]
    assert call.messages[3]["content"][0]["tool_use_id"] == "call_1"
    assert call.tools == [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    assert [part.text for part in call.reply or ()] == ["Bye."]
    assert call.usage is not None
    assert (call.usage.input_total, call.usage.output_tokens, call.usage.cache_read_tokens) == (90, 7, 20)


LANGSMITH = {
    "langsmith.span.kind": "llm",
    "langsmith.metadata.thread_id": "thread-9",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.prompt": '{"messages": [[{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"],'
    ' "kwargs": {"content": "Hello"}}]]}',
    "gen_ai.completion": '{"generations": [[{"text": "Hi.", "message": {"lc": 1, "id": ["x", "AIMessage"],'
    ' "kwargs": {"content": "Hi.", "tool_calls": []}}}]]}',
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 3,
}


def test_langsmith_spans() -> None:
    call = read_call(LANGSMITH)

    assert call.messages == [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    assert [part.text for part in call.reply or ()] == ["Hi."]


def _span(name: str, attributes: dict[str, Any], *, parent: str = "") -> dict[str, Any]:
    return {
        "traceId": "a" * 32, "spanId": name * 16, "parentSpanId": parent * 16, "name": name,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
        "attributes": attributes,
    }  # fmt: skip


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 5},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"},
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.usage.input_tokens": 500,
            "gen_ai.usage.output_tokens": 9,
        },
        {"openinference.span.kind": "AGENT", "llm.token_count.prompt": 500},
        {"openinference.span.kind": "EMBEDDING"},
        {"traceloop.span.kind": "workflow", "gen_ai.usage.output_tokens": 4},
        {"ai.operationId": "ai.generateText", "ai.usage.inputTokens": 500, "gen_ai.usage.output_tokens": 4},
        {"ai.operationId": "ai.embed.doEmbed", "ai.usage.tokens": 10},
        {"http.request.method": "POST"},
    ],
)
def test_sums_and_other_spans_are_no_calls(attributes: dict[str, Any]) -> None:
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [_span("b", attributes)]}]}]}

    assert assembled([*traces_of(document).spans]) == []


@pytest.mark.parametrize(
    "value", [None, 7, True, [], {}, "plain", [None, 3], "[1, 2", {"parts": 3}, {"content": [[]]}]
)
def test_any_value_can_be_read_as_messages(value: Any) -> None:
    messages_of(value)
    message_of(value)
    message_of({"role": 3, "tool_calls": value, "content": value, "parts": value})


def test_messages_of_openinference_that_are_not_nested_are_read_too() -> None:
    call = openinference.read_call(
        {
            "llm.input_messages.0.content": "Migrate it",
            "llm.input_messages.1.message.role": "assistant",
            "llm.input_messages.1.message.content": "Done",
        }
    )

    assert call.messages is not None
    assert [message["role"] for message in call.messages] == ["user", "assistant"]
    assert "Migrate it" in str(call.messages[0])


@pytest.mark.parametrize("encoded", ["json", "protobuf"])
def test_the_attribute_names_an_event_before_the_field(encoded: str) -> None:
    """Codex writes `event otel/src/events/session_telemetry.rs:883` into the field."""
    record = {
        "eventName": "event otel/src/events/session_telemetry.rs:883",
        "attributes": [{"key": "event.name", "value": {"stringValue": "codex.sse_event"}}],
    }
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {"eventName": "gen_ai.choice"}]}]}]}
    if encoded == "json":
        telemetry = json_bodies.read_logs(json.dumps(document).encode())
    else:
        request = ParseDict(document, ExportLogsServiceRequest())
        telemetry = protobuf_bodies.read_logs(request.SerializeToString())

    assert [one.name for one in telemetry.logs] == ["codex.sse_event", "gen_ai.choice"]
