"""Notes, bookmarks and titles of readers: in the session's chain, beside the agent that records it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.store.conformance.conftest import Stores

from windowpane.core.events import Event
from windowpane.exceptions import ConfigurationError, StoreError
from windowpane.metrics.fold import MetricState
from windowpane.store.filters import EventFilter
from windowpane.store.reads.notes import MAXIMUM_EVENTS
from windowpane.store.store import Store
from windowpane.store.writes.additions import NOTE_CHARACTERS

Session = Callable[..., list[Event]]
KEY = b"k" * 32


def test_a_note_is_an_event_of_its_turn(store: Store, make_session: Session) -> None:
    store.append(make_session())
    before = store.session("s1")

    note_id = store.add_note("s1", 3, "look: password=hunter2hunter2", kind="note")
    store.add_note("s1", 2, "", kind="bookmark")

    bookmark, note = store.notes("s1")
    assert (bookmark.turn, bookmark.kind, bookmark.text) == (2, "bookmark", "")
    assert (note.note_id, note.turn, note.kind) == (note_id, 3, "note")
    assert "hunter2" not in note.text
    after = store.session("s1")
    assert before is not None
    assert after is not None
    assert (after.last_at, after.last_event, after.ended) == (before.last_at, before.last_event, True)
    assert [event.seq for event in store.events(EventFilter("s1", ("note.added",), turn_from=3, turn_to=3))]
    assert store.verify().intact


def test_a_deleted_note_remains_in_the_record(store: Store, make_session: Session) -> None:
    store.append(make_session())
    note_id = store.add_note("s1", 3, "wrong")
    store.delete_note("s1", note_id)

    assert store.notes("s1") == []
    events = store.events(EventFilter("s1", ("note.added", "note.deleted")))
    assert [event.event.type for event in events] == ["note.added", "note.deleted"]
    with pytest.raises(StoreError, match="has no note"):
        store.delete_note("s1", "0" * 16)


def test_an_agent_continues_its_session_after_a_note(stores: Stores, make_session: Session) -> None:
    events = make_session(end=False)
    agent, reader = stores.open(audit_key=KEY), stores.open(audit_key=KEY)
    half = len(events) // 2
    agent.append(events[:half])
    reader.add_note("s1", 1, "already odd here")
    agent.append(events[half:])
    reader.give_title("s1", "An odd one")
    agent.append([])

    assert reader.verify().intact
    row = agent.session("s1")
    assert row is not None
    assert (row.title, row.turns) == ("An odd one", 8)
    agent.close()
    reader.close()


@pytest.mark.parametrize(("agent_key", "reader_key"), [(KEY, None), (None, KEY), (KEY, b"o" * 32)])
def test_a_note_never_changes_the_key_of_a_live_session(
    stores: Stores, make_session: Session, agent_key: bytes | None, reader_key: bytes | None
) -> None:
    events = make_session(end=False)
    agent = stores.open(audit_key=agent_key)
    agent.append(events[:100])
    reader = stores.open(audit_key=reader_key)

    with pytest.raises(StoreError, match="key"):
        reader.add_note("s1", 1, "a note")

    agent.append(events[100:])
    assert agent.verify().intact
    agent.close()
    reader.close()


def test_a_recording_can_be_imported_again_after_a_note(store: Store, make_session: Session) -> None:
    store.import_session(lambda: make_session(turns=4, end=False))
    store.add_note("s1", 4, "here")
    store.give_title("s1", "My name for it")

    assert store.import_session(lambda: make_session(turns=4, end=False)).appended == 0
    assert not store.import_session(lambda: make_session(turns=6, end=False)).revised
    rewritten = make_session(turns=9, start=1_600_000_000.0)
    assert store.import_session(lambda: rewritten).revised

    assert [note.text for note in store.notes("s1")] == ["here"]
    row = store.session("s1")
    assert row is not None
    assert (row.title, row.title_source) == ("My name for it", "reader")
    assert store.verify().intact
    assert store.import_session(lambda: rewritten).appended == 0


def test_texts_are_bounded(store: Store, make_session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append(make_session())
    store.add_note("s1", 3, "x" * 50_000)
    assert len(store.notes("s1")[0].text) == NOTE_CHARACTERS
    for session_id, turn, text in (("s1", 99, "x"), ("s1", -1, "x"), ("s2", 1, "x")):
        with pytest.raises(StoreError):
            store.add_note(session_id, turn, text)
    with pytest.raises(ConfigurationError):
        store.add_note("s1", 3, " \n")
    with pytest.raises(ConfigurationError):
        store.give_title("s1", " \n")
    monkeypatch.setattr("windowpane.store.writes.additions.MAXIMUM_EVENTS", 2)
    store.add_note("s1", 3, "second")
    with pytest.raises(StoreError, match="the most"):
        store.add_note("s1", 3, "third")
    assert MAXIMUM_EVENTS == 1_000


def test_a_note_touches_no_metric(store: Store, make_session: Session) -> None:
    store.append(make_session())
    store.add_note("s1", 3, "a note")
    without, with_note = MetricState(), MetricState()
    for stored in store.events(EventFilter("s1", limit=10_000)):
        with_note.apply(stored.event, counted=True)
        if stored.event.type != "note.added":
            without.apply(stored.event, counted=True)

    assert with_note.dump() == without.dump()
