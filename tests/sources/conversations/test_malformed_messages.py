"""A text instead of a list of tool calls is not read character by character."""

from __future__ import annotations

import pytest

from windowpane.models.wire.calls import message_blocks, read_reply

LONG = "x" * 1_000_000


@pytest.mark.timeout(30)
def test_a_text_of_tool_calls_is_not_a_list_of_them() -> None:
    message = {"role": "assistant", "content": "done", "tool_calls": LONG}
    reply = {"choices": [{"message": message, "finish_reason": "stop"}]}

    assert [spec.content_type for spec in message_blocks("chat", message)] == ["assistant_response"]
    assert [part.kind for part in read_reply(reply).parts] == ["assistant_response"]


@pytest.mark.parametrize("kind", [["image"], {"a": 1}, 7, None])
def test_a_part_of_an_odd_type_is_not_an_error(kind: object) -> None:
    part = {"type": kind, "text": "a"}
    message = {"role": "tool", "tool_call_id": "c", "content": [part]}

    (spec,) = message_blocks("chat", message)
    assert (spec.content_type, spec.text, spec.media) == ("tool_result", "a", 0)
