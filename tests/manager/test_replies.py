"""Replies of every provider's shape, as objects and as dictionaries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from windowpane.core.events import Usage
from windowpane.manager.content import returned_reply
from windowpane.models.wire.calls import read_reply
from windowpane.models.wire.replies import Reply
from windowpane.models.wire.usage import read_usage

CHAT = {
    "id": "x",
    "model": "gpt-5-2025-08-07",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I will look.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 1_000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 200},
        "completion_tokens_details": {"reasoning_tokens": 30},
    },
}
RESPONSES = {
    "model": "gpt-5",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I will look."}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a"}'},
    ],
    "usage": {
        "input_tokens": 1_000,
        "input_tokens_details": {"cached_tokens": 200},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30},
    },
}
ANTHROPIC = {
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-5",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "I will look."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
    ],
    "usage": {
        "input_tokens": 500,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 300,
        "output_tokens": 50,
    },
}


def as_object(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(
            **{key: item if key == "input" else as_object(item) for key, item in value.items()}
        )
    return [as_object(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("shape", [CHAT, RESPONSES, ANTHROPIC], ids=["chat", "responses", "anthropic"])
@pytest.mark.parametrize("form", [dict, as_object], ids=["dictionary", "object"])
def test_text_and_calls_are_read_from_every_shape(shape: dict[str, Any], form: Any) -> None:
    reply = read_reply(form(shape))
    spoken = [part.text for part in reply.parts if part.kind == "assistant_response"]
    calls = [(part.tool_call_id, part.tool_name) for part in reply.parts if part.kind == "tool_call"]

    assert spoken == ["I will look."]
    assert calls == [("c1", "read")]
    assert reply.usage is not None
    assert reply.usage.input_total == 1_000
    assert reply.model == shape["model"]


def test_cached_input_is_counted_once() -> None:
    """1,000 input tokens of which 200 were cached are 800 and 200; with writes 500, 200 and 300."""
    assert read_usage(CHAT["usage"]) == Usage(800, 50, 200, 0, 30)
    assert read_usage(RESPONSES["usage"]) == Usage(800, 50, 200, 0, 30, reasoning_retained=True)
    assert read_usage(ANTHROPIC["usage"]) == Usage(500, 50, 200, 300)


def test_what_was_written_to_the_cache_is_part_of_the_input() -> None:
    """OpenRouter, and OpenAI since it charges for that, state it beside what was read."""
    details = {"cached_tokens": 200, "cache_write_tokens": 300}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 50, "prompt_tokens_details": details}

    assert read_usage(usage) == Usage(500, 50, 200, 300)


def test_signed_thinking_is_kept_as_it_came() -> None:
    thinking = read_reply(ANTHROPIC).parts[0]

    assert thinking.kind == "thinking"
    assert thinking.raw == {"type": "thinking", "thinking": "hm", "signature": "sig"}


def test_reasoning_that_is_not_sent_back_is_not_kept() -> None:
    assert read_reply(RESPONSES).unread == ("reasoning",)


def test_the_manager_does_not_retain_unsigned_reasoning() -> None:
    message = {"role": "assistant", "content": "hello", "reasoning_content": "hm"}

    assert [part.text for part in read_reply(message).parts] == ["hm", "hello"]
    assert [part.text for part in returned_reply(message).parts] == ["hello"]
    assert returned_reply(ANTHROPIC).parts == read_reply(ANTHROPIC).parts


@pytest.mark.parametrize("reply", ["hello", {"role": "assistant", "content": "hello"}])
def test_a_plain_text_or_message_will_do(reply: Any) -> None:
    assert [part.text for part in read_reply(reply).parts] == ["hello"]


def test_an_empty_reply_has_no_parts() -> None:
    assert read_reply("") == Reply()
    assert read_reply({"choices": [{"message": {"role": "assistant", "content": None}}]}).parts == ()


@pytest.mark.parametrize("reply", [object(), 42, {"answer": "hello"}])
def test_anything_else_is_refused(reply: Any) -> None:
    with pytest.raises(TypeError, match=type(reply).__name__):
        read_reply(reply)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -5}, {"input_tokens": "many"}])
def test_impossible_usage_counts_nothing(usage: Any) -> None:
    found = read_usage(usage)

    assert found is None or found.input_total == 0


def test_a_cache_beside_the_prompt_is_added_to_it() -> None:
    usage = {
        "prompt_tokens": 400,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 6_000},
        "cache_creation_input_tokens": 50,
    }

    assert read_usage(usage) == Usage(400, 5, 6_000, 50)
    assert read_usage(usage | {"prompt_tokens": 6_450}) == Usage(400, 5, 6_000, 50)


def test_an_impossible_count_is_unknown() -> None:
    assert read_usage({"prompt_tokens": 10**30, "completion_tokens": 5}) == Usage(0, 5)
    assert read_usage({"input_tokens": 7, "output_tokens": 2**63}) == Usage(7)
