"""Importing a recording again changes nothing, a longer one appends, a changed one starts a revision."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.store.conformance.direct_access import fetch

from windowpane.core.codec import encode
from windowpane.core.events import AlertFired, Event, NotificationDelivered, TelemetryDropped
from windowpane.exceptions import StoreError
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.records import ImportOutcome
from windowpane.store.store import Store


def bodies(store: Store, session_id: str = "s1") -> list[bytes]:
    return [encode(item.event) for item in store.events(EventFilter(session_id=session_id, limit=100_000))]


def test_importing_twice_changes_nothing(store, make_session):
    events = make_session()
    calls = []

    def recording():
        calls.append(1)
        return iter(events)

    first = store.import_session(recording)
    version = store.version()
    second = store.import_session(recording)

    turns = sum(event.type == "turn.ended" for event in events)
    assert first == ImportOutcome("s1", 1, len(events), 0, revised=False, turns=turns)
    assert second == ImportOutcome("s1", 1, 0, len(events), revised=False, turns=turns)
    assert store.version() == version
    assert len(calls) == 2


def test_a_longer_recording_appends_its_new_events(store, make_session):
    whole = make_session(turns=9)
    store.import_session(lambda: whole[:30])

    outcome = store.import_session(lambda: iter(whole))
    older = store.import_session(lambda: whole[:30])

    assert (outcome.appended, outcome.unchanged, outcome.revision) == (len(whole) - 30, 30, 1)
    assert (older.appended, older.unchanged, older.revised) == (0, 30, False)
    assert bodies(store) == [encode(event) for event in whole]
    assert store.verify().intact


def test_a_changed_past_starts_a_revision_that_counts_only_new_events(store, make_session):
    events = make_session(turns=5)
    changed = [*events[:25], events[25]._replace(at=1.0), *events[26:]]
    store.import_session(lambda: events)

    outcome = store.import_session(lambda: changed)

    assert (outcome.revision, outcome.revised, outcome.unchanged) == (2, True, 25)
    assert outcome.appended == len(events) - 25
    assert bodies(store) == [encode(event) for event in changed]
    current = store.events(EventFilter(session_id="s1", limit=100_000))
    assert [item.counted for item in current] == [False] * 25 + [True] * (len(events) - 25)
    everything = [item for batch in store.scan(batch=17) for item in batch]
    assert len(everything) == 2 * len(events)
    assert [item.revision for item in everything] == [1] * len(events) + [2] * len(events)
    assert len(store.sessions(SessionFilter())) == 1
    assert store.session("s1").revision == 2
    assert store.verify().sessions == 2
    assert store.verify().intact
    assert [head.kind for head in store.heads()].count("revised") == 1


def test_two_copies_that_disagree_settle(store, make_session):
    events = make_session(turns=5)
    changed = [*events[:25], events[25]._replace(at=1.0), *events[26:]]
    first = [store.import_session(lambda: events), store.import_session(lambda: changed)]
    version = store.version()

    again = [store.import_session(lambda: events), store.import_session(lambda: changed)]

    assert [outcome.revision for outcome in first] == [1, 2]
    assert [(outcome.appended, outcome.revised) for outcome in again] == [(0, False), (0, False)]
    assert store.version() == version


def test_a_revision_replaces_the_projections_of_the_old_one(store, make_session):
    store.import_session(lambda: make_session(turns=2))
    changed = [event._replace(at=5.0) for event in make_session(turns=4)]

    store.import_session(lambda: changed)
    assert store.session("s1").turns == 4
    assert len(store.turns("s1")) == 5
    store.rebuild_projections()
    assert len(store.turns("s1")) == 5


def test_a_shorter_recording_with_another_past_never_replaces_a_longer_one(store, make_session):
    whole = make_session(turns=8)
    store.import_session(lambda: whole)
    rewound = [event._replace(at=5.0) for event in make_session(turns=2)]

    outcome = store.import_session(lambda: rewound)

    assert (outcome.appended, outcome.revised, outcome.is_shorter) == (0, False, True)
    assert store.session("s1").turns == 8
    assert bodies(store) == [encode(event) for event in whole]
    assert not store.import_session(lambda: whole).is_shorter
    assert store.verify().intact


def test_events_of_other_emitters_do_not_make_a_revision(store, make_session):
    events = make_session(turns=6)
    store.import_session(lambda: events[:30])
    foreign = events[29].context
    foreign = type(foreign)(*[
        "alerts" if name == "stream_id" else getattr(foreign, name) for name in foreign.__dataclass_fields__
    ])  # fmt: skip
    fired = events[29]._replace(context=foreign, n=0, data=AlertFired("utilization", "critical", 1, 0.9, 0.9))
    calls = fired._replace(n=1, data=NotificationDelivered("utilization", 1, "log", "firing"))
    store.append([fired, calls])

    outcome = store.import_session(lambda: events)

    assert (outcome.revised, outcome.unchanged, outcome.appended) == (False, 30, len(events) - 30)
    assert store.alerts(AlertFilter(session_id="s1"))[0].delivered == ("log",)
    assert store.import_session(lambda: events).appended == 0
    assert store.verify().intact


@pytest.mark.parametrize("noted", ["nothing", "before it", "within it"])
@pytest.mark.parametrize("changed", ["replaced", "left out"])
def test_a_revision_counts_from_where_the_recordings_differ(store, make_session, noted: str, changed: str):
    events = make_session(turns=6)
    context = replace(events[29].context, stream_id="alerts")
    fired = Event(context, 0, events[29].at, AlertFired("utilization", "critical", 1, 0.9, 0.9))
    first = [fired, *events[:30]] if noted == "before it" else events[:30]
    store.append(first)
    if noted == "within it":
        store.add_note("s1", 2, "odd")
        store.append([fired])
    store.import_session(lambda: events)
    assert store.verify().intact

    replaced = events[40]._replace(at=1.0)
    gap = events[-1]._replace(n=len(events), data=TelemetryDropped(40, 40, "lost"))
    rest = [replaced, *events[41:]] if changed == "replaced" else [*events[41:], gap]
    store.import_session(lambda: [*events[:40], *rest])

    assert [broken.problem for broken in store.verify().broken] == []
    stored = store.events(EventFilter(session_id="s1", limit=10_000))
    counted = [item.counted for item in stored if item.event.context.stream_id == events[0].context.stream_id]
    assert counted == [index >= 40 for index in range(len(counted))]


def test_a_recording_that_fails_while_it_is_read_stores_nothing(store, make_session):
    events = make_session(turns=40)

    def breaking():
        for _ in range(60):
            yield from events
        raise RuntimeError("the file went away")

    with pytest.raises(RuntimeError, match="went away"):
        store.import_session(breaking)

    assert store.size().events == 0
    assert store.session("s1") is None
    store.append(events)
    assert store.verify().intact


def test_a_recording_is_one_session(store, make_session):
    with pytest.raises(StoreError, match="s1 continues as s2"):
        store.import_session(lambda: [*make_session("s1"), *make_session("s2")])

    assert store.size().events == 0


def test_a_recording_stored_by_another_process_meanwhile_is_rejected(stores, store, make_session):
    events = make_session(turns=3)

    def slow():
        yield events[0]
        other = stores.open()
        other.import_session(lambda: events)
        other.close()
        yield from events[1:]

    with pytest.raises(StoreError, match="changed by another process"):
        store.import_session(slow)

    assert store.size().events == len(events)


def test_a_pruned_session_imported_again_is_not_counted_twice(store, make_session):
    events = make_session(turns=3)
    store.import_session(lambda: events[:30])
    store.prune(before=1e10)

    outcome = store.import_session(lambda: events)

    assert outcome.revision == 2
    counted = [item.counted for item in store.events(EventFilter(session_id="s1", limit=10_000))]
    assert counted == [False] * 30 + [True] * (len(events) - 30)
    assert store.verify().intact


def test_an_empty_recording_stores_nothing(store):
    assert store.import_session(list).appended == 0
    assert fetch(store, "SELECT count(*) FROM sessions") == [(0,)]
