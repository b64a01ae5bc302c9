"""The turns of a forecast as a time, at the pace of the latest turns."""

from __future__ import annotations

from windowpane.text.forecasts import time_ahead


def test_a_forecast_in_turns_has_a_time_where_the_pace_is_known() -> None:
    every_40_seconds = [40.0 * turn for turn in range(10)]

    assert time_ahead(6.0, every_40_seconds) == "about 4 min"
    assert time_ahead(0.3, every_40_seconds) == "about 1 min"
    assert time_ahead(300.0, every_40_seconds) == "about 3 h"
    assert time_ahead(6.0, [*every_40_seconds, 90_000.0]) == "about 4 min"


def test_without_a_forecast_or_a_pace_there_is_no_time() -> None:
    assert time_ahead(None, [40.0 * turn for turn in range(10)]) == ""
    assert time_ahead(float("inf"), [40.0 * turn for turn in range(10)]) == ""
    assert time_ahead(0.0, [40.0 * turn for turn in range(10)]) == ""
    assert time_ahead(6.0, [None, 1.0, None, 2.0]) == ""
