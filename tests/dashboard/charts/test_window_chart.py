"""The chart of the window: components, limit, zones, forecast and event track agree with the data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.dashboard.timelines import TURN

from windowpane.store.embedded import SqliteStore
from windowpane.text.labels import COMPONENT_LABELS, MARKS
from windowpane_dashboard.charts.downsample import MAXIMUM_POINTS, downsampled_rows
from windowpane_dashboard.charts.window_chart import STACKING, natural_scale, window_chart
from windowpane_dashboard.charts.zone_bands import _towards, forecast_turns
from windowpane_dashboard.queries.timeline import Timeline, read_timeline, turns_frame
from windowpane_dashboard.style.theme import DARK, LIGHT, Palette

NO_MARKS = pd.DataFrame({"letter": [], "turn": [], "number": [], "text": []})


@pytest.fixture
def rich(small_store: SqliteStore) -> Timeline:
    """The session in which everything happens."""
    return read_timeline(small_store, "refactor-api")


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 3_000), st.integers(1, 4)),
        elements=st.floats(-1e9, 1e9) | st.just(np.nan),
        fill=st.floats(0, 10),
    ),
    st.integers(12, 400),
)
def test_downsampling_keeps_every_extreme(series: np.ndarray, limit: int) -> None:
    selected = downsampled_rows(series, limit)

    assert len(selected) <= max(limit, len(series) if len(series) <= limit else 0)
    assert (np.diff(selected) > 0).all()
    assert {0, len(series) - 1} <= set(selected.tolist())
    for column in range(series.shape[1]):
        whole, reduced = series[:, column], series[selected, column]
        if not np.isnan(whole).all():
            assert np.nanmax(reduced) == np.nanmax(whole)
            assert np.nanmin(reduced) == np.nanmin(whole)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_components_stack_to_the_used_tokens(rich: Timeline, palette: Palette) -> None:
    figure = window_chart(rich.turns, rich.spans, rich.marks, palette)
    stacked = [trace for trace in figure.data if trace.stackgroup == "window"]

    assert np.allclose(sum(np.asarray(trace.y) for trace in stacked), rich.turns["used"])
    assert {trace.name for trace in stacked} <= set(COMPONENT_LABELS.values())
    assert {trace.line.color for trace in stacked} <= set(palette.components.values())
    assert not any(trace.type == "scattergl" for trace in figure.data)


def test_every_kind_of_event_has_a_row_with_its_name(rich: Timeline) -> None:
    figure = window_chart(rich.turns, rich.spans, rich.marks, LIGHT)
    track = [trace for trace in figure.data if trace.yaxis == "y2"]

    assert [trace.name for trace in track] == [MARKS[letter].label for letter in "RCSWN!"]
    assert list(figure.layout.yaxis2.ticktext) == [trace.name for trace in reversed(track)]
    for trace in track:
        letter = next(mark.letter for mark in MARKS.values() if mark.label == trace.name)
        turns = rich.marks.loc[rich.marks["letter"] == letter, "turn"]
        assert sorted(trace.x) == sorted(turns)


def test_the_alerts_of_a_severity_have_a_row_in_its_color(rich: Timeline) -> None:
    marks = pd.DataFrame({"letter": ["I", "!", "A"], "turn": [1, 2, 3], "number": 1, "text": ""})

    track = [trace for trace in window_chart(rich.turns, rich.spans, marks, LIGHT).data if trace.yaxis == "y2"]

    assert [(trace.name, list(trace.x)) for trace in track] == [
        ("critical alert", [2]), ("warning alert", [3]), ("info alert", [1]),
    ]  # fmt: skip
    assert [trace.marker.color for trace in track] == [
        LIGHT.severities[severity] for severity in ("critical", "warning", "info")
    ]


@pytest.mark.parametrize(("level", "drawn"), [(700, [700, 700]), (None, None), (500_000, None)])
def test_the_level_of_compaction_is_drawn_where_it_is_known_and_visible(
    level: int | None, drawn: list[int] | None
) -> None:
    rows = [replace(TURN, turn=turn, compaction_tokens=level if turn > 1 else None) for turn in (1, 2, 3)]

    figure = window_chart(turns_frame(rows), (), NO_MARKS, LIGHT)

    line = next((list(trace.y) for trace in figure.data if trace.name == "compaction"), None)
    assert line == drawn


def test_more_rows_of_events_do_not_make_the_chart_taller(rich: Timeline) -> None:
    def drawn(letters: list[str]) -> Any:
        marks = pd.DataFrame([{"letter": letter, "turn": 3, "number": 1, "text": ""} for letter in letters])
        return window_chart(rich.turns, rich.spans, marks, LIGHT)

    few, every = drawn(list(MARKS)[:4]), drawn(list(MARKS))

    assert every.layout.height == few.layout.height
    row = every.layout.yaxis2.domain[1] * (every.layout.height - 48) / len(MARKS)
    assert max(trace.marker.size for trace in every.data if trace.yaxis == "y2") <= row
    assert every.layout.yaxis2.tickfont.size <= row


def test_limit_zones_and_reserve_are_drawn(rich: Timeline) -> None:
    figure = window_chart(rich.turns, rich.spans, rich.marks, LIGHT)
    heights = {trace.name: trace.y[0] for trace in figure.data if trace.name in ("limit", "red")}
    limits = rich.spans[-1].limits
    assert limits is not None

    assert heights == {"limit": 20_000, "red": limits.at(limits.thresholds.red)}
    bands = [shape for shape in figure.layout.shapes if (shape.name or "").startswith("zone ")]
    assert [shape.name for shape in bands] == ["zone yellow", "zone orange", "zone red", "zone overflow"]
    assert any(trace.fillpattern.shape == "/" for trace in figure.data if trace.fill == "toself")
    assert any("limit 20k" in note.text for note in figure.layout.annotations)


def test_an_unknown_limit_has_no_zones(small_store: SqliteStore) -> None:
    timeline = read_timeline(small_store, "unknown-limit")
    figure = window_chart(timeline.turns, timeline.spans, timeline.marks, LIGHT)

    assert [shape for shape in figure.layout.shapes if (shape.name or "").startswith("zone")] == []
    assert not any(trace.name in ("limit", "red", "forecast") for trace in figure.data)
    assert sum(trace.stackgroup == "window" for trace in figure.data) > 0


def test_the_forecast_fan_ends_at_red(rich: Timeline) -> None:
    figure = window_chart(rich.turns, rich.spans, rich.marks, LIGHT)
    fan = next(trace for trace in figure.data if trace.name == "forecast")
    last = rich.turns.iloc[-1]

    assert (fan.x[0], fan.y[0]) == (last["turn"], last["used"])
    assert max(fan.y) <= last["red_tokens"]
    assert max(fan.x) > last["turn"]


def test_a_long_session_is_drawn_with_few_points() -> None:
    """Ten thousand turns give at most 2,000 points per trace, and the spike among them is kept."""
    turns = _synthetic_turns(10_000)
    turns.loc[4_321, ["used", "tool_results"]] = 99_000.0
    figure = window_chart(turns, (), NO_MARKS, LIGHT)

    assert max(len(trace.x) for trace in figure.data) <= MAXIMUM_POINTS
    results = next(trace for trace in figure.data if trace.name == "tool results")
    assert max(results.y) == 99_000.0


def _synthetic_turns(number: int) -> pd.DataFrame:
    turns = turns_frame([])
    turns = turns.reindex(range(number))
    turns["turn"] = np.arange(1, number + 1)
    turns["used"] = turns["tool_results"] = np.linspace(100, 900, number)
    return turns.fillna(dict.fromkeys(STACKING, 0.0) | {"added_tokens": 0.0})


def test_regular_peaks_are_all_kept() -> None:
    """Extremes that fall on the same turns leave room for more of them: all 160 peaks are drawn."""
    turns = _synthetic_turns(10_000)
    turns["used"] = turns["tool_results"] = 1_000.0 + 1_000 * (np.arange(10_000) % 60)
    figure = window_chart(turns, (), NO_MARKS, LIGHT)

    results = next(trace for trace in figure.data if trace.name == "tool results")
    assert (np.asarray(results.y) == 60_000).sum() == 10_000 // 60
    assert len(results.y) <= MAXIMUM_POINTS


def test_a_small_session_is_drawn_at_its_own_scale(small_store: SqliteStore) -> None:
    """A window that is almost empty would be a flat line at the limit's scale."""
    assert natural_scale(read_timeline(small_store, "short").turns) == "content"
    assert natural_scale(read_timeline(small_store, "refactor-api").turns) == "limit"


