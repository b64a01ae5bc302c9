"""Context health: each session compared with itself, and no claim without evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from tests.report.test_findings import turn

from windowpane.core.vocabulary import Misstep
from windowpane.report.context_health import (
    HealthCell,
    SessionHealth,
    change_at,
    health_of,
    mean_interval,
    missteps_of,
    session_health,
    student_quantile,
)


def session(number: int, *, below: int, above: int, calls: int = 40) -> SessionHealth:
    """Return a session with errors at 20% and at 70% of its window."""
    cells = {(2, 0): HealthCell(calls, {"error": below}), (7, 0): HealthCell(calls, {"error": above})}
    return SessionHealth(f"s{number}", cells)


def rising(sessions: int) -> list[SessionHealth]:
    return [session(number, below=1, above=4 + number % 3) for number in range(sessions)]


def test_a_rise_is_stated_with_its_share_its_sessions_and_its_interval() -> None:
    health = health_of(rising(12))

    change = health.changes[0]
    assert change.is_evident
    assert (change.misstep, change.share, change.sessions, change.before) == ("error", 0.5, 12, 2.5)
    assert 0 < change.low < change.after - change.before < change.high
    assert health.headline.startswith(
        "Errors rise from 2.5 to 12.5 per 100 calls above 50% of the window, n = 12"
    )


def test_nothing_is_stated_of_nine_sessions() -> None:
    health = health_of(rising(9))

    assert not health.evident
    assert health.headline.startswith("Too few sessions to compare: 9 with 10 calls")


def test_nothing_is_stated_where_the_interval_includes_zero() -> None:
    mixed = [session(number, below=3, above=number % 7) for number in range(14)]

    health = health_of(mixed)

    assert not health.evident
    assert health.headline == "No change with the fill of the window can be shown, n = 14 sessions."


def test_a_change_in_a_few_sessions_only_is_not_evident() -> None:
    """All differences have one sign."""
    few = [session(number, below=0, above=4 if number < 5 else 0) for number in range(14)]

    assert not change_at(few, "error", 0.5).is_evident


def test_a_session_with_few_calls_on_one_side_is_not_compared() -> None:
    short = session(99, below=0, above=9, calls=9)

    assert change_at([*rising(12), short], "error", 0.5).sessions == 12


def test_calls_are_counted_by_fill_and_by_the_compactions_before_them() -> None:
    used = [100, 500, 900, 300, 400]
    turns = [turn(number, used_final=size, utilization=size / 1_000) for number, size in enumerate(used, 1)]
    missteps: Iterable[tuple[int, Misstep]] = [(3, "error"), (3, "error"), (4, "correction")]

    health = session_health("s", turns, missteps, compactions=[3])

    assert health.cells == {
        (1, 0): HealthCell(1),
        (5, 0): HealthCell(1),
        (9, 0): HealthCell(1, {"error": 2}),
        (3, 1): HealthCell(1, {"correction": 1}),
        (4, 1): HealthCell(1),
    }
    assert missteps_of(health).text == (
        "2 errors, 1 correction; per 100 calls 25.0 below 70% of the window (4 calls), "
        "200.0 above 70% of the window (1 call)"
    )


@pytest.mark.parametrize(
    ("share", "freedom", "quantile"), [(0.975, 9, 2.262), (0.995, 9, 3.250), (0.9995, 30, 3.646)]
)
def test_quantiles_are_those_of_the_tables(share: float, freedom: int, quantile: float) -> None:
    assert student_quantile(share, freedom) == pytest.approx(quantile, rel=0.002)


def test_one_value_has_no_interval() -> None:
    assert mean_interval([2.0]) == (-math.inf, math.inf)
    assert mean_interval([2.0, 2.0]) == (2.0, 2.0)
