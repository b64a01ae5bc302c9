"""After an upgrade a recording stays the same one, whatever events the new release derives from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from tests.store.conformance.direct_access import PROJECTIONS, contents_of

from windowpane.core.codec import decode, encode
from windowpane.core.events import (
    BlockAdded,
    Event,
    PressureMeasured,
    SessionRederived,
    SessionStarted,
    TurnEnded,
)
from windowpane.store.filters import EventFilter
from windowpane.store.store import Store

EVERYTHING = EventFilter(session_id="s1", limit=100_000)


def numbered(events: Iterable[Event]) -> list[Event]:
    return [event._replace(n=n) for n, event in enumerate(events)]


def other_values(event: Event) -> list[Event]:
    """The event as a release with another forecast derives it."""
    if isinstance(event.data, PressureMeasured):
        return [event._replace(data=replace(event.data, velocity=77.0))]
    return [event]


def more_events(event: Event) -> list[Event]:
    """The event as a release that measures pressure twice derives it."""
    return [event, event] if isinstance(event.data, PressureMeasured) else [event]


def fewer_events(event: Event) -> list[Event]:
    """The event as a release that never measures before a call derives it."""
    return [] if isinstance(event.data, PressureMeasured) and event.data.phase != "final" else [event]


def unchanged(event: Event) -> list[Event]:
    return [event]


Derivation = Callable[[Event], list[Event]]
DERIVATIONS = [other_values, more_events, fewer_events]


def derived(events: Iterable[Event], release: str, how: Derivation = unchanged) -> list[Event]:
    """A recording's events as a release derives them."""
    result = numbered(one for event in events for one in how(event))
    assert isinstance(result[0].data, SessionStarted)
    return [result[0]._replace(data=replace(result[0].data, derived_by=release)), *result[1:]]


def statements(store: Store) -> list[SessionRederived]:
    found = store.events(replace(EVERYTHING, types=("session.rederived",)))
    return [item.event.data for item in found]


def facts(events: Iterable[Event]) -> list[object]:
    """The recorded facts, as the store returns them: without texts."""
    stated = [event for event in events if isinstance(event.data, BlockAdded | TurnEnded)]
    return [decode(encode(event)).data for event in stated]


def cut(events: list[Event], turns: int) -> list[Event]:
    """The events up to the end of a turn."""
    ends = [index for index, event in enumerate(events) if isinstance(event.data, TurnEnded)]
    return events[: ends[turns - 1] + 1]


def assert_consistent(store: Store) -> None:
    """The chain, the projections and the counts agree, before and after the projections are made again."""
    verification = store.verify()
    assert verification.intact, verification
    before = contents_of(store, PROJECTIONS)
    store.rebuild_projections()
    assert contents_of(store, PROJECTIONS) == before


@pytest.mark.parametrize("how", DERIVATIONS)
def test_an_upgrade_adds_one_statement(store, make_session, how):
    events = make_session(turns=5)
    store.import_session(lambda: derived(events, "1.0"))
    stored = store.session("s1").events

    outcome = store.import_session(lambda: derived(events, "2.0", how))
    again = store.import_session(lambda: derived(events, "2.0", how))

    assert (outcome.revision, outcome.revised, outcome.appended) == (1, False, 1)
    assert (again.revision, again.appended) == (1, 0)
    assert store.session("s1").events == stored + 1
    assert [(one.earlier_release, one.release) for one in statements(store)] == [("1.0", "2.0")]
    assert all(item.counted for item in store.events(EVERYTHING))
    assert_consistent(store)


def test_an_upgrade_that_derives_the_same_adds_nothing(store, make_session):
    """Only the release differs, and nothing was recorded since."""
    events = make_session(turns=3)
    store.import_session(lambda: derived(events, "1.0"))

    assert store.import_session(lambda: derived(events, "2.0")).appended == 0
    assert statements(store) == []
    assert store.verify().intact