def test_a_limit_above_the_chart_is_named_at_its_top(small_store: SqliteStore) -> None:
    timeline = read_timeline(small_store, "short")

    figure = window_chart(timeline.turns, timeline.spans, timeline.marks, LIGHT)

    (label,) = [note for note in figure.layout.annotations if note.text.startswith("limit ")]
    assert label.text.endswith(" ↑")
    assert label.ay <= label.y == figure.layout.yaxis.range[1]


@pytest.mark.parametrize(("first", "last", "top"), [(400, 200, 208), (200, 400, 416), (np.nan, 200, 208)])
def test_a_few_turns_with_a_larger_limit_do_not_set_the_scale(first: float, last: float, top: float) -> None:
    turns = _synthetic_turns(100)
    turns["used"] = turns["tool_results"] = turns["used_before"] = np.linspace(1, 150, 100)
    turns["limit_tokens"] = [first, *[200.0] * 98, last]
    figure = window_chart(turns, (), NO_MARKS, LIGHT)

    assert natural_scale(turns) == "limit"
    assert figure.layout.yaxis.range[1] == pytest.approx(top)


class TestForecast:
    @pytest.mark.parametrize(
        ("changes", "ahead"),
        [
            ({}, 8),
            ({"used_final": 9_000}, 0),
            ({"used_final": 8_999}, 8),
            ({"turns_until_red_p90": math.inf}, 25),
            ({"turns_until_red_p10": math.inf}, 0),
            ({"turns_until_red_p90": 90.0}, 25),
            ({"red_tokens": None}, 0),
        ],
        ids=["near", "at red", "just below", "perhaps never", "flat", "far", "unknown"],
    )
    def test_the_forecast_ends_at_the_late_end_of_its_band(self, changes: dict[str, Any], ahead: int) -> None:
        turns = [replace(TURN, turn=number) for number in range(1, 100)]

        assert forecast_turns(turns_frame([*turns, replace(TURN, turn=100, **changes)])) == ahead

    def test_the_forecast_is_a_straight_line_to_red(self) -> None:
        far, near = _towards(1_000.0, 9_000.0, 20.0, 10), _towards(1_000.0, 9_000.0, 4.0, 10)

        assert [part.tolist() for part in far] == [[10.0], [5_000.0]]
        assert [part.tolist() for part in near] == [[4.0, 10.0], [9_000.0, 9_000.0]]

    def test_a_single_peak_is_kept(self) -> None:
        series = np.full((10_000, 1), 5.0)
        series[7_777], series[1_234] = 9.0, 1.0

        assert {1_234, 7_777} <= set(downsampled_rows(series, 100).tolist())


def test_a_line_connects_a_regret_with_its_eviction(small_store: SqliteStore) -> None:
    drawn = read_timeline(small_store, "refactor-api")

    figure = window_chart(drawn.turns, drawn.spans, drawn.marks, LIGHT, regrets=drawn.regrets)

    thread = next(trace for trace in figure.data if trace.name == "removed, then needed again")
    rows = dict(zip(figure.layout.yaxis2.ticktext, figure.layout.yaxis2.tickvals, strict=True))
    assert list(thread.x[:2]) == [17, 20]
    assert list(thread.y[:2]) == [rows["removed"], rows["needed again"]]
