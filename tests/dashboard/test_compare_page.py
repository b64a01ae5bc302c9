"""Two sessions side by side: the same axes, what differs, an address for both."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.charts.window_chart import SharedAxes, window_chart
from windowpane_dashboard.queries.comparison import ComparedSession, compare_headline, differences
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.style.theme import LIGHT


def side(store: SqliteStore, session_id: str) -> ComparedSession:
    row = store.session(session_id)
    assert row is not None
    return ComparedSession(row, read_timeline(store, session_id), tuple(store.alerts(session_id=session_id)))


def test_differences_name_the_better_side(small_store: SqliteStore) -> None:
    """Figures of both in words, the difference, and which is better where less or more is better."""
    frame = differences(side(small_store, "refactor-api"), side(small_store, "short")).set_index("measure")

    assert frame.loc["turns", "A"] == "23"
    assert frame.loc["turns", "B"] == "1"
    assert frame.loc["turns", "better"] == ""
    assert frame.loc["peak utilization", "better"] == "B"
    assert "points" in frame.loc["peak utilization", "B against A"]
    assert frame.loc["worst zone", "B against A"] == "milder"
    assert frame.loc["regrets", "better"] == "B"
    assert frame.loc["cost", "B against A"] == "–"


def test_a_session_differs_in_nothing_from_itself(small_store: SqliteStore) -> None:
    """Everything known is the same, and the answer says so."""
    both = side(small_store, "refactor-api")

    frame = differences(both, both)

    assert set(frame["B against A"]) <= {"same", "–"}
    assert compare_headline(frame, ["x", "y"]).startswith("The two sessions are alike")


def test_the_answer_counts_who_is_better(small_store: SqliteStore) -> None:
    """Whichever side is A, the same session is ahead."""
    one, other = side(small_store, "refactor-api"), side(small_store, "short")

    assert compare_headline(differences(one, other), ["refactor-api", "short"]).startswith("B (short) is better")
    assert compare_headline(differences(other, one), ["short", "refactor-api"]).startswith("A (short) is better")


def test_both_pictures_have_the_same_axes(small_store: SqliteStore) -> None:
    """The frame holds the longer and the fuller of the two."""
    both = [read_timeline(small_store, name) for name in ("refactor-api", "unknown-limit")]
    axes = SharedAxes.around(*(one.turns for one in both))

    drawn = [
        window_chart(one.turns, one.spans, one.marks, LIGHT, selected=None, axes=axes).layout for one in both
    ]

    assert drawn[0].yaxis.range == drawn[1].yaxis.range
    assert drawn[0].yaxis.range[1] >= both[0].turns["used_before"].max()
    assert drawn[0].xaxis.range[0] == drawn[1].xaxis.range[0] == 0.5
    assert min(layout.xaxis.range[1] for layout in drawn) >= 23


def test_the_page_takes_both_from_the_address(small_store: SqliteStore, open_page: Callable[..., Any]) -> None:
    """A shared address shows the same two; swapping turns the address around."""
    app = open_page("compare", one="short", other="refactor-api")

    assert not app.exception
    assert [box.value for box in app.selectbox] == ["short", "refactor-api"]
    assert "is better in" in app.subheader[0].value

    next(button for button in app.button if button.label == "Swap").click().run()

    assert not app.exception
    assert [box.value for box in app.selectbox] == ["refactor-api", "short"]
    assert app.query_params["one"] in ("refactor-api", ["refactor-api"])


def test_one_session_cannot_be_compared(
    empty_store: SqliteStore, open_page: Callable[..., Any], builders: Any, said: Callable[..., str]
) -> None:
    """The page says what is missing."""
    empty_store.append(builders.plain("only", start=time.time(), turns=1, limit_tokens=None, end=True))

    app = open_page("compare")

    assert not app.exception
    assert "only one session" in said(app)


@pytest.mark.parametrize("missing", ["one", "other"])
def test_a_stale_address_is_said(small_store: SqliteStore, open_page: Callable[..., Any], missing: str) -> None:
    """A session that is gone is named, and another one stands in."""
    app = open_page("compare", **{"one": "short", "other": "refactor-api", missing: "gone"})

    assert not app.exception
    assert "not in the store" in app.warning[0].value
