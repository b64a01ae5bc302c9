"""Messages in the attributes of spans, read part by part."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.models.wire.traced import message_of, messages_of

TEXTS = st.text(max_size=5)
PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_call", "tool_call_response", "other"])},
    optional={
        "content": TEXTS,
        "id": TEXTS,
        "name": TEXTS,
        "arguments": st.dictionaries(TEXTS, st.integers(0, 9)),
    },
)
MESSAGES = (
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system"])},
        optional={"parts": st.lists(PARTS, max_size=3), "content": TEXTS},
    )
    | TEXTS
    | st.none()
)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"result": "21 degrees"}, "21 degrees"),
        ({"output": "21 degrees"}, "21 degrees"),
        ({"result": {"celsius": 21}}, '{"result": {"celsius": 21}}'),
        ({"result": "21", "unit": "C"}, '{"result": "21", "unit": "C"}'),
    ],
)
def test_a_result_that_a_client_wraps_is_its_text(response: Any, text: str) -> None:
    """Only an object with one field of text is a wrapper, as for observed clients."""
    part = {"type": "tool_call_response", "id": "call-1", "response": response}
    (result,) = message_of({"role": "tool", "parts": [part]})["content"]

    assert result["content"] == text


@given(st.lists(MESSAGES, max_size=6))
def test_the_text_of_a_list_is_read_as_the_list(items: list[Any]) -> None:
    text = json.dumps(items)

    assert messages_of(text) == messages_of(items) == messages_of(text)


@pytest.mark.parametrize(
    "text", ["[", '[{"role": "user"', "[1, nul]", '[{"a": "\\ud800"}]', "[[]]", "[]", "[" * 2_000]
)
def test_text_that_is_no_list_of_messages_is_one_message(text: str) -> None:
    expected = [] if text in ("[]", "[[]]") else [{"role": "user", "content": text}]

    assert messages_of(text) == expected
