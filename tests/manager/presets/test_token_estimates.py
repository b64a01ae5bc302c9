"""Token estimates of messages, and reported usage."""

from __future__ import annotations

import base64

import pytest
from builders import filler, manager

from windowpane.core.events import PressureMeasured, TurnEnded, UsageRejected
from windowpane.manager.messages import openai_messages
from windowpane.manager.presets.preset import CharacterEstimate
from windowpane.testing import RecordingSink, chat_reply

PICTURE = "data:image/png;base64," + base64.b64encode(b"\x00" * 3_000_000).decode()


def test_the_manager_counts_an_image_flat() -> None:
    sink = RecordingSink()
    with manager(sink, limit=200_000) as window:
        image = {"type": "image_url", "image_url": {"url": PICTURE}}
        window.add_user([{"type": "text", "text": "look"}, image, image])
        window.on_turn_start()

        assert window.status().used_tokens == 1 + 2 * 1_000


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
