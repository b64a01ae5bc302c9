"""Alerts about cost budgets and quotas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from windowpane.alerts.rules import configured
from windowpane.config.schema import CostBudget
from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    Event,
    QuotaMeasured,
    QuotaWindow,
    SessionDescribed,
    Usage,
)
from windowpane.core.times import midnight, within_calendar
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.outputs.http.spending import SESSION, SpendingAlerts
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter

NOON = midnight(1_770_000_000.0) + 12 * 3_600
DAY = 86_400.0


@pytest.fixture
def store(tmp_path: Path):
    opened = SqliteStore(tmp_path / "store.db")
    yield opened
    opened.close()


class Clock:
    now = NOON

    def __call__(self) -> float:
        return self.now


def spend(
    store: SqliteStore, session: str, *, dollars: float, at: float, project: str = "", agent: str = "a"
) -> None:
    """Store a session with one call an hour before *at* and one then."""
    events: list[Event] = []
    tracker = SessionTracker(SessionInfo(session, agent, "m", "test", session), emit=events.extend, digest=str)
    tracker.record(SessionDescribed(project=project), at - 3_600)
    for when in (at - 3_600, at):
        tracker.add("user_message", "go", 1, at=when)
        tracker.end_turn(Usage(1_000, 5), cost_dollars=dollars / 2, at=when)
    tracker.flush()
    store.append(events)


def alerts_of(
    store: SqliteStore, clock: Clock, *budgets: CostBudget
) -> tuple[SpendingAlerts, list[tuple[str, str]]]:
    sent: list[tuple[str, str]] = []

    def receive(events: Sequence[Event]) -> None:
        states = {AlertFired: "fired", AlertResolved: "resolved"}
        sent.extend((one.data.alert, states[type(one.data)]) for one in events if type(one.data) in states)

    return SpendingAlerts(store, budgets=budgets, rules=configured(), clock=clock, on_alert=receive), sent


def test_a_budget_fires_each_grade_once_and_resolves_on_the_next_day(store: SqliteStore) -> None:
    clock = Clock()
    budget = CostBudget(dollars=10, project="web")
    alerts, sent = alerts_of(store, clock, budget)
    spend(store, "s1", dollars=6, at=NOON, project="web")
    spend(store, "other", dollars=50, at=NOON)

    alerts.check()
    alerts.check()
    assert sent == [("cost_yellow", "fired")]
    spend(store, "s2", dollars=9, at=NOON, project="web")
    restarted, again = alerts_of(store, clock, budget)
    restarted.check()
    assert again == [("cost_red", "fired")]
    (red, yellow) = store.alerts()
    day = f"{within_calendar(NOON).astimezone():%d %b}"
    assert red.summary == f"all agents in web, $10.00 a day: $15.00 spent on {day} (150%)"
    assert (red.severity, yellow.severity) == ("critical", "info")
    assert store.session(red.session_id).project == "web"

    clock.now = NOON + DAY
    restarted.check()
    restarted.check()
    assert sorted(again[1:]) == [("cost_red", "resolved"), ("cost_yellow", "resolved")]


def test_only_the_calls_of_the_day_and_of_the_agent_are_spent(store: SqliteStore) -> None:
    clock = Clock()
    today = midnight(NOON)
    spend(store, "yesterday", dollars=8, at=today + 60)
    spend(store, "another", dollars=100, at=NOON, agent="b")

    costs = {one.session_id: one.dollars for one in store.spending(since=today)}
    alerts, sent = alerts_of(store, clock, CostBudget(dollars=8, agent="a"))
    alerts.check()

    assert costs == {"yesterday": pytest.approx(4), "another": pytest.approx(100)}
    assert sent == [("cost_yellow", "fired")]


def use(store: SqliteStore, session: str, *windows: tuple[int, float, float]) -> None:
    """Store a session of codex that was given windows as minutes, used part and time, all ending in an hour."""
    events: list[Event] = []
    tracker = SessionTracker(SessionInfo(session, "codex", "m", "test", session), emit=events.extend, digest=str)
    for minutes, used, at in windows:
        tracker.record(QuotaMeasured((QuotaWindow(minutes, used, NOON + 3_600),), "pro"), at)
    tracker.flush()
    store.append(events)


def test_a_quota_fires_each_grade_once_per_window(store: SqliteStore) -> None:
    clock = Clock()
    alerts, sent = alerts_of(store, clock)
    use(store, "s", (300, 0.4, NOON - 7_200), (300, 0.92, NOON - 60))

    alerts.check()
    alerts.check()
    assert sent == [("quota_nearly_used", "fired")]
    (quota,) = store.quotas(now=NOON)
    assert (quota.used_ratio, quota.minutes) == (0.92, 300)
    assert quota.runs_out_at is not None
    assert NOON < quota.runs_out_at < NOON + 3_600
    use(store, "later", (300, 1.0, NOON - 30))
    alerts.check()
    assert sent[1:] == [("quota_used_up", "fired")]
    clock.now = NOON + 3_700
    alerts.check()
    assert sorted(sent[2:]) == [("quota_nearly_used", "resolved"), ("quota_used_up", "resolved")]
    assert store.session(SESSION).ended


def test_the_session_of_these_alerts_is_found_by_its_id_and_counted_nowhere(store: SqliteStore) -> None:
    alerts, sent = alerts_of(store, Clock())
    use(store, "s", (300, 0.92, NOON - 60))

    alerts.check()

    assert sent == [("quota_nearly_used", "fired")]
    assert [row.session_id for row in store.sessions()] == ["s"]
    assert store.fleet_totals(SessionFilter(), live_since=0.0).sessions == store.size().sessions == 1
    assert store.facets()["agents"] == ("codex",)
    assert [row.agent for row in store.trends(days=9)] == []
    assert store.composition(since=0.0).in_range == 1
    assert [alert.session_id for alert in store.alerts()] == [SESSION]
    assert store.find_sessions(SESSION)


def test_the_metrics_have_the_fullest_window_of_each_length_until_it_ends(store: SqliteStore) -> None:
    clock = Clock()
    alerts, _ = alerts_of(store, clock)
    use(store, "s", (300, 0.2, NOON - 7_200), (300, 0.8, NOON - 60), (10_080, 0.3, NOON - 60))

    def points() -> dict[str, list[tuple[tuple[str, ...], float]]]:
        return {family.metric.name: [*map(tuple, family.points)] for family in alerts.quotas.collect()}

    assert points() == {}
    alerts.check()
    assert points() == {
        "context_window_quota_used_ratio": [(("codex", "7d"), 0.3), (("codex", "5h"), 0.8)],
        "context_window_quota_remaining_seconds": [(("codex", "5h"), pytest.approx(1_200))],
    }
    clock.now = NOON + 3_700
    assert points() == {}
