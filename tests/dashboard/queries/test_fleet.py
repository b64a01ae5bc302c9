"""The fleet: its table, its totals, and what the store holds for how long."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from windowpane.core.events import AlertFired
from windowpane.core.times import live_since
from windowpane.core.vocabulary import Severity, Zone
from windowpane.report import losses
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane_dashboard.page.widgets import alike
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import (
    Fleet,
    LiveSession,
    below_parents,
    firing_text,
    fleet_frame,
    read_fleet,
    retention_text,
)
from windowpane_dashboard.sections.fleet_table import fleet_styled
from windowpane_dashboard.style.theme import LIGHT


@pytest.mark.parametrize(
    ("days", "most_bytes", "text"),
    [
        (30, 2_000_000_000, "after 30 days without an event or beyond 2.0 GB"),
        (1, 5_000_000, "after 1 day without an event or beyond 5.0 MB"),
        (0.5, 900, "after 0.5 days without an event or beyond 900 B"),
    ],
)
def test_the_retention_has_both_limits(days: float, most_bytes: int, text: str) -> None:
    assert retention_text(days, most_bytes) == text


@pytest.mark.usefixtures("small_store")
def test_the_fleet_page_shows_the_retention(
    monkeypatch: pytest.MonkeyPatch,
    open_page: Callable[..., Any],
    page_text: Callable[..., str],
) -> None:
    monkeypatch.setenv("WINDOWPANE_RETENTION_DAYS", "7")

    text = page_text(open_page("fleet")).replace("\\", "")

    assert "after 7 days without an event or beyond 2.0 GB" in text


def test_an_unreadable_configuration_is_reported(
    small_store: SqliteStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_page: Callable[..., Any],
    page_text: Callable[..., str],
) -> None:
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "gone.yaml"))

    app = open_page("fleet")

    assert not app.exception
    assert "gone" in page_text(app)
    assert "deleted after" not in page_text(app)


def test_the_worst_alerts_are_counted_apart() -> None:
    assert firing_text(Counter(warning=2)) == "2 warning"
    assert firing_text(Counter(critical=1, warning=1, info=1)) == "1 critical +2"
    assert firing_text(None) == ""


def listed_now(store: SqliteStore) -> Fleet:
    since = live_since(time.time())
    return read_fleet(store, FleetFilters().to_store(limit=500, since=since), since)


def test_an_alert_fires_only_in_a_live_session(empty_store: SqliteStore, builders: Any) -> None:
    now = time.time()
    for name, start in (("live", now - 800), ("silent", now - 8_000)):
        events = builders.rich(start=start, session_id=name)
        fired = next(event for event in events if isinstance(event.data, AlertFired))
        last = events[-1]
        empty_store.append([*events, last._replace(n=last.n + 1, data=replace(fired.data, crossing_turn=20))])

    listed = listed_now(empty_store)

    assert listed.fired == {"live": Counter(critical=1)}
    assert list(fleet_frame(listed, now)["alerts"]) == ["1 critical", ""]
    assert [(one.row.session_id, one.alert.severity) for one in listed.live if one.alert] == [
        ("live", "critical")
    ]
    assert [row.firing for row in listed.rows] == [1, 1]


def test_sub_agents_are_listed_below_their_parents(small_store: SqliteStore) -> None:
    template = small_store.sessions()[0]
    parents = {
        "helper": "boss",
        "alone": None,
        "boss": None,
        "deep": "helper",
        "a": "b",
        "b": "a",
        "lost": "gone",
    }
    rows = [replace(template, session_id=name, parent_session_id=parent) for name, parent in parents.items()]

    ordered = [row.session_id for row in below_parents(rows)]

    assert ordered == ["alone", "boss", "helper", "deep", "lost", "a", "b"]


def test_the_live_session_with_the_nearest_event_is_listed_first(
    small_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = small_store.sessions(SessionFilter(limit=3))
    now = time.time()
    later, silent, sooner = (
        replace(row, parent_session_id=None, ended=False, last_at=at, turns_until_compaction=turns)
        for row, at, turns in zip(rows, (now, now - 9_000, now), (9.0, 1.0, 2.0), strict=True)
    )
    monkeypatch.setattr(SqliteStore, "sessions", lambda *_: [later, sooner, silent])

    assert [row.session_id for row in listed_now(small_store).rows] == [
        row.session_id for row in (sooner, later, silent)
    ]


def test_only_live_sessions_have_a_forecast(small_store: SqliteStore) -> None:
    listed = listed_now(small_store)
    frame = fleet_frame(listed, time.time()).set_index("agent")

    assert frame.loc["reviewer", "next"] not in ("not live", "–")
    assert set(frame.loc["writer", "next"]) == {"not live"}
    assert frame.loc["writer", "window"].isna().sum() == 1


def test_losses_are_counted_where_they_were_measured(small_store: SqliteStore) -> None:
    listed = listed_now(small_store)
    first = listed.rows[0]
    unknown = replace(first, session_id="not evaluated", compressions=1, regrets=0)
    listed = replace(listed, rows=(*listed.rows, unknown))
    frame = fleet_frame(listed, time.time())

    assert dict(zip((row.session_id for row in listed.rows), frame["losses"], strict=True)) == {
        "refactor-api": "4, 1 needed again",
        "short": "0",
        "unknown-limit": "0",
        "not evaluated": "–",
    }
    assert frame["lost"].rank().tolist()[0] == 1.0
    assert listed.forgot_most is not None
    assert listed.forgot_most[0] == first


@pytest.mark.parametrize(("limit", "known"), [(2, {"b"}), (3, {"b"}), (4, {"a", "b"}), (5, {"a", "b"})])
def test_losses_of_a_partly_read_session_are_unknown(
    empty_store: SqliteStore, builders: Any, monkeypatch: pytest.MonkeyPatch, limit: int, known: set[str]
) -> None:
    monkeypatch.setattr(losses, "EVALUATIONS", limit)
    for name in ("a", "b"):
        empty_store.append(builders.rich(start=time.time() - 800, session_id=name, compactions=(11, 15)))
    rows = empty_store.sessions()

    read = losses.losses_of(empty_store, [replace(row, compressions=1) for row in rows])

    assert {name: one.lost for name, one in read.items()} == dict.fromkeys(known, 6)


def test_a_column_whose_cells_are_all_alike_is_not_shown() -> None:
    frame = pd.DataFrame({"session": ["a", "a"], "next": ["not live", "not live"], "cost": [1.0, None]})

    assert alike(frame) == ["session", "next"]
    assert not alike(frame[:1])


def test_an_idle_session_has_no_minutes(small_store: SqliteStore) -> None:
    row = replace(small_store.sessions()[0], turns_until_compaction=7.0)
    live = LiveSession(row, None, time="about 5 min")

    assert live.forecast(row.last_at + 10) == "7 turns until compaction, about 5 min at this pace"
    assert live.forecast(row.last_at + 600) == "7 turns until compaction"


def test_estimates_are_marked_in_the_fleet_table(small_store: SqliteStore) -> None:
    listed = listed_now(small_store)
    estimated = replace(listed.rows[0], count_source="estimate")
    stated = replace(listed.rows[1], cost_dollars=None, subagent_cost_dollars=None, stated_cost_dollars=2.5)
    frame = fleet_frame(replace(listed, rows=(estimated, stated, *listed.rows[2:])), time.time())

    html = fleet_styled(frame, LIGHT).to_html()

    assert html.count("≈") == html.count("$2.50*") == 1


@pytest.mark.parametrize(("worst", "zone"), [("critical", "red"), ("warning", "orange"), ("info", None)])
def test_alerts_are_colored_by_their_severity(
    small_store: SqliteStore, worst: Severity, zone: Zone | None
) -> None:
    listed = listed_now(small_store)
    rows = [replace(row, zone=None, worst_zone=None, firing=0) for row in listed.rows]
    rows[1] = replace(rows[1], firing=3)
    fired = {rows[1].session_id: Counter({worst: 1, "info": 2})}
    frame = fleet_frame(replace(listed, rows=tuple(rows), fired=fired), time.time())
    frame["alerts"] = "other text"

    html = fleet_styled(frame, LIGHT).to_html()

    column = list(frame.columns).index("alerts")
    colored = {
        name: set(re.findall(rf"_row(\d+)_col{column}\b[^{{]*\{{\s*color: {LIGHT.zone_text[name]}", html))
        for name in ("red", "orange")
    }
    assert colored == {name: {"1"} if name == zone else set() for name in ("red", "orange")}


def test_the_page_lists_a_live_session_before_older_ones_under_more_pressure(
    empty_store: SqliteStore, builders: Any, open_page: Callable[..., Any]
) -> None:
    now = time.time()
    empty_store.append(builders.rich(start=now - 90_000, session_id="over"))
    empty_store.append(builders.plain("quiet", start=now - 60, turns=3, limit_tokens=200_000, end=False))

    app = open_page("fleet")

    assert [cell.partition("#")[2] for cell in app.dataframe[0].value["session"]] == ["quiet", "over"]
    assert "No session is live" not in app.subheader[0].value
