"""Lists of sessions and alerts: count sources, sub-agents, and the alerts firing now."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from windowpane.core.events import AlertFired, AlertResolved, Event, SessionDescribed
from windowpane.store.interface import SessionFilter
from windowpane.store.sqlite import SqliteStore


def with_alerts(events: list[Event]) -> list[Event]:
    last = events[-1]
    fired = [
        last._replace(n=900, data=AlertFired("utilization", "critical", 1, 0.95, 0.9, "95% used")),
        last._replace(n=901, data=AlertFired("red_soon", "warning", 1, 2.0, 3.0, "red soon")),
        last._replace(n=902, data=AlertResolved("utilization", "critical", 1, 0.4, 0.9, 2)),
    ]
    return [*events, *fired]


def test_a_session_row_has_its_count_source(store, make_session):
    """It is the count source of the last measurement."""
    store.append(make_session(turns=2))

    row = store.session("s1")

    assert row.count_source == store.turns("s1")[1].count_source == "usage"


def test_an_older_store_gets_count_sources(tmp_path, make_session):
    """Opening a store of the first release fills the new column from the turns, as a rebuild does."""
    path = tmp_path / "old.db"
    store = SqliteStore(path)
    store.append(make_session(turns=2))
    store.close()
    with sqlite3.connect(path) as connection:
        for name in ("sessions_parent", "alerts_firing"):
            connection.execute(f"DROP INDEX {name}")
        connection.execute("ALTER TABLE sessions DROP COLUMN count_source")
        connection.execute("DELETE FROM migrations WHERE name = 'm003_add_count_source'")
    connection.close()

    again = SqliteStore(path)
    migrated = again.session("s1")
    again.rebuild_projections()

    assert migrated.count_source == "usage"
    assert again.session("s1") == migrated
    again.close()


def test_children_are_listed_by_their_parent(store, make_session):
    """Only the sub-agents of the requested session."""
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
    """Each condition narrows the list, and together they narrow it further."""
    for name in ("s1", "s2"):
        store.append(with_alerts(make_session(name, turns=2)))

    assert len(store.alerts()) == 4
    assert {row.alert for row in store.alerts(firing=True)} == {"red_soon"}
    assert {row.alert for row in store.alerts(firing=False)} == {"utilization"}
    assert [row.session_id for row in store.alerts(severity="critical")] == ["s2", "s1"]
    assert [row.session_id for row in store.alerts(alert="red_soon", session_id="s1")] == ["s1"]
    assert store.alerts(severity="critical", firing=True) == []


def described(events: list[Event], *names: SessionDescribed) -> list[Event]:
    return [
        *events,
        *(events[-1]._replace(n=events[-1].n + number, data=name) for number, name in enumerate(names, 1)),
    ]


def test_a_row_has_the_latest_names_of_its_session(store, make_session):
    """A later statement replaces what it states, and sessions are found by each name."""
    store.append(
        described(
            make_session("s1", turns=1),
            SessionDescribed("please mend", "first_message", folder="/work/shop", branch="main"),
            SessionDescribed("Mending", "agent", repository="acme/shop", label="shop-7"),
        )
    )
    store.append(described(make_session("s2", turns=1), SessionDescribed(folder="/work/other")))

    row = store.session("s1")

    assert (row.title, row.title_source, row.folder) == ("Mending", "agent", "/work/shop")
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
