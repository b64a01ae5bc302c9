"""Lists of sessions and alerts: count sources, sub-agents, and the alerts firing now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    ContentCompressed,
    Event,
    FidelityEvaluated,
    SessionDescribed,
    TurnEnded,
)
from windowpane.store.filters import AlertFilter, SessionFilter


def with_alerts(events: list[Event]) -> list[Event]:
    last = events[-1]
    fired = [
        last._replace(n=900, data=AlertFired("utilization", "critical", 1, 0.95, 0.9, "95% used")),
        last._replace(n=901, data=AlertFired("compaction_soon", "warning", 1, 2.0, 3.0, "red soon")),
        last._replace(n=902, data=AlertResolved("utilization", "critical", 1, 0.4, 0.9, 2)),
    ]
    return [*events, *fired]


def test_a_session_row_has_its_count_source(store, make_session):
    """It is the count source of the last measurement."""
    store.append(make_session(turns=2))

    row = store.session("s1")

    assert row.count_source == store.turns("s1")[1].count_source == "usage"


def test_children_are_listed_by_their_parent(store, make_session):
    store.append(make_session("parent", turns=1))
    for name in ("child-1", "child-2"):
        events = make_session(name, turns=1)
        store.append(
            [event._replace(context=replace(event.context, parent_session_id="parent")) for event in events]
        )

    found = store.sessions(SessionFilter(parent_session_id="parent"))

    assert {row.session_id for row in found} == {"child-1", "child-2"}
    assert not store.sessions(SessionFilter(parent_session_id="child-1"))


def test_alerts_are_filtered_by_name_severity_and_state(store, make_session):
    for name in ("s1", "s2"):
        store.append(with_alerts(make_session(name, turns=2)))

    assert len(store.alerts()) == 4
    assert {row.alert for row in store.alerts(AlertFilter(firing=True))} == {"compaction_soon"}
    assert {row.alert for row in store.alerts(AlertFilter(firing=False))} == {"utilization"}
    assert [row.session_id for row in store.alerts(AlertFilter(severity="critical"))] == ["s2", "s1"]
    assert [row.session_id for row in store.alerts(AlertFilter(alert="compaction_soon", session_id="s1"))] == [
        "s1"
    ]
    assert store.alerts(AlertFilter(severity="critical", firing=True)) == []


def at(events: list[Event], start: float) -> list[Event]:
    """The same events from another moment on."""
    return [event._replace(at=start + number) for number, event in enumerate(events)]


def test_live_sessions_come_first_and_totals_are_of_all(store, make_session):
    for number in range(6):
        store.append(at(make_session(f"old{number}", turns=2), 1_000.0 + 100 * number))
    for number in range(3):
        events = [event for event in make_session(f"live{number}", turns=1) if event.type != "session.ended"]
        store.append(at(events, 5_000.0))
    query = SessionFilter(live_first_since=4_900.0, limit=100)

    rows = store.sessions(query)

    assert {row.session_id for row in rows[:3]} == {"live0", "live1", "live2"}
    assert [row.session_id for row in rows[3:]] == [
        row.session_id for row in store.sessions() if row.session_id.startswith("old")
    ]
    for offset in range(10):
        page = SessionFilter(live_first_since=4_900.0, limit=4, offset=offset)
        assert store.sessions(page) == rows[offset : offset + 4]
    totals = store.fleet_totals(SessionFilter(limit=2), live_since=4_900.0)
    assert (totals.sessions, totals.live) == (9, 3)
    assert sum(totals.by_zone.values()) == 9
    assert totals.input_tokens == sum(row.input_tokens for row in rows)
    assert totals.cost_dollars == pytest.approx(
        sum(row.cost_dollars for row in rows if row.cost_dollars is not None)
    )


def test_totals_count_the_worst_firing_alert_of_live_sessions(store, make_session):
    for name, start in (("over", 1_000.0), ("live", 5_000.0)):
        events = [event for event in with_alerts(make_session(name, turns=2)) if event.type != "session.ended"]
        store.append(at(events, start))

    totals = store.fleet_totals(SessionFilter(), live_since=4_900.0)

    assert (totals.live, totals.live_warned, totals.live_critical, totals.live_needing_attention) == (1, 1, 0, 1)
    for reason, counted in (
        ("warning", totals.live_warned), ("critical", totals.live_critical),
        ("red", totals.live_red), ("red soon", totals.live_red_soon),
    ):  # fmt: skip
        assert len(store.sessions(SessionFilter(attention=reason, live_since=4_900.0))) == counted
    assert [row.session_id for row in store.alerts(AlertFilter(firing=True, live_since=4_900.0))] == ["live"]
    assert [row.session_id for row in store.alerts(AlertFilter(firing=True, silent_since=4_900.0))] == ["over"]


def test_sessions_and_alerts_are_found_by_their_time(store, make_session):
    for name, start in (("later", 5_000.0), ("earlier", 1_000.0)):
        store.append(at(with_alerts(make_session(name, turns=2)), start))

    found = store.sessions(SessionFilter(at_from=900.0, at_to=1_001.0))

    assert [row.session_id for row in found] == ["earlier"]
    assert [row.session_id for row in store.alerts(AlertFilter(at_from=4_000.0))] == ["later", "later"]
    assert [row.session_id for row in store.alerts()] == ["later", "later", "earlier", "earlier"]


def compressed_in_task(events: list[Event], *, next_message: bool) -> list[Event]:
    """Add a compression and a turn after it, in the same exchange unless there is a *next_message*."""
    last = events[-1]
    exchange = max(event.data.block.exchange for event in events if isinstance(event.data, BlockAdded))
    block = next(event.data.block for event in events if isinstance(event.data, BlockAdded))
    turn = replace(last.context, turn=last.context.turn + 1)
    added = replace(block, id="later", exchange=exchange + next_message)
    data = (
        ContentCompressed("compaction", "red", "accepted", 90, 10),
        BlockAdded(added),
        TurnEnded(None, "estimate"),
    )
    return [
        *events,
        *(last._replace(n=last.n + number, context=turn, data=one) for number, one in enumerate(data, 1)),
    ]


def test_a_compression_in_the_middle_of_a_task_is_counted(store, make_session):
    for name, next_message in (("inside", False), ("between", True)):
        events = [event for event in make_session(name, turns=2) if event.type != "session.ended"]
        store.append(compressed_in_task(events, next_message=next_message))

    counted = {row.session_id: row.compressions_in_task for row in store.sessions()}

    assert counted == {"inside": 1, "between": 0}


def described(events: list[Event], *names: SessionDescribed) -> list[Event]:
    return [
        *events,
        *(events[-1]._replace(n=events[-1].n + number, data=name) for number, name in enumerate(names, 1)),
    ]


def test_a_row_has_the_latest_names_of_its_session(store, make_session):
    store.append(
        described(
            make_session("s1", turns=1),
            SessionDescribed("please mend", "first_message", folder="/srv/shop", branch="main"),
            SessionDescribed("Mending", "agent", repository="acme/shop", label="shop-7"),
        )
    )
    store.append(described(make_session("s2", turns=1), SessionDescribed(folder="/srv/other")))

    row = store.session("s1")

    assert (row.title, row.title_source, row.folder) == ("Mending", "agent", "/srv/shop")
    assert (row.repository, row.branch, row.label) == ("acme/shop", "main", "shop-7")
    assert row.last_event != "session.described"
    for query in (
        SessionFilter(folder="SHOP"),
        SessionFilter(repository="acme"),
        SessionFilter(branch="main"),
        SessionFilter(label="shop-"),
        SessionFilter(text="mending"),
    ):
        assert [found.session_id for found in store.sessions(query)] == ["s1"]
    assert store.verify().intact


def test_the_fidelity_of_a_session_is_that_of_its_last_compression(store, make_session) -> None:
    events = make_session("s", turns=4, end=False)
    last = events[-1]
    compressed = ContentCompressed("compaction", "manual", "accepted", 50, 5)
    earlier = last._replace(n=last.n + 1, data=compressed)
    later = last._replace(n=last.n + 2, data=compressed)
    scores = [
        last._replace(n=last.n + 3 + number, data=FidelityEvaluated("probe", score, 1.0, of=event.event_id))
        for number, (event, score) in enumerate(((later, 0.8), (earlier, 0.3)))
    ]
    store.append([*events, earlier, later])
    assert store.session("s").fidelity is None
    store.append(scores[:1])
    store.append(scores[1:])

    assert store.session("s").fidelity == 0.8
    store.rebuild_projections()
    assert store.session("s").fidelity == 0.8
    assert store.verify().intact
