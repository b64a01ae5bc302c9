"""Growth and used tokens by the provider's totals: the reply counts at once, and unseen growth is growth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import PressureMeasured, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.tracking.pressure import unseen_tokens

Make = Callable[..., Any]


def call(play: Any, total: int, output: int = 0, *, reasoning: int = 0, tool: bool = False) -> PressureMeasured:
    """A model call that reports its usage; the text of its reply is not visible."""
    if tool:
        play.call(f"c{play.tracker.turn}", "{}", tokens=5)
    usage = Usage(total, output, reasoning_tokens=reasoning, reasoning_retained=reasoning > 0)
    return play.tracker.end_turn(usage)  # type: ignore[no-any-return]


class TestReply:
    def test_used_tokens_are_those_of_the_next_call(self, session: Make) -> None:
        """1,011 tokens sent and 11,007 written are 12,018, in the window and by component."""
        play = session(100_000)
        play.add_user(1_000)
        play.tracker.add("assistant_response", None, 9_000)
        measured = call(play, 1_011, 11_007)

        assert (measured.phase, measured.used_tokens, measured.count_source) == ("next", 12_018, "usage")
        assert sum(measured.used_by_component.values()) == 12_018
        assert play.phases("final")[0].used_tokens == 1_011
        play.add_user(20)
        assert play.tracker.measure("before").used_tokens == 12_038

    def test_the_next_total_confirms_the_reply(self, session: Make) -> None:
        play = session(100_000)
        play.add_user(1_000)
        play.tracker.add("assistant_response", None, 3_000)
        call(play, 1_000, 5_000)
        play.add_user(10)
        call(play, 6_010)

        assert play.phases("final")[1].estimate_error == 0.0

    def test_a_placeholder_is_not_a_count(self, session: Make) -> None:
        play = session(100_000)
        play.add_user(1_000)
        play.tracker.add("assistant_response", None, 3_000)

        assert call(play, 1_000, 4).used_tokens == 4_000

    def test_reasoning_stays_until_the_tool_loop_ends(self, session: Make) -> None:
        play = session(100_000)
        play.add_user(1_000)
        assert call(play, 1_000, 2_005, reasoning=2_000, tool=True).used_tokens == 3_005
        play.result("c1", "r", tokens=100)
        play.tracker.add("assistant_response", None, 50)
        assert call(play, 3_105, 350, reasoning=300).used_tokens == 1_155

    def test_hidden_reasoning_is_unattributed(self, session: Make) -> None:
        play = session(100_000)
        play.add_user(1_000)
        measured = call(play, 1_000, 2_005, reasoning=2_000, tool=True)

        assert measured.used_by_component["unattributed"] == 2_000


class TestUnseenGrowth:
    def test_growth_without_content_is_growth(self, session: Make) -> None:
        """9,000 tokens a turn that only the provider counts: velocity, burn rate and forecast follow them."""
        play = session(100_000)
        for turn in range(9):
            play.add_user(1)
            measured = call(play, 9_000 * (turn + 1))

        assert measured.velocity == pytest.approx(9_000)
        assert measured.burn_rate == pytest.approx(9_000)
        assert measured.turns_until_red is not None
        assert measured.turns_until_red < 2.5
        assert measured.turns_until_exhausted is not None
        assert measured.turns_until_exhausted == pytest.approx(19_000 / 9_000)

    def test_unseen_growth_is_unattributed(self, session: Make) -> None:
        play = session(100_000)
        for turn in range(5):
            play.add_user(1)
            measured = call(play, 9_000 * (turn + 1))

        assert measured.used_by_component["message_history"] <= 20
        assert measured.used_by_component["unattributed"] >= 44_980
        assert measured.added_by_component["unattributed"] >= 8_990
        assert sum(measured.added_by_component.values()) == measured.added_tokens
        assert play.tracker.window.tokens_by_component["unattributed"] >= 44_980

    def test_visible_growth_is_not_unattributed(self, session: Make) -> None:
        play = session(100_000)
        for turn in range(8):
            play.add_user(1_000)
            measured = call(play, 5_000 + 1_300 * turn)

        assert measured.velocity == pytest.approx(1_300, abs=1)
        assert not measured.added_by_component.get("unattributed")
        assert measured.used_by_component["unattributed"] == 4_000

    def test_growth_is_counted_before_any_reduction(self, session: Make) -> None:
        play = session(100_000)
        blocks = [play.add_user(2_000) for _ in range(10)]
        call(play, 20_000)
        play.add_user(1_000)
        call(play, 21_000)
        play.evict(*blocks[:5])
        play.add_user(1_000)
        measured = call(play, 12_000)

        assert measured.velocity == pytest.approx(1_000)

    def test_an_unexplained_drop_is_not_growth(self, session: Make) -> None:
        play = session(200_000)
        play.add_user(100_000)
        call(play, 110_000)
        play.add_user(3_000)
        call(play, 113_000)
        play.add_user(2_000)

        assert call(play, 60_000).added_tokens == 2_000

    def test_static_content_is_not_growth(self, session: Make) -> None:
        play = session(100_000)
        play.add_user(1_000)
        call(play, 1_000)
        play.tracker.add("tool_definition", None, 5_000)
        play.add_user(100)

        assert call(play, 6_100).added_tokens == 100

    def test_the_first_total_is_no_growth(self, session: Make) -> None:
        play = session(100_000)
        play.turn(100, 0)
        play.turn(100, 0)
        play.add_user(100)
        assert call(play, 30_000).added_tokens == 100
        play.tracker.roll("clear")
        play.add_user(100)

        assert call(play, 29_000).added_tokens == 100


@given(
    totals=st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(1, 60_000), st.integers(0, 9_000)),
        min_size=1,
        max_size=12,
    )
)
def test_components_sum_to_totals_whatever_is_reported(totals: list[tuple[int, int, int, int]]) -> None:
    measured: list[PressureMeasured] = []

    def emit(batch: list[Any]) -> None:
        measured.extend(event.data for event in batch if isinstance(event.data, PressureMeasured))

    tracker = SessionTracker(
        SessionInfo("s", "a", "m", "test", "x"), emit=emit, digest=str, limits=WindowLimits.of(10**6, "given")
    )
    for user, reply, total, output in totals:
        tracker.add("user_message", None, user)
        tracker.add("assistant_response", None, reply)
        tracker.end_turn(Usage(total, output))

    for one in measured:
        assert sum(one.used_by_component.values()) == one.used_tokens
        assert min(one.used_by_component.values()) >= 0
        assert one.added_tokens >= 0
    finals = [one for one in measured if one.phase == "final"]
    assert [one.used_tokens for one in finals] == [total for _, _, total, _ in totals]
    assert all(sum(one.added_by_component.values()) == one.added_tokens for one in finals)


@pytest.mark.parametrize(
    ("difference", "added", "removed", "expected"),
    [
        (1_000, 1_000, 0, 0), (2_200, 1_000, 0, 0), (2_201, 1_000, 0, 1), (300, 1_000, 0, 0), (299, 1_000, 0, -1),
        (-1_000, 0, 1_000, 0), (-2_200, 0, 1_000, 0), (-2_300, 0, 1_000, -100), (200, 0, 0, 0),
    ],
)  # fmt: skip
def test_what_counts_can_explain(difference: int, added: int, removed: int, expected: int) -> None:
    assert unseen_tokens(difference, added=added, removed=removed) == expected
