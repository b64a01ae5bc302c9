"""Conversations in the format of Gemini, as its clients and other programs write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sources.conversations.conftest import Agent

from windowpane.models.wire.calls import head_blocks, message_blocks, parse_call
from windowpane.models.wire.gemini import read_chunks
from windowpane.models.wire.replies import ReplyPart

DECLARATION = {"name": "read", "description": "Reads a file."}


def content(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def test_the_head_of_a_call_is_read_in_both_spellings() -> None:
    camel = {"contents": [], "systemInstruction": {"parts": [{"text": "Be brief."}]},
             "tools": [{"functionDeclarations": [DECLARATION]}, {"googleSearch": {}}]}  # fmt: skip
    snake = {"contents": [], "system_instruction": {"parts": [{"text": "Be brief."}]},
             "tools": [{"function_declarations": [DECLARATION]}, {"googleSearch": {}}]}  # fmt: skip
    one, other = (head_blocks(parse_call("gemini", body)) for body in (camel, snake))

    assert one == other
    assert [(spec.content_type, spec.tool_name) for spec in one] == [
        ("system_prompt", None), ("tool_definition", "read"), ("tool_definition", "googleSearch")
    ]  # fmt: skip


def test_the_parts_of_a_content_are_read() -> None:
    calls = content("model", {"text": "Hm.", "thought": True}, {"text": "I look."},
                    {"functionCall": {"name": "read", "args": {"path": "a"}}})  # fmt: skip
    results = content("user", {"functionResponse": {"id": "7", "name": "read", "response": {"output": "text"}}},
                      {"inlineData": {"mimeType": "image/png", "data": "AAAA"}})  # fmt: skip

    assert [(spec.content_type, spec.text) for spec in message_blocks("gemini", calls)] == [
        ("thinking", "Hm."), ("assistant_response", "I look."), ("tool_call", '{"path": "a"}')
    ]  # fmt: skip
    assert [(spec.content_type, spec.text, spec.tool_call_id) for spec in message_blocks("gemini", results)] == [
        ("tool_result", "text", "7"), ("media", None, None)
    ]  # fmt: skip
    assert message_blocks("gemini", "Hello")[0].content_type == "user_message"


def test_a_stream_is_one_reply() -> None:
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
             "cachedContentTokenCount": 40}  # fmt: skip
    chunks = [
        {"candidates": [{"content": content("model", {"text": "On "})}],
         "usageMetadata": {"promptTokenCount": 100}},
        {"candidates": [{"content": content("model", {"text": "it."}), "finishReason": "STOP"}],
         "usageMetadata": usage, "responseId": "r"},
    ]  # fmt: skip
    reply = read_chunks(chunks)

    assert reply.parts == (ReplyPart("assistant_response", "On it."),)
    assert reply.usage is not None
    assert (reply.usage.input_total, reply.usage.cache_read_tokens) == (100, 40)
    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (12, 7)
    assert (reply.stop_reason, reply.response_id) == ("STOP", "r")


def test_a_blocked_prompt_is_a_reply_without_content() -> None:
    assert read_chunks([{"promptFeedback": {"blockReason": "SAFETY"}}]).parts == ()
    assert read_chunks([{"candidates": [{"finishReason": "MAX_TOKENS"}]}]).stop_reason == "MAX_TOKENS"


def test_a_reply_that_is_sent_back_chunk_by_chunk_is_not_added_twice(agent_of: Callable[..., Agent]) -> None:
    agent = agent_of(shape="gemini")
    asked = content("user", {"text": "Read a"})
    agent.send([asked], {"candidates": [{"content": content("model", {"text": "It has ten lines of text."})}]})
    pieces = [content("model", {"text": "It has ten "}), content("model", {"text": "lines of text."})]
    agent.send([asked, *pieces, content("user", {"text": "Read b"})])

    assert [text for _, text in agent.window()] == ["Read a", "It has ten lines of text.", "Read b"]