@pytest.mark.parametrize("how", [unchanged, *DERIVATIONS])
def test_a_recording_that_grows_after_an_upgrade_continues(store, make_session, how):
    whole = make_session(turns=9)
    store.import_session(lambda: derived(cut(whole, 4), "1.0"))
    for turns, release in ((6, "2.0"), (9, "3.0")):
        part = cut(whole, turns) if turns < 9 else whole
        first = store.import_session(lambda part=part, release=release: derived(part, release, how))
        second = store.import_session(lambda part=part, release=release: derived(part, release, how))
        assert (first.revision, first.revised, second.appended) == (1, False, 0)

    items = [item.event for item in store.events(EVERYTHING)]
    assert [event.n for event in items] == list(range(len(items)))
    assert facts(items) == facts(whole)
    assert [one.release for one in statements(store)] == ["2.0", "3.0"]
    assert [turn.turn for turn in store.turns("s1")] == list(range(1, 11))  # the last one is open
    assert store.session("s1").turns == 9
    assert store.session("s1").ended
    assert_consistent(store)


def test_a_recording_with_another_past_is_a_new_revision_after_an_upgrade(store, make_session):
    events = make_session(turns=6)

    def changed(at: int) -> list[Event]:
        blocks = [index for index, event in enumerate(events) if isinstance(event.data, BlockAdded)]
        index = blocks[at]
        block = replace(events[index].data.block, digest="another")
        return [*events[:index], events[index]._replace(data=BlockAdded(block)), *events[index + 1 :]]

    store.import_session(lambda: derived(events, "1.0"))
    assert store.import_session(lambda: derived(changed(2), "2.0", more_events)).revision == 2
    assert store.import_session(lambda: derived(events, "2.0", more_events)).appended == 0
    assert store.import_session(lambda: derived(changed(2), "3.0", other_values)).revision == 2
    assert store.import_session(lambda: derived(changed(-1), "3.0", other_values)).revision == 3
    assert store.session("s1").revision == 3
    assert_consistent(store)


def test_a_change_of_settings_is_still_a_new_revision(store, make_session):
    events = make_session(turns=4)
    store.import_session(lambda: derived(events, "1.0"))

    assert store.import_session(lambda: derived(events, "1.0", other_values)).revision == 2
    assert statements(store) == []
    assert store.verify().intact


def test_an_older_copy_changes_nothing_after_an_upgrade(store, make_session):
    events = make_session(turns=8)
    store.import_session(lambda: derived(events, "1.0"))
    for _ in range(2):
        outcome = store.import_session(lambda: derived(cut(events, 3), "2.0", more_events))
        assert (outcome.revision, outcome.appended) == (1, 0)
        store.import_session(lambda: derived(events, "2.0", more_events))
    assert len(statements(store)) == 1
    assert_consistent(store)


def test_a_release_that_counts_blocks_differently_continues_as_a_revision(store, make_session):
    """Nothing new: a statement. Grown: its ids of blocks are others, so it cannot follow the stored ones."""
    whole = make_session(turns=12)
    events = cut(whole, 8)

    def renamed(event: Event) -> list[Event]:
        if not isinstance(event.data, BlockAdded):
            return [event]
        return [event._replace(data=BlockAdded(replace(event.data.block, id=f"x{event.data.block.id}")))]

    store.import_session(lambda: derived(cut(events, 5), "1.0"))

    assert store.import_session(lambda: derived(cut(events, 5), "2.0", renamed)).appended == 1
    assert store.import_session(lambda: derived(cut(events, 5), "2.0", renamed)).appended == 0
    grown = store.import_session(lambda: derived(events, "3.0"))
    assert (grown.revision, store.import_session(lambda: derived(events, "3.0")).appended) == (1, 0)
    assert store.import_session(lambda: derived(whole, "4.0", renamed)).revision == 2
    assert_consistent(store)
