"""Context health on Trends, the level of compaction on Replay, and regrowth on the session page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.report.test_context_health import rising

from windowpane.report.context_health import health_of
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.sections.context_health import health_frame


def test_trends_state_that_there_are_too_few_sessions(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[[Any], str]
) -> None:
    app = open_page("trends")

    assert not app.exception
    assert "Worse when full?" in [one.value for one in app.subheader]
    assert "Too few sessions to compare" in page_text(app)


def test_the_table_has_the_rates_of_the_sentence() -> None:
    health = health_of(rising(12))

    frame = health_frame(health)

    errors = frame.iloc[0].to_dict()
    assert health.headline.startswith("Errors rise from 2.5 to 12.5 per 100 calls above 50% of the window")
    assert errors == {
        "per 100 calls": "errors",
        "where": "above 50% of the window",
        "before": "2.5",
        "there": "12.5",
        "result": "clear difference",
        "sessions": 12,
    }


def test_replay_has_the_advice_on_the_level_of_compaction(
    small_store: SqliteStore, open_page: Callable[..., Any], page_text: Callable[[Any], str]
) -> None:
    app = open_page("replay")

    assert not app.exception
    assert "No level of compaction can be compared" in page_text(app)
