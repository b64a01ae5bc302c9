"""Causes of a session's cost: they do not overlap, and add up to it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.test_findings import session, turn

from windowpane.core.events import CacheBroken, CallsCopied, Usage
from windowpane.report.cost_causes import BREAKS, CARRIED, OTHER, REPLIES, UNSPLIT, causes_sentence, cost_causes
from windowpane.report.findings import Finding, SessionEvidence, Trial
from windowpane.store.records import TurnRow


def price(model: str, usage: Usage, _at: float | None) -> float | None:
    """One dollar for a million tokens of input, ten for a million of output."""
    return None if model == "unknown" else (usage.input_total + 10 * usage.output_tokens) / 1e6


def broken(dollars: float) -> CacheBroken:
    return CacheBroken(1_000, 1_000, "expired", dollars=dollars)


def call(number: int, **values: Any) -> TurnRow:
    return turn(
        number, **{"model": "m", "input_tokens": 90_000, "output_tokens": 1_000, "cost_dollars": 0.1, **values}
    )


def test_a_call_is_split_into_its_break_its_reply_and_what_it_carried() -> None:
    components = {"tool_results": 60_000, "message_history": 30_000}

    causes = cost_causes([call(1, components=components)], [(1, broken(0.03))], total=0.1, price_of=price)

    assert {cause.name: round(cause.dollars, 6) for cause in causes} == {
        CARRIED["tool_results"]: 0.04,
        BREAKS: 0.03,
        CARRIED["message_history"]: 0.02,
        REPLIES: 0.01,
    }
    assert causes_sentence(causes) == (
        "$0.10: $0.04 sending tool results, $0.03 cache breaks, $0.02 sending the conversation, $0.01 the rest."
    )


def test_calls_that_another_session_counts_are_no_part_of_the_cost() -> None:
    copied = [(0, CallsCopied("the original", 1, 2))]
    evidence = SessionEvidence(session(), [call(1), call(2), call(3)], copied=copied)

    causes = cost_causes(evidence.counted_turns, [], total=0.1, price_of=price)

    assert math.fsum(cause.dollars for cause in causes) == pytest.approx(0.1)


def test_content_not_in_the_recording_is_listed_by_its_size_and_explained_where_it_is_large() -> None:
    components = {"unattributed": 60_000, "tool_results": 20_000, "message_history": 10_000}

    causes = cost_causes([call(1, components=components)], [], total=0.1, price_of=price)

    assert causes[0].name == CARRIED["unattributed"]
    assert "system prompt and tool definitions" in causes[0].advice
    assert causes[-1].advice == ""
    assert "$0.06 sending content not in the recording, " in causes_sentence(causes)


def test_the_turns_are_those_in_which_it_cost_most() -> None:
    turns = [
        call(number, cost_dollars=0.01 * (number % 5 + 1), components={"tool_results": 1}) for number in range(9)
    ]

    causes = {cause.name: cause.turns for cause in cost_causes(turns, [], total=None, price_of=price)}

    assert causes[CARRIED["tool_results"]] == (4, 3, 8)


def test_what_cannot_be_split_is_named() -> None:
    causes = cost_causes([call(1, model="unknown"), call(2, cost_dollars=None)], [], total=0.4, price_of=price)

    assert [(cause.name, round(cause.dollars, 6)) for cause in causes] == [(OTHER, 0.3), (UNSPLIT, 0.1)]
    assert cost_causes([call(1, cost_dollars=None)], [], total=None, price_of=price) == ()


def test_a_cause_has_its_finding() -> None:
    found = Finding("stale", "", "Compact between tasks.", 0.02, (), Trial((), 1))

    causes = cost_causes(
        [call(1, components={"tool_results": 1})], [], total=0.1, findings=[found], price_of=price
    )

    assert {cause.name: cause.finding for cause in causes} == {CARRIED["tool_results"]: found, REPLIES: None}


calls = st.builds(
    call,
    st.integers(1, 50),
    model=st.sampled_from(["m", "unknown"]),
    cost_dollars=st.none() | st.floats(0, 50),
    input_tokens=st.none() | st.integers(0, 10**6),
    output_tokens=st.none() | st.integers(0, 10**5),
    components=st.dictionaries(st.sampled_from(list(CARRIED)), st.integers(0, 10**6)),
)


@given(st.lists(calls, max_size=8), st.lists(st.tuples(st.integers(1, 50), st.floats(0, 60)), max_size=4))
def test_they_add_up(turns: list[TurnRow], breaks: list[tuple[int, float]]) -> None:
    total = math.fsum(one.cost_dollars or 0.0 for one in turns)

    causes = cost_causes(turns, [(at, broken(cost)) for at, cost in breaks], total=total, price_of=price)

    assert math.fsum(cause.dollars for cause in causes) == pytest.approx(total, abs=1e-3)
    assert all(cause.dollars > 0 for cause in causes)
