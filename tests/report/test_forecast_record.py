"""The record of a session's forecasts: those at the distance of the last one, and how many held."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from windowpane.report.forecast_record import ForecastRecord, forecast_record
from windowpane.store.records import TurnRow

EMPTY: dict[str, Any] = {field.name: None for field in fields(TurnRow)}


def row(turn: int, used: int, *, band: tuple[float, float, float] = (4, 6, 8), **values: Any) -> TurnRow:
    """Return a turn with a forecast of a compaction at 1,000 tokens."""
    early, median, late = band
    level = {
        "compaction_tokens": 1_000,
        "turns_until_compaction": median,
        "turns_until_compaction_p10": early,
        "turns_until_compaction_p90": late,
    }
    return TurnRow(**{**EMPTY, "turn": turn, "used_final": used, "components": {}, **level, **values})


def test_a_forecast_holds_if_the_compaction_comes_within_its_band() -> None:
    turns = [row(turn, 100 * turn) for turn in range(1, 8)] + [row(8, 50)]

    assert forecast_record(turns, [8]) == ForecastRecord(decided=7, held=3, open=0)
    assert forecast_record(turns, [7]).text == "3 of 7 forecasts at this distance were right"


def test_a_window_that_reaches_the_level_is_no_compaction() -> None:
    turns = [row(turn, 100) for turn in range(1, 6)] + [row(turn, 1_000) for turn in range(6, 20)]

    assert forecast_record(turns, []) == ForecastRecord(decided=10, held=0, open=8)


def test_only_forecasts_at_the_distance_of_the_last_one_are_compared() -> None:
    far = (10.0, 30.0, 45.0)
    turns = [row(1, 100, band=far), *[row(turn, 100) for turn in range(2, 50)], row(50, 100, band=far)]

    assert forecast_record(turns, []) == ForecastRecord(decided=1, held=0, open=0)


def test_a_session_without_forecasts_has_no_record() -> None:
    none = row(1, 100, compaction_tokens=None, turns_until_compaction=None)

    assert forecast_record([], []) == ForecastRecord(0, 0, 0)
    assert forecast_record([none], []).text == ""


def test_forecasts_of_red_are_recorded_where_no_compaction_is_expected() -> None:
    red = {
        "compaction_tokens": None, "turns_until_compaction": None, "red_tokens": 900, "turns_until_red": 6.0,
        "turns_until_red_p10": 4.0, "turns_until_red_p90": 8.0,
    }  # fmt: skip
    turns = [row(turn, 100 * turn, **red) for turn in range(3, 9)] + [row(9, 900, **red), row(10, 100, **red)]

    assert forecast_record(turns, []) == ForecastRecord(decided=6, held=3, open=1)
    assert forecast_record([*turns[:4], row(7, 50, **red)], [7]) == ForecastRecord(decided=0, held=0, open=4)
