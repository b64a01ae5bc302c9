"""Stored events are read back equal, as events and as rows."""

from __future__ import annotations

from contextlib import closing

import pytest

from windowpane.core.codec import encode
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.read_files import FileState, ReadFile
from windowpane.store.writes.write import SESSIONS_PER_STATEMENT


def test_events_are_read_back_equal_and_in_order(store, make_session):
    events = make_session()
    store.append(events[:20])
    store.append(events[20:])

    stored = store.events(EventFilter(session_id="s1", limit=10_000))

    assert [encode(item.event) for item in stored] == [encode(event) for event in events]
    assert [item.seq for item in stored] == list(range(1, len(events) + 1))
    assert all(item.counted and item.revision == 1 for item in stored)


def test_one_batch_starts_more_sessions_than_a_statement_takes(store, make_session):
    sessions = [
        make_session(session_id=f"s{number}", turns=1) for number in range(2 * SESSIONS_PER_STATEMENT + 1)
    ]
    store.append(sessions[0][:2])

    store.append([*sessions[0][2:], *(event for events in sessions[1:] for event in events)])

    rows = store.sessions(SessionFilter(limit=len(sessions) + 1))
    assert {row.session_id: row.events for row in rows} == {
        events[0].context.session_id: len(events) for events in sessions
    }


def test_the_session_row_sums_up_its_events(store, make_session):
    store.append(make_session(turns=8))

    row = store.session("s1")

    assert row is not None
    assert (row.agent, row.model, row.source, row.ended, row.incomplete) == (
        "reviewer",
        "gpt-5",
        "demo",
        True,
        False,
    )
    assert (row.turns, row.exchanges, row.windows, row.evicted_blocks, row.compressions) == (8, 8, 1, 1, 1)
    assert row.cost_dollars == pytest.approx(0.08)
    assert row.output_tokens == 8 * 70
    assert row.limit_tokens == 32_768
    assert row.last_event == "session.ended"


def test_turn_rows_hold_both_measurements_and_the_usage(store, make_session):
    store.append(make_session(turns=3))

    turns = store.turns("s1")

    assert [turn.turn for turn in turns] == [1, 2, 3, 4]
    second = turns[1]
    assert second.used_before is not None
    assert second.used_final == second.input_tokens
    assert second.count_source == "usage"
    assert sum(second.components.values()) == second.used_final
    assert store.turns("s1", first=2, last=3) == turns[1:3]


def test_sessions_are_listed_in_the_requested_order(store, make_session):
    for number in range(5):
        store.append(make_session(f"s{number}", turns=number + 1, start=1e9 + number * 1000))

    recent = [row.session_id for row in store.sessions(SessionFilter(order="recent", limit=2, offset=1))]
    expensive = [row.session_id for row in store.sessions(SessionFilter(order="cost"))]

    assert recent == ["s3", "s2"]
    assert expensive == ["s4", "s3", "s2", "s1", "s0"]
    assert [row.session_id for row in store.find_sessions("s3")] == ["s3"]
    assert not store.sessions(SessionFilter(live_since=0.0))


def test_a_reader_sees_what_a_writer_stored_later(stores, store, make_session):
    reader = stores.read()
    before = reader.version()
    store.append(make_session())

    assert reader.version() > before
    assert reader.session("s1") == store.session("s1")
    reader.close()


def test_half_a_surrogate_pair_in_a_name_loses_no_event(store, make_session):
    events = make_session(turns=2)
    broken = type(events[0].context)(*[
        "agent \ud83d" if name == "agent" else getattr(events[0].context, name)
        for name in events[0].context.__dataclass_fields__
    ])  # fmt: skip
    renamed = [event._replace(context=broken) for event in events]

    store.append(renamed[:5])
    assert store.session("s1").agent == "agent ?"
    store.import_session(lambda: renamed)
    assert store.session("s1").events == len(events)
    assert store.verify().intact


def test_a_file_whose_name_is_not_utf8_is_remembered(stores):
    read = ReadFile(FileState(1, 2, 3, "settings"), b"report")
    with closing(stores.open()) as store:
        store.remember_file("caf\udce9.jsonl", read)
        assert store.read_file("caf\udce9.jsonl") == read
        assert store.read_file("caf\udce8.jsonl") is None
