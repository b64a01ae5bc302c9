"""Boundaries at which a history may be cut, and the repair of broken histories."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_rules import openai_faults

from windowpane.core.window.boundaries import (
    exchange_starts,
    is_pair_safe,
    safe_boundary,
)
from windowpane.core.window.repair import ABORTED, repair

U = {"role": "user", "content": "u"}
A = {"role": "assistant", "content": "a"}


def call(*ids: str, text: str | None = None) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(call_id: str, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


C, T = call("1"), result("1")


@pytest.mark.parametrize(
    ("history", "starts"),
    [
        pytest.param([], [], id="empty"),
        pytest.param([U, A, U, A], [0, 2], id="two_exchanges"),
        pytest.param([U, C, T, A, U, A], [0, 4], id="tools_in_the_first"),
        pytest.param([U, C, T, C, T, A], [0], id="several_tool_rounds"),
        pytest.param([A, C, T], [], id="no_user"),
        pytest.param([C, T, A, U, A], [3], id="leading_tools"),
    ],
)
def test_exchanges_start_at_user_messages(history: list[Any], starts: list[int]) -> None:
    assert exchange_starts(history) == starts


@pytest.mark.parametrize(
    ("history", "target", "cut"),
    [
        pytest.param([], 0, 0, id="empty"),
        pytest.param([U, A], 0, 0, id="target_0"),
        pytest.param([U, A], 5, 2, id="beyond_the_end"),
        pytest.param([U, A, U, A], 2, 2, id="on_a_user"),
        pytest.param([U, A, U, A], 3, 2, id="on_the_answer"),
        pytest.param([U, A, U, call("1", "2"), T, result("2"), A], 5, 2, id="among_results"),
        pytest.param([C, T, A, U], 1, 3, id="forward"),
        pytest.param([U, A, U, C, T, C, T, A], 5, 2, id="chain"),
        pytest.param([A, A, C, T, A], 3, 2, id="no_user_stays_pair_safe"),
        pytest.param([U, C, T, A], 2, 0, id="single_exchange"),
        pytest.param([U, A, U, C, T, C, T, C, T, A], 6, 2, id="long_chain"),
        pytest.param([U, A, U, C, T, A, U, A], 4, 2, id="three_exchanges"),
        pytest.param([U, C, T, C, T, A, U, A], 3, 6, id="chained_first"),
    ],
)
def test_a_cut_snaps_to_a_safe_position(history: list[Any], target: int, cut: int) -> None:
    assert safe_boundary(history, target) == cut


@pytest.mark.parametrize(
    ("history", "expected", "repairs"),
    [
        pytest.param([], [], {}, id="empty"),
        pytest.param([U, C, T], [U, C, T], {}, id="single_pair"),
        pytest.param(
            [U, call("1", "2"), result("2"), T],
            [U, call("1", "2"), T, result("2")],
            {},
            id="several_calls",
        ),
        pytest.param([T, U, A], [U, A], {"orphan_result": 1}, id="leading_orphan"),
        pytest.param([U, T, A], [U, A], {"orphan_result": 1}, id="after_a_user"),
        pytest.param([U, A, T], [U, A], {"orphan_result": 1}, id="after_a_plain_answer"),
        pytest.param([U, A, C, T], [U, A, C, T], {}, id="calls_after_an_answer_are_kept"),
        pytest.param([U, C, T, C, T], [U, C, T, C, T], {}, id="two_rounds"),
        pytest.param(
            [U, call("1", "2"), T, result("2"), call("3", "4"), result("3"), result("4")],
            [U, call("1", "2"), T, result("2"), call("3", "4"), result("3"), result("4")],
            {},
            id="several_rounds_of_several",
        ),
        pytest.param(
            [U, C, result("1", "first"), result("1", "second")],
            [U, C, result("1", "first")],
            {"duplicate_result": 1},
            id="first_result_wins",
        ),
        pytest.param([U, C, T, A, C, T], [U, C, T, A, C, T], {}, id="id_used_again"),
        pytest.param([U, C, T, result("")], [U, C, T], {"orphan_result": 1}, id="empty_id"),
        pytest.param(
            [U, call("1", "2"), T],
            [U, call("1", "2"), T, result("2", ABORTED)],
            {"aborted_result": 1},
            id="one_of_two_answered",
        ),
        pytest.param([U, C, A], [U, C, result("1", ABORTED), A], {"aborted_result": 1}, id="unanswered"),
        pytest.param(
            [U, C, T, call("2"), A, call("3"), result("3")],
            [U, C, T, call("2"), result("2", ABORTED), A, call("3"), result("3")],
            {"aborted_result": 1},
            id="gap_in_the_middle",
        ),
        pytest.param(
            [U, call("1"), call("2"), result("2"), T],
            [U, call("1"), T, call("2"), result("2")],
            {},
            id="run_of_two_answers",
        ),
    ],
)
def test_a_history_is_repaired(history: list[Any], expected: list[Any], repairs: dict[str, int]) -> None:
    mended = repair(history)

    assert mended.messages == expected
    assert mended.repairs == repairs
    assert openai_faults(mended.messages) == []


def test_unanswered_calls_can_be_dropped_and_their_text_stays() -> None:
    mended = repair([U, call("1", "2", text="let me look"), T], unanswered="drop")

    assert mended.messages == [U, {"role": "assistant", "content": "let me look"}]
    assert mended.repairs == {"dropped_call": 1}


def test_a_removed_call_is_removed_with_its_result() -> None:
    assert repair([T, A, U]).messages == [A, U]
    assert repair([U, C], unanswered="drop").messages == [U]


MESSAGES = st.lists(
    st.one_of(
        st.just(U),
        st.just(A),
        st.lists(st.sampled_from("1234"), min_size=1, max_size=3, unique=True).map(lambda ids: call(*ids)),
        st.sampled_from(["1", "2", "3", "4", "", "9"]).map(result),
    ),
    max_size=14,
)


@given(MESSAGES, st.sampled_from(["answer", "drop"]))
def test_any_history_is_repaired_into_a_valid_one_and_only_once(history: list[Any], unanswered: Any) -> None:
    before = [dict(message) for message in history]
    mended = repair(history, unanswered=unanswered)
    again = repair(mended.messages, unanswered=unanswered)

    assert openai_faults(mended.messages) == []
    assert again.messages == mended.messages
    assert again.repairs == {}
    assert history == before


@given(MESSAGES, st.integers(-1, 16))
def test_a_cut_at_a_safe_boundary_makes_no_orphan(history: list[Any], target: int) -> None:
    whole = repair(history).messages
    cut = safe_boundary(whole, target)

    assert is_pair_safe(whole, cut)
    assert openai_faults(whole[:cut]) == []
    assert openai_faults(whole[cut:]) == []
