"""Velocity, burn rate, forecast, spikes and eviction rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import VelocitySpiked
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking.forecast import (
    COMPACTION_DELAY,
    USUAL_GROWTH,
    Forecast,
    GrowthHistory,
    GrowthPace,
    forecast,
    winsorized_mean,
)

Make = Callable[..., Any]
ADDITIONS = st.lists(st.integers(0, 100_000), max_size=20)


class TestVelocity:
    def test_the_first_turn_is_the_base_and_not_growth(self, session: Make) -> None:
        play = session(100_000)
        first = play.turn(5000, 10)
        second = play.turn(100, 0)

        assert (first.velocity, first.burn_rate, first.turns_until_red) == (None, None, None)
        assert play.phases("before")[1].velocity is None
        assert second.velocity == 100

    def test_velocity_is_the_mean_of_the_last_five_turns(self, session: Make) -> None:
        play = session(100_000)
        play.turn(1)
        for added in range(100, 2600, 100):
            measured = play.turn(added)

        assert measured.velocity == sum((2100, 2200, 2300, 2400, 2500)) / 5
        assert measured.burn_rate == sum(range(600, 2600, 100)) / 20

    def test_velocity_counts_additions_before_any_reduction(self, session: Make) -> None:
        play = session(100_000)
        play.turn(1)
        for _ in range(4):
            block = play.add_user(200)
            play.evict(block)
            measured = play.turn(0, 50)

        assert measured.velocity == 250
        assert measured.added_tokens == 250

    def test_static_and_derived_content_is_not_growth(self, session: Make) -> None:
        play = session(100_000)
        play.turn(10, 0, total=3000)
        play.tracker.add("tool_definition", None, 500)
        play.tracker.add("summary", None, 500)
        measured = play.turn(20, 0)

        assert measured.added_tokens == 20

    @given(sizes=st.lists(st.integers(0, 5000), min_size=2, max_size=30), drop=st.integers(0, 3))
    def test_velocity_is_never_negative(self, session: Make, sizes: list[int], drop: int) -> None:
        play = session(100_000)
        for index, size in enumerate(sizes):
            block = play.add_user(size)
            if index % 4 == drop:
                play.evict(block)
            measured = play.turn(0, 0, total=max(1, 10_000 - size))
            assert measured.velocity is None or measured.velocity >= 0
            assert measured.added_tokens >= 0


class TestForecast:
    def pace(self, *added: int, documented: float | None = None) -> GrowthPace:
        """Return the pace after turns that added *added*."""
        made = GrowthPace(documented)
        for tokens in added:
            made.add(tokens)
        return made

    def ahead(self, remaining: float, pace: GrowthPace) -> Forecast | None:
        """Return the forecast for a window that holds 50,000 tokens."""
        return forecast(remaining, pace, used_tokens=50_000)

    def test_a_forecast_needs_three_turns_of_growth_or_a_documented_growth(self) -> None:
        assert self.ahead(1000, self.pace(10, 10)) is None
        assert self.ahead(1000, self.pace(10, 10, 10)) is not None
        assert self.ahead(50_000, self.pace(documented=1_000)) is not None

    def test_the_forecast_is_zero_without_room_and_infinite_without_growth(self) -> None:
        assert self.ahead(0, self.pace(5, 5, 5)) == (0, 0, 0)
        assert self.ahead(-5, self.pace(0, 0, 0)) == (0, 0, 0)
        assert self.ahead(10, self.pace(0, 0, 0)) == (math.inf, math.inf, math.inf)

    def test_uneven_growth_has_the_documented_median_and_band(self) -> None:
        """The formula of `docs/forecast.md`, a hundred turns of growth ahead of fifty held."""
        ahead = self.ahead(100_000, self.pace(documented=1_000))
        median = 1.3 * 100**0.88
        shape = math.sqrt((median + 30) / 17)
        early, late = (median * (-math.log2(1 - share)) ** (1 / shape) for share in (0.1, 0.9))

        assert ahead is not None
        assert ahead.median == pytest.approx(median)
        assert ahead.early == math.floor(early) + 1
        assert ahead.late == pytest.approx(late, abs=1)

    def test_a_compaction_comes_later_than_its_level_at_uneven_growth(self) -> None:
        pace = self.pace(documented=1_000)
        red = forecast(50_000, pace, used_tokens=50_000)
        compaction = forecast(50_000, pace, used_tokens=50_000, of_compaction=True)

        assert red is not None
        assert compaction is not None
        assert compaction.median == pytest.approx(COMPACTION_DELAY * red.median - 1)

    def test_a_compaction_comes_before_the_call_that_would_pass_its_level(self) -> None:
        """At 100 tokens a turn, the tenth call from now reaches a level that is 1,000 tokens ahead."""
        steady = self.pace(*[100] * 200)
        ahead, at_once = (
            forecast(remaining, steady, used_tokens=1_000, of_compaction=True) for remaining in (1_000, 90)
        )

        assert ahead is not None
        assert ahead.median == pytest.approx(9, abs=0.6)
        assert ahead.early <= 9 <= ahead.late
        assert at_once == (0, 0, 0)

    def test_a_window_that_holds_more_turns_has_a_narrower_band(self) -> None:
        pace = self.pace(documented=1_000)
        widths = [
            ahead.late - ahead.early
            for used in (20_000, 50_000, 150_000)
            if (ahead := forecast(50_000, pace, used_tokens=used)) is not None
        ]

        assert widths[0] > widths[1] > widths[2]

    @pytest.mark.parametrize("remaining", [500, 1_500, 3_000, 10_000, 100_000])
    def test_the_band_holds_eighty_percent_of_its_distribution(self, remaining: int) -> None:
        ahead = self.ahead(remaining, self.pace(documented=1_000))
        assert ahead is not None
        median = 1.3 * (remaining / 1_000) ** 0.88
        shape = math.sqrt((median + 30) / 17)
        held = 2 ** -(((ahead.early - 1) / median) ** shape) - 2 ** -((ahead.late / median) ** shape)
        step = 2 ** -(((ahead.late - 1) / median) ** shape) - 2 ** -(((ahead.late + 1) / median) ** shape)

        assert held == pytest.approx(0.8, abs=step / 2)

    def test_steady_growth_narrows_the_band_towards_the_exact_turns(self) -> None:
        few, many = self.ahead(1000, self.pace(*[100] * 5)), self.ahead(1000, self.pace(*[100] * 200))

        assert few is not None
        assert many is not None
        assert many.late - many.early < few.late - few.early
        assert many.median == pytest.approx(10, abs=0.5)
        assert 7 <= many.early <= 10 <= many.late <= 13

    def test_the_ends_of_the_band_are_whole_turns_of_at_least_one(self) -> None:
        ahead = self.ahead(10, self.pace(1_000, 2_000, 400))

        assert ahead is not None
        assert ahead.early == 1
        assert ahead.late == int(ahead.late)

    @given(added=st.lists(st.integers(0, 100_000), min_size=3, max_size=40), remaining=st.integers(-10, 10**7))
    def test_the_band_is_in_order(self, added: list[int], remaining: int) -> None:
        ahead = self.ahead(remaining, self.pace(*added))

        assert ahead is not None
        assert 0 <= ahead.early <= ahead.median * (1 + 1e-9)
        assert ahead.median <= ahead.late * (1 + 1e-9)

    @given(added=st.lists(st.integers(1, 10_000), min_size=3, max_size=20), near=st.integers(1, 10**5))
    def test_more_room_is_never_fewer_turns(self, added: list[int], near: int) -> None:
        close, far = self.ahead(near, self.pace(*added)), self.ahead(near * 2, self.pace(*added))

        assert close is not None
        assert far is not None
        assert close.median <= far.median
        assert close.early <= far.early
        assert close.late <= far.late

    @given(steady=st.integers(300, 3000), burst=st.integers(10, 10**6), place=st.integers(3, 39))
    def test_one_burst_counts_as_three_typical_turns(self, steady: int, burst: int, place: int) -> None:
        added = [steady] * 39
        added.insert(place, max(burst, steady))

        assert self.pace(*added).tokens_per_turn == pytest.approx(steady, rel=0.35)

    @pytest.mark.parametrize("tokens", [10, 100, 1_000, 10_000, 50_000])
    def test_the_pace_of_any_steady_growth_is_found(self, tokens: int) -> None:
        assert self.pace(*[tokens] * 40).tokens_per_turn == pytest.approx(tokens, rel=0.35)

    def test_growth_in_even_turns_is_found_in_a_few(self) -> None:
        even, uneven = self.pace(*[5_000] * 8), self.pace(*[10_000, 0] * 4)

        assert even.tokens_per_turn > 3_500
        assert uneven.tokens_per_turn < 0.8 * even.tokens_per_turn

    def test_growth_that_lasts_is_not_a_burst(self) -> None:
        steady, single = self.pace(*[20_000] * 10), self.pace(*[1_000] * 9, 20_000)

        assert steady.tokens_per_turn > 8_000
        assert single.tokens_per_turn < 1_500

    @given(first=st.lists(st.integers(100, 20_000), min_size=3, max_size=3))
    def test_the_first_turns_of_an_unknown_agent_weigh_little(self, first: list[int]) -> None:
        assert USUAL_GROWTH / 10 < self.pace(*first).tokens_per_turn < 5 * USUAL_GROWTH

    def test_an_unknown_agent_without_growth_has_no_pace(self) -> None:
        assert self.pace(0, 0, 0).tokens_per_turn == 0
        assert self.pace(0, 0, 0, 500).tokens_per_turn > 100

    def test_a_pace_takes_the_same_space_after_any_number_of_turns(self) -> None:
        made = self.pace(*range(1, 10_000))

        assert not any(isinstance(value, list) and value for value in vars(made).values())

    def test_a_level_beyond_a_window_counts_from_the_used_tokens(self, session: Make) -> None:
        """Red starts at 900 of 1000 tokens: nearer red means fewer turns."""
        play = session(1000)
        measured = [play.turn(100, 0, total=100 * turn) for turn in range(1, 9)]
        medians = [one.turns_until_red for one in measured]

        assert medians[:3] == [None, None, None]
        assert medians[3:] == sorted(medians[3:], reverse=True)
        assert measured[4].turns_until_exhausted == pytest.approx(5)

    @given(added=ADDITIONS)
    def test_the_baseline_is_the_mean_of_the_winsorized_sample(self, added: list[int]) -> None:
        cut = math.ceil(len(added) / 10) if len(added) >= 3 else 0
        ceiling = sorted(added)[-1 - cut] if added else 0
        clipped = [min(value, ceiling) for value in added]
        mean = sum(clipped) / len(clipped) if clipped else 0.0

        assert winsorized_mean(added) == pytest.approx(mean)

    def test_a_window_in_red_has_zero_turns_until_red(self, session: Make) -> None:
        play = session(1000)
        for turn in range(1, 12):
            measured = play.turn(100, 0, total=min(100 * turn, 1000))

        assert (measured.turns_until_red, measured.turns_until_exhausted) == (0, 0)

    def test_a_flat_window_is_never_full(self, session: Make) -> None:
        play = session(1000)
        for _ in range(5):
            measured = play.turn(0, 0, total=100)

        assert (measured.turns_until_red, measured.turns_until_exhausted) == (math.inf, math.inf)


class TestSpikes:
    def spikes(self, session: Make, *added: int, limit: int | None = None) -> list[VelocitySpiked]:
        play = session(limit)
        play.turn(1)
        for tokens in added:
            play.turn(tokens)
        return list(play.of(VelocitySpiked))

    def test_fifteen_thousand_after_turns_of_two_thousand_is_a_spike(self, session: Make) -> None:
        """The documented example is a spike."""
        assert self.spikes(session, *[2000] * 5, 15_000) == [VelocitySpiked(15_000, 2000.0)]

    @pytest.mark.parametrize(("turns", "expected"), [(4, 0), (5, 1)])
    def test_a_spike_needs_five_turns_before(self, session: Make, turns: int, expected: int) -> None:
        assert len(self.spikes(session, *[2000] * turns, 15_000)) == expected

    @pytest.mark.parametrize(("added", "expected"), [(6000, 0), (6001, 1)])
    def test_three_times_the_mean_is_not_yet_a_spike(self, session: Make, added: int, expected: int) -> None:
        assert len(self.spikes(session, *[2000] * 5, added)) == expected

    @pytest.mark.parametrize(("added", "expected"), [(1999, 0), (2000, 1)])
    def test_small_turns_are_not_spikes(self, session: Make, added: int, expected: int) -> None:
        assert len(self.spikes(session, *[10] * 5, added)) == expected

    @pytest.mark.parametrize(("limit", "expected"), [(150_000, 1), (150_001, 0), (1_000_000, 0)])
    def test_a_spike_is_a_tenth_of_the_window(self, session: Make, limit: int, expected: int) -> None:
        assert len(self.spikes(session, *[2000] * 5, 15_000, limit=limit)) == expected

    def test_one_spike_does_not_hide_the_next(self, session: Make) -> None:
        assert len(self.spikes(session, *[2000] * 5, 60_000, 2000, 15_000)) == 2


class TestEvictionRate:
    def test_the_eviction_rate_is_blocks_over_the_last_five_turns(self, session: Make) -> None:
        play = session(10_000)
        play.evict(*[play.add_user(1) for _ in range(10)])
        rates = [play.turn(1, 0).eviction_rate for _ in range(8)]

        assert rates == [2, 2, 2, 2, 2, 0, 0, 0]

    def test_a_steady_rate_is_that_rate_in_every_phase(self, session: Make) -> None:
        play = session(10_000)
        for _ in range(8):
            play.evict(*[play.add_user(1) for _ in range(6)])
            before = play.tracker.measure("after")
            final = play.turn()

        assert (before.eviction_rate, final.eviction_rate) == (6, 6)

    @given(evicted=st.lists(st.integers(0, 9), min_size=1, max_size=30))
    def test_the_eviction_rate_equals_its_recomputation(self, evicted: list[int]) -> None:
        history = GrowthHistory(TrackerSettings())
        for turn, blocks in enumerate(evicted, start=1):
            history.open_turn()
            history.count_evicted(blocks)
            expected = pytest.approx(sum(evicted[max(0, turn - 5) : turn]) / 5)
            assert history.eviction_rate() == expected
            history.close_turn(turn, 0, {})
            assert history.eviction_rate() == expected


def test_burn_rates_of_components_sum_to_the_burn_rate(session: Make) -> None:
    play = session(WindowLimits.of(100_000, "catalogue"))
    play.turn(1)
    for _ in range(4):
        play.call("c", "{}", tokens=10)
        play.tracker.end_turn()
        play.result("c", "x", tokens=90)
    play.turn(0, 0)
    by_component = play.tracker.gauge.growth.burn_by_component()

    assert sum(by_component.values()) == pytest.approx(play.tracker.gauge.growth.burn_rate)
    assert by_component["tool_results"] == 90 * 4 / 5
