"""Labels next to a chart keep the order of their levels and never overlap where there is room."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.report.level_labels import level_label, separated

DISTANCE, HIGH = 10.0, 100.0
HEIGHTS = st.lists(st.floats(0, HIGH), max_size=11)


def separated_by_ten(heights: list[float]) -> list[float]:
    return separated(heights, DISTANCE, low=0, high=HIGH)


def moves(heights: list[float], moved: list[float]) -> float:
    return sum((after - before) ** 2 for before, after in zip(heights, moved, strict=True))


@given(HEIGHTS)
def test_labels_keep_their_order_and_distance_inside_the_plot(heights: list[float]) -> None:
    moved = separated_by_ten(heights)

    assert sorted(zip(heights, moved, strict=True)) == sorted(zip(sorted(heights), sorted(moved), strict=True))
    assert all(high - low >= DISTANCE - 1e-6 for low, high in pairwise(sorted(moved)))
    assert all(-1e-6 <= height <= HIGH + 1e-6 for height in moved)


@given(HEIGHTS.filter(bool), st.data())
def test_no_other_labels_in_the_same_order_are_nearer(heights: list[float], data: st.DataObject) -> None:
    heights.sort()
    room = HIGH - DISTANCE * (len(heights) - 1)
    sizes = st.lists(st.floats(0, room), min_size=len(heights), max_size=len(heights))
    others = [rank * DISTANCE + height for rank, height in enumerate(sorted(data.draw(sizes)))]

    assert moves(heights, separated_by_ten(heights)) <= moves(heights, others) + 1e-6


@given(st.lists(st.floats(0, HIGH), min_size=12, max_size=30))
def test_labels_that_have_too_little_room_are_spread_evenly(heights: list[float]) -> None:
    step = HIGH / (len(heights) - 1)

    assert sorted(separated_by_ten(heights)) == pytest.approx([step * rank for rank in range(len(heights))])


def test_only_labels_that_would_overlap_move() -> None:
    assert separated_by_ten([90.0, 40.0, 44.0]) == [90.0, 37.0, 47.0]
    assert separated_by_ten([98.0, 99.0]) == [90.0, 100.0]


def test_a_label_has_the_shape_of_its_zone() -> None:
    labels = [level_label(name, 155_000) for name in ("limit", "compaction", "yellow")]

    assert labels == ["limit 155k", "compacts at 155k", "◐ yellow 155k"]
