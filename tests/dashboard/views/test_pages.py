"""Every page on an empty, a small, a long, a hostile and a failing store, run without a browser."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from tests.sampling import sampled

from windowpane.config.paths import local_base
from windowpane.core.events import AlertResolved, CheckpointSaved
from windowpane.report import gather
from windowpane.sources.imports.progress import ProgressFile
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.queries.filters import AuditFilters
from windowpane_dashboard.sections import findings, session_header

PAGES = ("fleet", "session", "compare", "trends", "replay", "alerts", "audit")
OpenPage = Callable[..., AppTest]


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_an_empty_store_shows_what_to_do(
    page: str, empty_store: SqliteStore, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    app = open_page(page)

    assert not app.exception
    assert "windowpane import" in page_text(app)
    assert "windowpane demo" in page_text(app)


@pytest.mark.parametrize("page", PAGES)
def test_a_small_store_opens(page: str, small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page(page)

    assert not app.exception
    assert not app.error
    assert not app.warning
    assert app.subheader[0].value


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_a_clock_outside_the_calendar_ends_no_page(
    page: str, empty_store: SqliteStore, builders: Any, open_page: OpenPage
) -> None:
    """A session of the year 33658 is shown without its times."""
    for name in ("one", "two"):
        empty_store.append(builders.rich(start=1e12, session_id=name))

    app = open_page(page)

    assert not app.exception
    assert not app.error
    assert app.subheader[0].value


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_pickers_hold_no_characters_that_act(
    page: str, empty_store: SqliteStore, builders: Any, open_page: OpenPage
) -> None:
    for name in ("re\u202eviewer\x1b[31m", "other\x00\u2066"):
        empty_store.append(builders.rich(start=time.time() - 800, session_id=name, agent=name))

    app = open_page(page)

    pickers = (*app.selectbox, *app.multiselect, *app.radio)
    assert not app.exception
    assert [option for picker in pickers for option in picker.options if not option.isprintable()] == []


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_a_missing_store_shows_what_to_do(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    path = tmp_path / "none.db"
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))

    app = open_page(page)

    assert not app.exception
    assert "does not exist yet" in page_text(app)
    assert not path.exists()


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_a_corrupt_store_is_reported(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    path = tmp_path / "corrupt.db"
    path.write_bytes(b"this is not a database" * 500)
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))

    app = open_page(page)

    assert not app.exception
    assert app.error
    assert "windowpane doctor" in page_text(app)


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_a_failed_read_is_reported(
    page: str,
    small_store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    open_page: OpenPage,
    page_text: Callable[..., str],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(SqliteStore, "sessions", broken)
    monkeypatch.setattr(SqliteStore, "size", broken)

    app = open_page(page)

    assert not app.exception
    assert app.error
    assert "disk I/O error" in page_text(app)


def test_the_fleet_page_has_a_headline_and_lists_sessions(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("fleet")

    assert not app.exception
    assert "live session" in app.subheader[0].value
    assert len(app.dataframe[0].value) == 3


def test_the_fleet_has_a_column_of_alerts_only_where_one_fires(
    small_store: SqliteStore, builders: Any, open_page: OpenPage
) -> None:
    assert "alerts" not in open_page("fleet").dataframe[0].proto.column_order

    events = builders.rich(start=time.time() - 800, session_id="in red")
    small_store.append([event for event in events if not isinstance(event.data, AlertResolved)])

    assert "alerts" in open_page("fleet").dataframe[0].proto.column_order


def test_fleet_filters_come_from_the_address(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("fleet", agent="writer", dates="2026-01-01..2999-01-01")

    assert not app.exception
    assert set(app.dataframe[0].value["agent"]) == {"writer"}
    assert app.multiselect[0].value == ["agent: writer", "days: 2026-01-01..2999-01-01"]


def test_an_unknown_cache_share_is_omitted(
    empty_store: SqliteStore, open_page: OpenPage, builders: Any, page_text: Callable[..., str]
) -> None:
    events = builders.plain("quiet", start=time.time() - 900, turns=2, limit_tokens=9_000, end=True)
    unused = [event for event in events if event.type != "turn.ended"]
    empty_store.append(unused)

    text = page_text(open_page("fleet"))

    assert "from the cache" not in text
    assert "deleted after 30 days without an event" in text


def test_a_fleet_filter_is_written_to_the_address(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("fleet")

    app.multiselect[0].set_value(["agent: writer", "zone: ○ green"]).run()

    assert len(app.dataframe[0].value) == 1
    assert app.query_params["agent"] in ("writer", ["writer"])
    assert app.query_params["zone"] in ("green", ["green"])


def test_filters_of_events_are_written_to_the_address(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("audit")

    app.multiselect[0].set_value(["2026-01-01..2026-01-31", "turns 3..9", "event: turn.ended", "newest first"])
    app.run()

    assert app.query_params["turn_from"] in ("3", ["3"])
    assert app.query_params["turn_to"] in ("9", ["9"])
    assert app.query_params["types"] in ("turn.ended", ["turn.ended"])
    assert app.query_params["order"] in ("newest", ["newest"])
    assert app.query_params["dates"] in ("2026-01-01..2026-01-31", ["2026-01-01..2026-01-31"])


def test_each_live_session_has_a_card_with_its_next_event(
    small_store: SqliteStore, open_page: OpenPage, page_text: Callable[..., str], builders: Any
) -> None:
    small_store.append(
        builders.plain("still-here", start=time.time() - 60, turns=3, limit_tokens=9_000, end=False)
    )

    app = open_page("fleet")

    text = page_text(app)
    assert not app.exception
    assert "refactor-api reaches red in about" in app.subheader[0].value.replace("\\", "")
    assert re.findall(r"\d+ turns? \(\S+\) until red|no forecast yet", text.replace("\\", ""))[1:] == [
        "no forecast yet"
    ]
    assert [link.label for link in app.get("page_link")][-2:] == ["**refactor\\-api**", "**still\\-here**"]


def test_the_session_page_starts_with_headline_metrics_and_window(
    small_store: SqliteStore, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    app = open_page("session", session="refactor-api")

    assert not app.exception
    assert "1 compaction contradicted 1 and lost 3 of 12 facts" in app.subheader[0].value
    labels = [metric.label for metric in app.metric]
    assert labels[:4] == ["Window now", "Red in", "Cost", "Lost or contradicted"]
    assert "Turn 23" in page_text(app)
    assert [tab.label for tab in app.tabs] == [
        "Window", "Losses", "Cost", "Log",
    ]  # fmt: skip


def test_the_session_page_marks_the_total_of_a_whole_session() -> None:
    row = SimpleNamespace(
        cost_dollars=None, stated_input_tokens=1_200, stated_output_tokens=30, stated_cost_dollars=1.5
    )
    label, text, help_text = session_header._cost(row)

    assert (label, text) == ("Cost", "$1.50*")
    assert "sent 1,200 tokens, written 30, cost $1.50" in help_text


def test_the_session_page_forecasts_what_the_fleet_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = SimpleNamespace(turns_until_red=7.4, turns_until_compaction=None, compaction_tokens=None,
                          compaction_evidence=None, last_at=time.time())  # fmt: skip
    latest = SimpleNamespace(turns_until_compaction=None, turns_until_red_p10=2.0, turns_until_red_p90=22.0)
    turns = pd.DataFrame({"at": [40.0 * turn for turn in range(10)]})
    timeline = SimpleNamespace(forecasts=SimpleNamespace(text="", open=0), latest=latest, turns=turns)

    assert session_header._forecast(row, timeline)[:2] == ("Red in", "7 turns (2–22), about 5 min")
    row.last_at -= 600
    assert session_header._forecast(row, timeline)[:2] == ("Red in", "7 turns (2–22)")


def test_a_session_that_is_over_does_not_forecast(
    empty_store: SqliteStore, builders: Any, open_page: OpenPage
) -> None:
    for name, start in (("over", time.time() - 90_000), ("live", time.time() - 800)):
        empty_store.append(builders.rich(start=start, session_id=name))

    forecasts = {}
    for name in ("over", "live"):
        app = open_page("session", session=name)
        chart = json.loads(app.get("plotly_chart")[0].proto.spec)
        drawn = any("forecast" in trace.get("name", "") for trace in chart["data"])
        forecasts[name] = ([metric.value for metric in app.metric if metric.label == "Red in"], drawn)

    assert forecasts["over"] == ([], False)
    assert forecasts["live"][0] not in ([], ["–"])
    assert forecasts["live"][1]


def test_the_record_of_the_forecasts_is_visible(
    small_store: SqliteStore, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    row = small_store.session("refactor-api")
    assert row is not None
    record = gather(small_store, row).forecast_record.text

    assert record
    app = open_page("session", session=row.session_id)
    (forecast,) = [metric for metric in app.metric if metric.label == "Red in"]
    assert f"{record[0].upper()}{record[1:]}; 8 of 10 is the aim." in forecast.help
    assert not [metric for metric in open_page("session", session="short").metric if metric.label == "Red in"]


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ({}, "Removed by now"),
        ({"tab": "turns"}, "Select a row to see its window"),
        ({"tab": "events"}, "All events, with search and export"),
        ({"tab": "compressions"}, "content capture is off"),
        ({"compression": "1"}, "content capture is off"),
        ({"events": "noteworthy"}, "All events, with search and export"),
        ({"tab": "regrets"}, "were removed and needed again"),
        ({"tab": "cost"}, "Sending the conversation"),
        ({"tab": "no such tab"}, "Removed by now"),
    ],
)
def test_the_address_opens_a_tab(
    query: dict[str, str],
    content: str,
    small_store: SqliteStore,
    open_page: OpenPage,
    page_text: Callable[..., str],
) -> None:
    app = open_page("session", session="refactor-api", **query)

    assert not app.exception
    assert content in page_text(app)
    assert ("Removed by now" in page_text(app)) == (content == "Removed by now")


def test_a_deep_link_opens_the_turn(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session="refactor-api", turn="17")

    assert not app.exception
    assert app.slider[0].value == 17
    assert any("Turn 17" in heading.value for heading in app.subheader)


def test_moving_the_turn_moves_everything_below(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session="refactor-api")

    app.slider[0].set_value(12).run()
    assert any("Turn 12" in heading.value for heading in app.subheader)
    assert app.query_params["turn"] in ("12", ["12"])

    next(button for button in app.button if button.label == "Event after").click().run()
    assert app.slider[0].value == 14
    assert not app.exception


def test_an_unknown_limit_still_shows_tokens(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session="unknown-limit")

    assert not app.exception
    assert "is unknown" in app.subheader[0].value
    assert any("Turn 6: 1,460 tokens" in heading.value for heading in app.subheader)


def test_an_unknown_session_is_reported(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session="nobody")

    assert not app.exception
    assert "not in the store" in app.warning[0].value


def test_a_session_of_one_turn_has_no_slider(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session="short")

    assert not app.exception
    assert not app.slider


@pytest.mark.parametrize("page", sampled(PAGES, 3))
def test_markup_in_names_stays_text(
    page: str, empty_store: SqliteStore, open_page: OpenPage, builders: Any
) -> None:
    empty_store.append(builders.hostile(start=time.time() - 800))
    hostile = f"id {builders.hostile_name}"

    app = open_page(page, session=hostile) if page != "fleet" else open_page(page)

    assert not app.exception
    for kind in (app.subheader, app.caption, app.markdown, app.error, app.warning):
        for element in kind:
            assert "<script>" not in str(element.value)
            assert "[link](" not in str(element.value)


@pytest.mark.parametrize("page", sampled(PAGES, 4))
def test_a_long_session_opens(
    page: str, large_store_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage
) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", str(large_store_path))

    app = open_page(page, session="marathon") if page == "session" else open_page(page)

    assert not app.exception
    if page == "session":
        assert any("Turn 3,000" in h.value or "Turn " in h.value for h in app.subheader)


def test_the_audit_page_searches_and_verifies(small_store: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("audit", types="alert.fired,alert.resolved")

    assert not app.exception
    assert len(app.dataframe[0].value) == 2
    next(button for button in app.button if button.label == "Verify chain").click().run()
    assert "the chain is intact, which excludes accidents, but not every deliberate" in app.subheader[0].value


NARROWED = (
    {}, {"text": "tool"}, {"session": "refactor-api"}, {"types": "turn.ended"},
    {"dates": "2001-01-01..2999-12-31"},
)  # fmt: skip


@pytest.mark.parametrize("narrowed", sampled(NARROWED, 3))
def test_the_audit_page_lists_the_newest_first(
    small_store: SqliteStore, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, narrowed: dict[str, str]
) -> None:
    while small_store.index_text():
        pass
    filters = AuditFilters.from_query(narrowed)
    expected = [one.seq for one in small_store.events(filters.to_store(limit=10_000))][::-1]
    app = open_page("audit", **narrowed)

    app.multiselect[0].set_value([*app.multiselect[0].value, "newest first"]).run()
    first = list(app.dataframe[0].value["seq"])
    earlier = next((button for button in app.button if button.label == "Earlier"), None)
    assert earlier is not None
    listed = first
    if not earlier.disabled:
        earlier.click().run()
        listed = first + list(app.dataframe[0].value["seq"])
        next(button for button in app.button if button.label == "Later").click().run()

    assert not app.exception
    assert listed == expected[: len(listed)]
    assert len(listed) == min(200, len(expected))
    assert list(app.dataframe[0].value["seq"]) == first


def test_the_audit_page_names_the_broken_event(small_store: SqliteStore, open_page: OpenPage) -> None:
    with closing(sqlite3.connect(small_store.path)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE events SET body = zeroblob(length(body)) WHERE seq = 5")
        for _, definition in triggers:
            connection.execute(definition)
    connection.close()
    app = open_page("audit")

    next(button for button in app.button if button.label == "Verify chain").click().run()

    assert "broken" in app.subheader[0].value
    assert any("From seq 5 on: " in text.value for text in app.text)
    app.button(key="broken_0").click().run()
    assert app.dataframe[0].value["seq"].iloc[0] == 5


def test_the_audit_page_names_a_row_that_its_events_do_not_give(
    small_store: SqliteStore, open_page: OpenPage
) -> None:
    with closing(sqlite3.connect(small_store.path)) as connection, connection:
        connection.execute("UPDATE sessions SET cost_dollars = 0.01 WHERE session_id = 'refactor-api'")
    connection.close()
    app = open_page("audit")

    next(button for button in app.button if button.label == "Verify chain").click().run()

    assert "the record is broken in 1 session" in app.subheader[0].value
    assert any("sessions.cost_dollars is 0.01, the events give" in text.value for text in app.text)
    assert not any("Intact" in text.value for text in app.markdown)


def test_audit_rows_are_paged(
    large_store_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage
) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", str(large_store_path))
    app = open_page("audit")
    first = list(app.dataframe[0].value["seq"])

    next(button for button in app.button if button.label == "Later").click().run()
    second = list(app.dataframe[0].value["seq"])
    next(button for button in app.button if button.label == "Earlier").click().run()

    assert len(first) == 100
    assert second[0] == first[-1] + 1
    assert list(app.dataframe[0].value["seq"]) == first


def test_an_unchanged_session_is_read_once(
    small_store: SqliteStore, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, builders: Any
) -> None:
    calls: list[str] = []
    plain = SqliteStore.turns

    def counted(self: SqliteStore, session_id: str, **options: int) -> object:
        calls.append(session_id)
        return plain(self, session_id, **options)

    monkeypatch.setattr(SqliteStore, "turns", counted)
    now = time.time()
    monkeypatch.setattr(findings, "time", SimpleNamespace(time=lambda: now))  # causes are read again each minute
    app = open_page("session", session="refactor-api")
    seen = len(calls)
    app.run()
    assert len(calls) == seen

    small_store.append(builders.plain("new", start=time.time(), turns=1, limit_tokens=None, end=False))
    app.run()
    assert len(calls) == seen

    last = builders.rich(start=time.time())[-1]
    small_store.append([last._replace(n=9_000, data=CheckpointSaved(2, "milestone", 10, "d" * 32))])
    app.run()
    assert len(calls) == 2 * seen


def test_a_session_that_is_opened_before_it_is_imported_is_read_at_the_press_of_a_button(
    small_store: SqliteStore,
    open_page: OpenPage,
    page_text: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, missing = ("0a1b2c3d-0000-4000-8000-00000000000" + digit for digit in "12")
    folder = tmp_path / "projects" / "-project"
    folder.mkdir(parents=True)
    row: dict[str, Any] = {"type": "user", "sessionId": session, "uuid": "u", "timestamp": "2026-01-01T00:00:00Z"}
    row["message"] = {"role": "user", "content": "Opened before its turn"}
    (folder / f"{session}.jsonl").write_text(json.dumps(row) + "\n")
    os.utime(folder / f"{session}.jsonl", (0, 0))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))

    opened = open_page("session", session=session)
    assert small_store.session(session) is None
    (button,) = (button for button in opened.button if button.label == "Read its recording")
    assert "Opened before its turn" in page_text(button.click().run())
    assert small_store.session(session) is not None
    assert "not in the store" in page_text(open_page("session", session=missing))


def test_the_fleet_shows_how_far_an_import_is(
    small_store: SqliteStore, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProgressFile(local_base(small_store.address)) as note:
        note.show(3, 12)
        app = open_page("fleet")

    assert not app.exception
    assert [bar.proto.text for bar in app.get("progress")] == [
        "3 of 12 recordings of this machine are read, the newest first"
    ]
