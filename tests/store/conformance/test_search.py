"""Search over event names and payloads, with and without the index."""

from __future__ import annotations

import pytest

from windowpane.core.events import BlockAdded
from windowpane.store.filters import EventFilter


def test_search_finds_the_same_with_and_without_the_index(store, make_session):
    store.append(make_session("s1", turns=9))
    store.append(make_session("s2", turns=9))
    queries = [
        EventFilter(text="compaction extractive"),
        EventFilter(text="hybr"),
        EventFilter(text="tool_result", session_id="s2", limit=3, newest_first=True),
        EventFilter(text="block.added", turn_from=2, turn_to=3, session_id="s1"),
        EventFilter(text="nowhere"),
        EventFilter(text="placeholder", types=("blocks.evicted",)),
    ]
    plain = [(store.events(query), store.count_events(query)) for query in queries]
    assert store.index_text(limit=40) == 40
    half = [(store.events(query), store.count_events(query)) for query in queries]
    while store.index_text():
        pass
    whole = [(store.events(query), store.count_events(query)) for query in queries]

    assert plain == half == whole
    assert [bool(matches) for matches, _ in whole] == [True, True, True, True, False, False]
    assert len(whole[2][0]) == 3


@pytest.mark.parametrize("setting", ["search.fts5.PREFIX_WORDS", "search.events.READ_THROUGH"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_every_way_of_searching_finds_the_same(store, make_session, monkeypatch, setting, newest_first):
    for name in ("s1", "s2", "s3"):
        store.append(make_session(name, turns=9))
    while store.index_text():
        pass
    options = [
        {"text": "t"},
        {"text": "tool"},
        {"text": "read tool", "session_id": "s2"},
        {"text": "tool_result", "session_id": "s3", "turn_from": 3, "turn_to": 9},
        {"text": "tool", "types": ("block.added", "turn.ended"), "session_id": "s1"},
        {"text": "tool", "types": ("turn.ended", "session.started")},
        {"text": "tool", "after_seq": 30},
        {"text": "tool", "before_seq": 30},
        {"text": "read tool", "session_id": "s2", "before_seq": 120},
        {"text": "to\u0308ol"},
    ]
    queries = [EventFilter(**each, limit=7, newest_first=newest_first) for each in options]

    usual = [(store.events(query), store.count_events(query)) for query in queries]
    monkeypatch.setattr(f"windowpane.store.{setting}", 0)
    other = [(store.events(query), store.count_events(query)) for query in queries]

    assert usual == other
    assert [len(matches) for matches, _ in usual[:5]] == [7] * 5
    assert {item.event.context.session_id for item in usual[2][0]} == {"s2"}


def test_only_wanted_types_are_searched(store, make_session):
    """An event of another type does not match because its payload contains the type's name."""
    store.append(make_session("s1", turns=9))
    while store.index_text():
        pass

    matches = store.events(EventFilter(text="tool", types=("block.added",)))

    assert matches
    assert {type(item.event.data) for item in matches} == {BlockAdded}


def test_a_measurement_is_found_by_its_texts_and_not_by_its_numbers(store, make_session):
    store.append(make_session("s1", turns=9))
    queries = [
        EventFilter(text=text) for text in ("pressure.measured final green", "used_by_component", "usage final")
    ]
    plain = [store.count_events(query) for query in queries]
    while store.index_text():
        pass

    assert [store.count_events(query) for query in queries] == plain == [9, 0, 9]


# -- content --------------------------------------------------------------------------------------------------
