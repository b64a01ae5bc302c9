"""The compare page: the same axes for two sessions, their differences, one address for both."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.dashboard.timelines import SESSION, TURN, timeline

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter
from windowpane_dashboard.charts.window_chart import SharedAxes, window_chart
from windowpane_dashboard.queries.comparison import ComparedSession, compare_headline, differences
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.style.theme import LIGHT


def side(store: SqliteStore, session_id: str) -> ComparedSession:
    row = store.session(session_id)
    assert row is not None
    return ComparedSession(
        row, read_timeline(store, session_id), tuple(store.alerts(AlertFilter(session_id=session_id)))
    )


def test_differences_are_those_of_b_against_a(small_store: SqliteStore) -> None:
    frame = differences(side(small_store, "refactor-api"), side(small_store, "short")).set_index("measure")

    assert frame.loc["turns", "A"] == "23"
    assert frame.loc["turns", "B"] == "1"
    assert "points" in frame.loc["window at its fullest", "B against A"]
    assert frame.loc["cost", "B against A"] == "–"


def test_a_session_equals_itself(small_store: SqliteStore) -> None:
    both = side(small_store, "refactor-api")

    frame = differences(both, both)

    assert set(frame["B against A"]) <= {"same", "–"}
    assert compare_headline(frame).startswith("The two sessions are alike")


def test_the_headline_names_the_differences(small_store: SqliteStore) -> None:
    one, other = side(small_store, "refactor-api"), side(small_store, "short")

    headline = compare_headline(differences(one, other))
    assert headline.startswith("B against A: ")


def test_both_charts_have_the_same_axes(small_store: SqliteStore) -> None:
    both = [read_timeline(small_store, name) for name in ("refactor-api", "unknown-limit")]
    axes = SharedAxes.around(*(one.turns for one in both))

    drawn = [window_chart(one.turns, one.spans, one.marks, LIGHT, axes=axes).layout for one in both]

    assert drawn[0].yaxis.range == drawn[1].yaxis.range
    assert drawn[0].yaxis.range[1] >= both[0].turns["used_before"].max()
    assert drawn[0].xaxis.range[0] == drawn[1].xaxis.range[0] == 0.5
    assert drawn[0].xaxis.range == drawn[1].xaxis.range
    assert drawn[0].xaxis.range[1] >= 23


def test_a_session_that_is_over_does_not_forecast(small_store: SqliteStore) -> None:
    one = read_timeline(small_store, "refactor-api")

    figure = window_chart(one.turns, one.spans, one.marks, LIGHT, forecast=False)

    assert figure.layout.xaxis.range[1] == one.turns["turn"].iloc[-1] + 0.5
    assert not [trace.name for trace in figure.data if trace.name and "forecast" in trace.name]


def test_the_address_selects_both_sessions(small_store: SqliteStore, open_page: Callable[..., Any]) -> None:
    app = open_page("compare", one="short", other="refactor-api")

    assert not app.exception
    assert [box.value for box in app.selectbox] == ["short", "refactor-api"]
    assert "B against A" in app.subheader[0].value


def test_one_session_cannot_be_compared(
    empty_store: SqliteStore, open_page: Callable[..., Any], builders: Any, page_text: Callable[..., str]
) -> None:
    empty_store.append(builders.plain("only", start=time.time(), turns=1, limit_tokens=None, end=True))

    app = open_page("compare")

    assert not app.exception
    assert "Choose two sessions" in page_text(app)


@pytest.mark.parametrize("missing", ["one", "other"])
def test_an_unknown_session_in_the_address_is_reported(
    small_store: SqliteStore, open_page: Callable[..., Any], missing: str
) -> None:
    app = open_page("compare", **{"one": "short", "other": "refactor-api", missing: "gone"})

    assert not app.exception
    assert "not in the store" in app.warning[0].value


class TestCompare:
    def test_changes_are_relative_to_the_first_session(self) -> None:
        one = ComparedSession(
            replace(SESSION, input_tokens=1_600, cache_read_tokens=640),
            timeline(TURN, replace(TURN, turn=2, stale_tokens=0)),
            (),
        )
        other = ComparedSession(
            replace(SESSION, input_tokens=2_000, cost_dollars=1.5, cache_read_tokens=1_200),
            timeline(replace(TURN, used_final=2_000)),
            (),
        )
        frame = differences(one, other).set_index("measure")

        assert frame.loc["tokens sent", ["A", "B", "B against A"]].tolist() == [
            "1,600", "2,000", "+400 (+25%)",
        ]  # fmt: skip
        assert frame.loc["cost", "B against A"] == "+$0.50 (+50%)"
        assert frame.loc["input from the cache", ["A", "B"]].tolist() == ["40%", "60%"]


def test_the_page_draws_sessions_that_are_over_on_the_same_axes(
    empty_store: SqliteStore,
    builders: Any,
    open_page: Callable[..., Any],
) -> None:
    now = time.time()
    empty_store.append(builders.rich(start=now - 90_000, session_id="over"))
    empty_store.append(builders.plain("short", start=now - 90_000, turns=3, limit_tokens=200_000, end=True))

    app = open_page("compare", one="over", other="short")

    figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    one, other = (figure["layout"] for figure in figures)
    assert (one["xaxis"]["range"], one["yaxis"]["range"]) == (other["xaxis"]["range"], other["yaxis"]["range"])
    assert not [trace for figure in figures for trace in figure["data"] if "forecast" in trace.get("name", "")]
