"""A conversation that started elsewhere: taken in through the managers, and repaired where it is broken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from builders import is_valid, manager, sent
from hypothesis import given
from hypothesis import strategies as st

from windowpane.agents.managers import AsyncContextWindowManager
from windowpane.core.events import HistoryRepaired
from windowpane.core.window.repair import ABORTED
from windowpane.exceptions import ConfigurationError
from windowpane.manager.history import repair_history
from windowpane.testing import RecordingSink, in_memory_dependencies

PICTURE = "A" * 3_000_000


def call(*ids: str, text: str | None = None) -> dict[str, Any]:
    calls = [{"id": name, "type": "function", "function": {"name": "run", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(name: str, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def uses(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": n, "name": "run", "input": {}} for n in ids],
    }


def answers(*ids: str, text: str = "") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": n, "content": f"found {n}"} for n in ids
    ]
    return {"role": "user", "content": [*parts, *([{"type": "text", "text": text}] if text else [])]}


def repaired(sink: RecordingSink) -> dict[str, int]:
    return {event.repair: event.count for event in sink.of(HistoryRepaired)}


WHOLE = {
    "openai": [
        {"role": "system", "content": "You are careful."},
        user("Port the parser"),
        call("a", "b", text="looking"),
        result("a", "alpha"),
        result("b", "beta"),
        {"role": "assistant", "content": "done"},
    ],
    "anthropic": [
        {"role": "user", "content": "Port the parser"},
        uses("a", "b"),
        answers("a", "b", text="and hurry"),
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ],
}


@pytest.mark.parametrize("shape", list(WHOLE))
def test_a_valid_history_is_added_unchanged(shape: str) -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        assert window.add_messages(WHOLE[shape]) == {}
        assert is_valid(window)
        assert window.task.goal == "Port the parser"
        if shape == "openai":
            assert [message["role"] for message in window.messages()] == [
                "system", "user", "assistant", "tool", "tool", "assistant",
            ]  # fmt: skip
            assert window.messages()[3:5] == [result("a", "alpha"), result("b", "beta")]
        else:
            assert window.messages("anthropic").messages == [
                {"role": "user", "content": [{"type": "text", "text": "Port the parser"}]},
                *WHOLE["anthropic"][1:],
            ]
    assert repaired(sink) == {}


BROKEN: dict[str, tuple[list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "openai": (
        [
            result("z", "orphan"),
            user("go"),
            call("a", "b"),
            result("a"),
            result("a", "second"),
            user("next"),
            {"role": "function", "content": "old"},
            {"role": "assistant", "content": "ok"},
        ],
        {"orphan_result": 1, "duplicate_result": 1, "aborted_result": 1, "unreadable_message": 1},
        {"orphan_result": 1, "duplicate_result": 1, "dropped_call": 1, "unreadable_message": 1},
    ),
    "anthropic": (
        [
            answers("z", text="go"),
            uses("a", "b"),
            answers("a", "a", text="next"),
            {"role": "assistant", "content": "ok"},
        ],
        {"orphan_result": 1, "duplicate_result": 1, "aborted_result": 1},
        {"orphan_result": 1, "duplicate_result": 1, "dropped_call": 1},
    ),
}


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("shape", list(BROKEN))
def test_a_broken_history_is_repaired_counted_and_reported(shape: str, drop: bool) -> None:
    history, answered, dropped = BROKEN[shape]
    sink = RecordingSink()
    with manager(sink) as window:
        done = window.add_messages(history, unanswered="drop" if drop else "answer")

        assert is_valid(window)
        assert done == (dropped if drop else answered)
        assert (ABORTED in sent(window)) is not drop
        assert "orphan" not in sent(window)
    assert repaired(sink) == done


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("answered", [(), ("a",)])
@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_calls_at_the_open_end_wait_for_their_results(shape: str, answered: tuple[str, ...], drop: bool) -> None:
    if shape == "openai":
        history = [user("go"), call("a", "b"), *map(result, answered)]
    else:
        history = [user("go"), uses("a", "b"), *([answers(*answered)] if answered else [])]
    sink = RecordingSink()
    with manager(sink) as window:
        assert window.add_messages(history, unanswered="drop" if drop else "answer") == {}
        for name in "ab"[len(answered) :]:
            window.on_tool_result("run", f"late {name}", name)

        assert is_valid(window)
        assert "late b" in sent(window)
        assert ABORTED not in sent(window)
    assert repaired(sink) == {}


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with manager(RecordingSink()) as window, pytest.raises(ConfigurationError, match="answer or drop"):
        window.add_messages([user("go")], unanswered="ignore")  # type: ignore[arg-type]


def test_an_async_manager_accepts_a_history_too() -> None:
    async def go() -> dict[str, int]:
        dependencies = in_memory_dependencies(RecordingSink())
        async with AsyncContextWindowManager(
            agent="a", model="m", limit_tokens=50_000, dependencies=dependencies
        ) as window:
            return await window.add_messages([user("go"), result("z")])

    assert asyncio.run(go()) == {"orphan_result": 1}


MESSAGES = st.lists(
    st.one_of(
        st.just(user("u")),
        st.just({"role": "assistant", "content": "a"}),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True).map(lambda ids: call(*ids)),
        st.sampled_from("abcd").map(result),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True).map(lambda ids: uses(*ids)),
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=2).map(lambda ids: answers(*ids, text="t")),
    ),
    max_size=10,
)


def test_a_call_id_that_is_used_again_keeps_the_last_call_open() -> None:
    with manager(RecordingSink()) as window:
        assert window.add_messages([user("go"), call("a"), call("a")]) == {"aborted_result": 1}
        window.on_tool_result("read", "the text", "a")

        assert is_valid(window)
        assert [message["content"] for message in window.messages() if message["role"] == "tool"] == [
            "[no result: the call was aborted]",
            "the text",
        ]


@given(MESSAGES, st.booleans())
def test_sent_messages_are_valid_for_any_history(history: list[dict[str, Any]], drop: bool) -> None:
    with manager(RecordingSink()) as window:
        window.add_messages(history, unanswered="drop" if drop else "answer")
        window.add_user("and now?")

        assert is_valid(window)


@given(MESSAGES, st.booleans())
def test_a_repair_does_not_change_its_input(history: list[dict[str, Any]], drop: bool) -> None:
    before = repr(history)
    repair_history(history, unanswered="drop" if drop else "answer")

    assert repr(history) == before


def test_an_image_in_a_tool_s_output_is_sent_and_counted_flat() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    with manager(RecordingSink(), limit=200_000) as window:
        window.add_messages([user("go"), uses("a")])
        window.on_tool_result("screenshot", [{"type": "text", "text": "the page"}, image], "a")
        window.on_turn_start()

        assert is_valid(window)
        assert 1_000 < window.status().used_tokens < 1_050
        shown = window.messages("anthropic").messages[-1]["content"][0]["content"]
        assert shown == [{"type": "text", "text": "the page\n[image]"}, image]
        assert window.messages()[-2]["content"] == "the page\n[image]"
        address = {"url": f"data:image/png;base64,{PICTURE}"}
        assert window.messages()[-1]["content"][1] == {"type": "image_url", "image_url": address}


def test_an_image_is_removed_with_its_result() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    with manager(RecordingSink(), limit=8_192) as window:
        window.add_user("go")
        for n in range(12):
            window.on_turn_start()
            window.on_turn_end(call(f"c{n}"))
            window.on_tool_result("screenshot", [{"type": "text", "text": f"page {n}"}, image], f"c{n}")
        window.on_turn_start()

        assert is_valid(window)
        assert 0 < sent(window).count(PICTURE) < 8
        assert window.status().used_tokens < 8_192
