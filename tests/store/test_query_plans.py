"""Every read uses an index, so its cost grows with the rows returned, not with the rows stored."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.sqlite.engine import ReaderPool

SESSIONS = 12


@pytest.fixture
def plans(tmp_path, make_session, monkeypatch):
    """A store of many sessions, and the plans of all statements that its reads run."""
    store = SqliteStore(tmp_path / "w.db")
    store.append([event for number in range(SESSIONS) for event in make_session(f"s{number}", turns=4)])
    found: list[str] = []
    lend = ReaderPool.lend

    @contextmanager
    def recording(pool):
        with lend(pool) as connection:
            statements: list[str] = []
            connection.set_trace_callback(statements.append)
            try:
                yield connection
            finally:
                connection.set_trace_callback(None)
            found.extend(detail for sql in statements for detail in explain(connection, sql))

    monkeypatch.setattr(ReaderPool, "lend", recording)
    yield store, found
    store.close()


def explain(connection: sqlite3.Connection, sql: str) -> list[str]:
    if not sql.lstrip().startswith(("SELECT", "WITH")):
        return []
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]


READS = {
    "session": lambda store: store.session("s7"),
    "find_session": lambda store: store.find_sessions("s7"),
    "turns": lambda store: store.turns("s7", first=2, last=3),
    "blocks_at": lambda store: store.blocks_at("s7", 3),
    "blocks_left": lambda store: store.removed_blocks("s7", 3),
    "events of a session": lambda store: store.events(EventFilter(session_id="s7")),
    "a page of a session": lambda store: store.events(EventFilter(session_id="s7", after_seq=9, limit=5)),
    "newest of a session": lambda store: store.events(EventFilter(session_id="s7", newest_first=True, limit=5)),
    "events of an hour": lambda store: store.events(EventFilter(at_from=50.0, at_to=3_650.0, limit=5)),
    "number of events of an hour": lambda store: store.count_events(EventFilter(at_from=50.0, at_to=3_650.0)),
    "a session's events of an hour": lambda store: store.events(
        EventFilter(session_id="s7", at_from=50.0, at_to=3_650.0, limit=5)
    ),
    "a turn's events": lambda store: store.events(EventFilter(session_id="s7", turn_from=2, turn_to=2)),
    "a turn's messages": lambda store: store.events_or_damage(
        EventFilter(session_id="s7", turn_from=2, turn_to=2, types=("turn.ended", "block.added"))
    ),
    "markers of a session": lambda store: store.events(
        EventFilter(session_id="s7", types=("blocks.evicted", "content.compressed"))
    ),
    "rare events of all": lambda store: store.events(EventFilter(types=("blocks.evicted",), newest_first=True)),
    "count of a session's type": lambda store: store.count_events(
        EventFilter(session_id="s7", types=("block.added",))
    ),
    "count of a type": lambda store: store.count_events(EventFilter(types=("block.added",))),
    "a search": lambda store: store.events(EventFilter(text="tool", limit=5)),
    "a search in a session": lambda store: store.events(EventFilter(text="tool", session_id="s7", limit=5)),
    "count of a search in a session": lambda store: store.count_events(EventFilter(text="to", session_id="s7")),
    "next batch": lambda store: next(store.scan(after_seq=100, batch=10)),
    "alerts of a session": lambda store: store.alerts(AlertFilter(session_id="s7")),
    "blocks needed again": lambda store: store.removed_blocks("s7", 3, regretted=True),
    "alerts that fire now": lambda store: store.alerts(AlertFilter(firing=True)),
    "sub-agents of a session": lambda store: store.sessions(SessionFilter(parent_session_id="s7")),
    "costs of a day": lambda store: store.spending(since=50.0),
    "costs of a day of some sessions": lambda store: store.spending(since=50.0, roots=("s1", "s2")),
    "costs of a day by project": lambda store: store.spending(since=50.0, projects=("a",)),
    "version": lambda store: store.version(),
    "a trend": lambda store: store.trends(days=5),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_scans_no_large_table(plans, name):
    store, found = plans

    READS[name](store)

    scans = [detail for detail in found if detail.startswith("SCAN")]
    assert found
    assert not [detail for detail in found if "(current=?)" in detail], "all current sessions"
    assert not [
        scan for scan in scans if scan.split()[1] in ("e", "b", "events", "blocks", "turns", "sessions", "daily")
    ], scans


def test_a_type_of_few_events_is_found_by_its_index(plans):
    store, found = plans

    list(store.events(EventFilter(session_id="s7", types=("session.started",), limit=20)))

    assert any("events_type" in detail for detail in found), found


@pytest.mark.parametrize("order", ["pressure", "recent", "cost", "regret"])
def test_the_fleet_is_read_in_the_order_of_an_index(plans, order):
    store, found = plans

    store.sessions(SessionFilter(order=order, limit=10))

    assert any(f"USING INDEX sessions_{order}" in detail for detail in found), found
    assert not any("FOR ORDER BY" in detail and "LAST" not in detail for detail in found), found


@pytest.mark.parametrize("firing", [True, None])
def test_the_latest_alerts_are_read_from_the_end(plans, firing):
    store, found = plans

    store.alerts(AlertFilter(firing=firing, limit=10))

    assert any(f"alerts_{'unresolved_at' if firing else 'at'}" in detail for detail in found), found
    assert not any("FOR ORDER BY" in detail for detail in found), found


def test_the_newest_common_events_are_read_from_the_end(plans):
    store, found = plans

    rows = store.events(EventFilter(types=("block.added",), newest_first=True, limit=3))

    assert len(rows) == 3
    assert not any("events_type" in detail for detail in found), found


def test_a_few_events_of_a_session_are_found_by_their_type(plans):
    store, found = plans

    store.events(EventFilter(session_id="s7", types=("checkpoint.saved", "blocks.evicted")))
    assert any("events_type (type=? AND session=?)" in detail for detail in found), found

    found.clear()
    store.events(EventFilter(session_id="s7", types=("block.added",), limit=1))
    assert not any("events_type" in detail for detail in found), found


def test_a_range_of_turns_includes_late_events(store, make_session):
    events = make_session(turns=5)
    late = next(event for event in events if event.context.turn == 2)
    store.append(events)
    store.append([late._replace(n=900)])

    found = store.events(EventFilter(session_id="s1", turn_from=2, turn_to=3))

    assert [item.event.n for item in found][-1] == 900
    assert {item.event.context.turn for item in found} == {2, 3}
    assert len(found) == 1 + sum(1 for event in events if event.context.turn in (2, 3))
    assert store.count_events(EventFilter(session_id="s1", turn_from=2, turn_to=3)) == len(found)
    assert len(store.events(EventFilter(session_id="s1", turn_from=3))) == sum(
        1 for event in events if event.context.turn >= 3
    )
    assert len(store.events(EventFilter(session_id="s1", turn_to=1))) == sum(
        1 for event in events if event.context.turn <= 1
    )


def test_the_sub_agents_of_a_session_are_found_by_its_id(plans):
    """Those of all its records: the index of current sessions would have each row look at all sessions."""
    store, found = plans
    store.session("s7")
    store.sessions(SessionFilter(projects=("a",)))

    children = [detail for detail in found if detail.startswith("SEARCH child")]

    assert children
    assert not [detail for detail in children if "(current=?)" in detail]
