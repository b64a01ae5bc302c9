"""Token estimates of messages, and reported usage."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from builders import filler, manager

from windowpane.core.events import PressureMeasured, TurnEnded, UsageRejected
from windowpane.manager.messages import openai_messages
from windowpane.manager.presets.picoclaw import (
    MEDIA_TOKENS,
    estimate_message_tokens,
    estimate_tool_definition_tokens,
)
from windowpane.manager.presets.preset import CharacterEstimate
from windowpane.testing import RecordingSink, chat_reply

PICTURE = "data:image/png;base64," + base64.b64encode(b"\x00" * 3_000_000).decode()


def count(**message: Any) -> int:
    return estimate_message_tokens({"role": "assistant", "content": "", **message})


def call(arguments: Any = "{}") -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": arguments}}


def test_an_empty_message_costs_its_structure() -> None:
    assert count() == 12 * 2 // 5


def test_tool_calls_add_to_the_text() -> None:
    assert count(content="hi", tool_calls=[call()]) > count(content="hi")
    assert count(tool_calls=[{"id": "1", "name": "read_file"}]) > count(tool_calls=[{"id": "1"}])


def test_long_arguments_count_in_full() -> None:
    """5,000 characters of arguments are at least 2,000 tokens at two and a half characters a token."""
    assert count(tool_calls=[call("x" * 5_000)]) >= 2_000


def test_reasoning_adds() -> None:
    assert count(content="hi", reasoning_content="because " * 50) > count(content="hi") + 100


def test_images_are_flat_and_their_bytes_never_count() -> None:
    image = {"type": "image_url", "image_url": {"url": PICTURE}}
    text = {"type": "text", "text": "look"}
    plain = estimate_message_tokens({"role": "user", "content": "look"})
    two = estimate_message_tokens({"role": "user", "content": [text, image, image]})
    inside = estimate_message_tokens(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [text, image]}]}
    )

    assert two == plain + 2 * MEDIA_TOKENS
    assert inside == plain + MEDIA_TOKENS
    assert count(media=[PICTURE]) == count() + MEDIA_TOKENS


def test_the_manager_counts_an_image_flat() -> None:
    sink = RecordingSink()
    with manager(sink, limit=200_000) as window:
        image = {"type": "image_url", "image_url": {"url": PICTURE}}
        window.add_user([{"type": "text", "text": "look"}, image, image])
        window.on_turn_start()

        assert window.status().used_tokens == 1 + 2 * 1_000


def test_parts_of_a_system_prompt_stand_instead_of_it() -> None:
    whole = count(content="x" * 1_000)
    parts = [{"text": "x" * 500}, {"text": "x" * 500}]

    assert count(content="x" * 1_000, system_parts=parts) == (1_000 + 2 * 20 + 12) * 2 // 5
    assert whole < count(content="x" * 1_000, system_parts=parts) < 2 * whole
    assert count(content="x" * 1_000, system_parts=[{"text": "short"}]) == whole


def test_tool_definitions_count_and_none_costs_nothing() -> None:
    tool = {"function": {"name": "f", "description": "does it", "parameters": {"type": "object"}}}

    assert estimate_tool_definition_tokens([]) == 0
    assert estimate_tool_definition_tokens([tool] * 3) > estimate_tool_definition_tokens([tool]) > 0


def test_characters_outside_ascii_count_as_themselves() -> None:
    assert count(content="你好世界") > count()
    assert count(tool_calls=[call({"path": "文件" * 100})]) < count(tool_calls=[call({"path": "x" * 300})])


@pytest.mark.parametrize(("characters", "tokens"), [(4_000, 1_000), (20_000, 5_000), (0, 0)])
def test_four_characters_a_token(characters: int, tokens: int) -> None:
    assert CharacterEstimate(4).count("x" * characters) == tokens


def test_cached_tokens_of_earlier_calls_are_not_summed() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        for _ in range(3):
            window.on_turn_start()
            reply = chat_reply("ok")
            reply["usage"] = {
                "prompt_tokens": 10_000,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 9_000},
            }
            window.on_turn_end(reply)
    final = [one.used_tokens for one in sink.of(PressureMeasured) if one.phase == "final"]

    assert final == [10_000] * 3


def test_a_report_above_the_given_window_is_not_believed() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_user("hello")
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok", input_tokens=50_000))

        assert window.status().used_tokens < 100
    assert [event.reported_tokens for event in sink.of(UsageRejected)] == [50_000]
    assert sink.of(TurnEnded)[0].count_source != "usage"


def test_what_came_after_the_last_reply_is_added_to_the_report() -> None:
    """The provider counted up to its reply; a tool result since then is estimated on top."""
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("c", "f", "{}")], input_tokens=5_000, output_tokens=10))
        window.on_tool_result("f", filler(2_000), "c")
        window.on_turn_start()

        assert 7_000 <= window.status().used_tokens <= 7_050


def test_encrypted_reasoning_takes_no_room() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_turn_start()
        before = window.status().used_tokens
        window.on_turn_end(
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "encrypted_content": "QUJD" * 20_000},
                    {"type": "message", "content": [{"type": "output_text", "text": "ok"}]},
                ],
            }
        )
        window.on_turn_start()

        assert window.status().used_tokens - before < 10
        assert openai_messages(window._engine.tracker.window, {})[-1]["content"] == "ok"
