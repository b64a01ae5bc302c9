"""Ids of calls that a provider gives none."""

from __future__ import annotations

from windowpane.models.wire.gemini import content_blocks
from windowpane.models.wire.messages import BlockSpec, call_spec, text_specs
from windowpane.sources.conversations.diff import CallIds


def called(name: str, call_id: str | None = None) -> BlockSpec:
    return call_spec(call_id, name, {"path": "a"})


def answered(name: str) -> BlockSpec:
    response = {"functionResponse": {"name": name, "response": {"output": "text"}}}
    (spec,) = content_blocks({"role": "user", "parts": [response]})
    return spec


def test_results_answer_the_calls_of_their_tool_in_order() -> None:
    ids = CallIds()
    calls = [ids.id_of(called(name)) for name in ("read", "list", "read")]

    assert calls == ["read-1", "list-1", "read-2"]
    assert [ids.id_of(answered(name)) for name in ("list", "read", "read")] == ["list-1", "read-1", "read-2"]
    assert ids.id_of(called("read", "7")) == "7"


def test_a_call_that_was_never_answered_takes_no_later_result() -> None:
    ids = CallIds()
    ids.id_of(called("read"))
    (message,) = text_specs("user_message", "Stop.")

    assert ids.id_of(message) is None
    assert ids.id_of(answered("read")) is None
    assert ids.id_of(called("read")) == "read-2"
    assert ids.id_of(answered("read")) == "read-2"
