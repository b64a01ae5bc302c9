"""Messages in the attributes of spans, read part by part."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.telemetry.messages import message_of


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
