"""Quotas of plans, and the cost of sessions since a moment."""

from __future__ import annotations

import pytest

from windowpane.core.events import Event, QuotaMeasured, QuotaWindow, Usage
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker

AT = 1_770_000_000.0


def test_a_percent_is_recorded_at_its_first_sight_and_costs_count_from_a_moment(store) -> None:
    for session, delay in (("late", 60), ("early", 0)):
        events: list[Event] = []
        tracker = SessionTracker(
            SessionInfo(session, "codex", "m", "test", session), emit=events.extend, digest=str
        )
        for minutes, used in ((0, 0.10), (30, 0.60), (31, 0.604)):
            at = AT + 60 * minutes + delay
            tracker.record(QuotaMeasured((QuotaWindow(300, used, AT + 10_000 + minutes / 60),)), at)
            tracker.add("user_message", "go", 1, at=at)
            tracker.end_turn(Usage(1_000, 5), cost_dollars=1.0, at=at)
        tracker.flush()
        store.append(events)

    (quota,) = store.quotas(now=AT + 2_000)

    assert (quota.agent, quota.used_ratio) == ("codex", 0.6)
    assert quota.runs_out_at == pytest.approx(AT + 2_000 + 0.4 * 2_000 / 0.5)
    assert store.quotas(now=AT + 20_000) == []
    costs = {one.session_id: one.dollars for one in store.spending(since=AT + 1_000)}
    assert costs == {"early": pytest.approx(2.0), "late": pytest.approx(2.0)}


def test_the_costs_of_some_sessions_include_their_sub_agents(store) -> None:
    for session, parent in (("root", None), ("child", "root"), ("other", None)):
        events: list[Event] = []
        tracker = SessionTracker(
            SessionInfo(session, "codex", "m", "test", session, parent), emit=events.extend, digest=str
        )
        tracker.add("user_message", "go", 1, at=AT)
        tracker.end_turn(Usage(1_000, 5), cost_dollars=1.0, at=AT)
        tracker.flush()
        store.append(events)

    costs = store.spending(since=AT - 1, roots=["root", "unknown"])

    assert [(one.session_id, one.root_session_id) for one in costs] == [("root", "root"), ("child", "root")]
