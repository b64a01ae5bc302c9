"""Extreme numbers that a store holds, as earlier releases took them: they stop no reader and no other project."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.conformance.conftest import Stores

from windowpane.core.events import Event, EventContext, SessionStarted, TurnEnded, Usage
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.store import Store
from windowpane.store.writes.received import ReceivedBatch

LARGEST = 2**60
TIMES = (86_400.5, -1e308, -1.0, 1e15, 1e308)


def extremes(session_id: str) -> list[Event]:
    """Return turns with the largest numbers that one row can hold."""
    context = EventContext(session_id, "agent", "gpt-4o", 1, 1, "live", f"{session_id}/stream")
    usage = Usage(input_tokens=LARGEST, output_tokens=LARGEST)
    ended = [
        Event(context, number, at, TurnEnded(usage, "usage", cost_dollars=1e15))
        for number, at in enumerate(TIMES, 1)
    ]
    return [Event(context, 0, 1.0, SessionStarted()), *ended]


def ordinary(session_id: str, numbers: range) -> list[Event]:
    context = EventContext(session_id, "agent", "gpt-4o", 1, 1, "live", f"{session_id}/stream")
    return [
        Event(context, number, 86_400.5, TurnEnded(Usage(input_tokens=10, output_tokens=1), "usage"))
        for number in numbers
    ]


def test_extremes_are_stored_or_refused_by_event(store: Store) -> None:
    batches = [
        batch
        for number in range(4)
        for batch in (
            ReceivedBatch(extremes(f"s{number}"), project="alpha"),
            ReceivedBatch(ordinary("good", range(number, number + 1)), project="beta"),
        )
    ]

    receipts = store.receive(batches)
    later = store.receive([ReceivedBatch(ordinary("good", range(4, 8)), project="beta")])

    assert [receipt.stored for receipt in receipts[1::2]] == [1, 1, 1, 1]
    assert later[0].stored == 4
    assert all(receipt.stored + len(receipt.refused) == len(TIMES) + 1 for receipt in receipts[::2])
    assert store.session("good@beta").input_tokens == 80


def test_readers_read_extremes(stores: Stores, tmp_path: Path) -> None:
    store = stores.open()
    for number in range(4):
        store.receive([ReceivedBatch(extremes(f"s{number}"), project="alpha")])

    assert store.verify().broken == ()
    assert store.fleet_totals(SessionFilter(), live_since=0.0).input_tokens >= LARGEST
    assert len(store.sessions(SessionFilter(order="pressure"))) == 4
    assert sum(row.calls for row in store.trends(days=10)) == 4
    store.tool_leaderboard()
    events = store.count_events(EventFilter())
    assert store.export(tmp_path / "events.jsonl", form="jsonl") == events
    assert store.rebuild_projections() == 4
    assert store.verify().broken == ()


def test_a_turn_of_any_number_is_exported_to_parquet(stores: Stores, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    store = stores.open()
    context = EventContext("s", "agent", "gpt-4o", LARGEST, 1, "live", "stream")
    store.receive([ReceivedBatch([Event(context, 0, 1.0, SessionStarted())])])

    assert store.export(tmp_path / "events.parquet", form="parquet") == 1


def test_a_session_that_cannot_be_folded_is_one_problem(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from windowpane.store.projections import rebuild as projection_rebuild

    store.receive([ReceivedBatch(ordinary("s", range(2))), ReceivedBatch(ordinary("other", range(2)))])
    fold = projection_rebuild._folded

    def overflowing(connection, key, into):  # type: ignore[no-untyped-def]
        if key == 1:
            raise OverflowError("int too large")
        return fold(connection, key, into)

    monkeypatch.setattr(projection_rebuild, "_folded", overflowing)
    (broken,) = store.verify().broken

    assert "cannot be folded: int too large" in broken.problem
