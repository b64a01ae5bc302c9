"""Zones start at their thresholds, with hysteresis downwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import ZoneChanged
from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.core.vocabulary import ZONES

Make = Callable[..., Any]
PLAIN = WindowLimits(1000, "given", 0, 0)
DEFAULT = WindowLimits.of(100_000, "catalogue")


@pytest.mark.parametrize(
    ("used", "zone"),
    [
        (0, "green"), (499, "green"), (500, "yellow"), (749, "yellow"), (750, "orange"), (899, "orange"),
        (900, "red"), (1000, "red"), (1001, "overflow"),
    ],
)  # fmt: skip
def test_a_zone_starts_at_exactly_its_threshold(used: int, zone: str) -> None:
    assert PLAIN.zone_of(used) == zone


@pytest.mark.parametrize(
    ("used", "zone"),
    [
        (49_999, "green"), (50_000, "yellow"), (74_999, "yellow"), (75_000, "orange"), (89_999, "orange"),
        (90_000, "red"), (95_000, "red"), (95_001, "overflow"),
    ],
)  # fmt: skip
def test_the_default_reserve_keeps_thresholds_at_their_share_of_the_limit(used: int, zone: str) -> None:
    assert DEFAULT.zone_of(used) == zone


def test_a_large_reserve_lowers_red_to_usable() -> None:
    limits = WindowLimits(1000, "given", 300, 100)

    assert limits.usable_tokens == 600
    assert [limits.zone_of(used) for used in (599, 600, 700, 701)] == ["orange", "red", "red", "overflow"]
    assert limits.red_tokens == limits.usable_tokens


@given(limit=st.integers(100, 2_000_000), output=st.integers(0, 500_000))
def test_thresholds_rise_and_red_is_at_most_usable(limit: int, output: int) -> None:
    limits = WindowLimits.of(limit, "catalogue", requested_output_tokens=output)

    assert 0 <= limits.yellow_tokens <= limits.orange_tokens <= limits.red_tokens <= limits.usable_tokens
    assert limits.usable_tokens == limit - limits.reserved_tokens - limits.margin_tokens


@pytest.mark.parametrize(
    ("previous", "used", "zone"),
    [
        ("red", 899, "red"), ("red", 870, "red"), ("red", 869, "orange"),
        ("orange", 720, "orange"), ("orange", 719, "yellow"),
        ("yellow", 470, "yellow"), ("yellow", 469, "green"),
        ("overflow", 971, "overflow"), ("overflow", 970, "red"), ("red", 100, "green"),
        ("overflow", 720, "orange"),
    ],
)  # fmt: skip
def test_a_lower_zone_is_entered_only_below_the_hysteresis(previous: str, used: int, zone: str) -> None:
    assert PLAIN.zone_of(used, previous=previous) == zone


@given(previous=st.sampled_from(ZONES), used=st.integers(0, 1200))
def test_hysteresis_never_raises_a_zone(previous: str, used: int) -> None:
    plain, held = ZONES.index(PLAIN.zone_of(used)), ZONES.index(PLAIN.zone_of(used, previous=previous))

    assert plain <= held <= max(plain, ZONES.index(previous))


def test_each_change_of_zone_is_reported_once(session: Make) -> None:
    play = session(1000)
    for used in (490, 510, 495, 505, 480, 471, 520, 460, 499):
        play.turn(1, 0, total=used)
        play.add_user(1)
    changes = [(change.from_zone, change.to_zone) for change in play.of(ZoneChanged)]

    assert changes == [("green", "yellow"), ("yellow", "green")]


def test_a_final_measurement_changes_no_zone(session: Make) -> None:
    play = session(1000)
    final = play.turn(1, 0, total=950)

    assert final.zone == "red"
    assert play.of(ZoneChanged) == []


def test_an_unknown_limit_has_no_zone_and_no_forecast(session: Make) -> None:
    play = session(None)
    for turn in range(1, 7):
        measured = play.turn(100, 0, total=100 * turn)

    assert measured.used_tokens == 600
    assert measured.velocity == pytest.approx(100)
    for absent in (measured.limit_tokens, measured.utilization, measured.usable_utilization, measured.zone,
                   measured.turns_until_red, measured.turns_until_exhausted, measured.red_tokens):  # fmt: skip
        assert absent is None
    assert measured.budget_utilization == {}
    assert play.of(ZoneChanged) == []


@pytest.mark.parametrize("fields", [(0.5, 0.5, 0.9), (0.0, 0.5, 0.9), (0.5, 0.8, 1.1), (0.9, 0.8, 0.7)])
def test_thresholds_must_rise(fields: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must rise"):
        Thresholds(*fields)


@pytest.mark.parametrize(
    ("limit", "profile"),
    [(32_767, (0.40, 0.65, 0.85)), (32_768, (0.5, 0.75, 0.9)), (199_999, (0.5, 0.75, 0.9)),
     (200_000, (0.6, 0.8, 0.9))],
)  # fmt: skip
def test_default_thresholds_change_at_exact_sizes(limit: int, profile: tuple[float, float, float]) -> None:
    made = Thresholds.for_limit(limit)

    assert (made.yellow, made.orange, made.red) == profile
