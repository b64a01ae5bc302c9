"""Context health on Trends, the level of compaction on Replay, and regrowth on the session page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.report.test_context_health import rising

from windowpane.report.context_health import health_of
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.charts.context_health import health_chart
from windowpane_dashboard.sections.context_health import health_frame
from windowpane_dashboard.style.theme import LIGHT


def test_trends_state_that_there_are_too_few_sessions(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[[Any], str]
) -> None:
    app = open_page("trends")

    assert not app.exception
    assert "Worse when full?" in [one.value for one in app.subheader]
    assert "Too few sessions to compare" in page_text(app)


def test_the_chart_and_the_table_have_the_same_rates() -> None:
    health = health_of(rising(12))

    figure, frame = health_chart(health, LIGHT), health_frame(health)

    assert list(figure.data[0].x) == ["20–30%", "70–80%"]
    assert list(figure.data[0].y) == [2.5, 12.5]
    assert frame.set_index("calls made").loc["70–80% of the window", "errors"] == "12.5 (10.0 to 15.0)"


def test_replay_has_the_advice_on_the_level_of_compaction(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[[Any], str]
) -> None:
    app = open_page("replay")

    assert not app.exception
    assert "When to compact" in [one.value for one in app.subheader]
    assert "No level can be compared" in page_text(app)
