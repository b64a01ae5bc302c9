"""Reads of a store with damaged events return everything else."""

from __future__ import annotations

import pytest
from tests.store.conformance.direct_access import edit

from windowpane.exceptions import EventFormatError
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.records import DamagedEvent, intact_events
from windowpane.store.store import Store

BODIES = [b"\xff\x00", b'{"schema": 1,', b'{"type": "\xff"}', "text", 5]
NAMES = ["bytes", "cut", "no UTF-8", "text", "number"]


def damage(store: Store, seq: int, body: object) -> None:
    if not isinstance(body, bytes) and not isinstance(store, SqliteStore):
        pytest.skip("the database refuses a value of another type")
    edit(store, "UPDATE events SET body = ? WHERE seq = ?", body, seq)


@pytest.fixture
def filled(store, make_session):
    store.append(make_session("s1", turns=5))
    return store


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_damaged_events_are_returned_in_their_positions(filled, body):
    query = EventFilter(session_id="s1")
    before = filled.events(query)
    whole = before[6]
    damage(filled, whole.seq, body)

    record = filled.events_or_damage(query)

    assert intact_events(record) == [one for one in before if one is not whole]
    damaged = record[6]
    assert isinstance(damaged, DamagedEvent)
    assert (damaged.seq, damaged.hash, damaged.type) == (whole.seq, whole.hash, whole.event.type)
    assert (damaged.session_id, damaged.turn, damaged.at) == ("s1", whole.event.context.turn, whole.event.at)
    assert damaged.problem.startswith("not a JSON object: ")
    with pytest.raises(EventFormatError):
        filled.events(query)


def test_an_event_of_another_type_than_its_row_is_damaged(filled):
    one, other = filled.events(EventFilter(session_id="s1", limit=2))
    copied = "UPDATE events SET body = (SELECT body FROM events WHERE seq = ?) WHERE seq = ?"
    edit(filled, copied, other.seq, one.seq)

    (damaged, *_) = filled.events_or_damage(EventFilter(types=(one.event.type,)))

    assert isinstance(damaged, DamagedEvent)
    assert other.event.type in damaged.problem


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_the_window_keeps_the_position_of_a_damaged_block(filled, body):
    before = filled.blocks_at("s1", 3)
    added = filled.events(EventFilter(session_id="s1", types=("block.added",), turn_from=2, turn_to=2))[0]
    damage(filled, added.seq, body)

    after = filled.blocks_at("s1", 3)

    assert [row.block_id for row in after] == [row.block_id for row in before]
    (changed,) = [new for new, old in zip(after, before, strict=True) if new != old]
    assert changed.content_type == "unattributed"
    assert (changed.tokens, changed.turn_added) == (0, 2)
    assert f"event {added.seq}" in str(changed.preview)


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
@pytest.mark.parametrize("indexed_before", [False, True])
def test_a_search_finds_the_undamaged_events(filled, body, indexed_before):
    query = EventFilter(text="tool_result", types=("block.added",))
    hits = filled.events(query)
    if indexed_before:
        filled.index_text()
    damage(filled, hits[1].seq, body)
    while filled.index_text():
        pass

    assert intact_events(filled.events_or_damage(query)) == [hits[0], *hits[2:]]
    assert filled.prune(max_bytes=1) == 1
    assert filled.events_or_damage(query) == []
