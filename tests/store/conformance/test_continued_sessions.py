"""Sessions that several runs record: each continues where the record ends, and no row replaces another."""

from __future__ import annotations

import dataclasses
import random
import typing
from dataclasses import replace

import pytest

from windowpane.core.events import PAYLOADS, AlertFired, BlocksEvicted, Event, EvictedBlock, Usage
from windowpane.core.events.content import Candidate
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.window.blocks import Block
from windowpane.store.filters import AlertFilter, EventFilter
from windowpane.store.writes import continuation
from windowpane.store.writes.received import ReceivedBatch


def run(stream: str, turns: int = 5, *, end: bool = True) -> list[Event]:
    """Return the events of one run of the session s1."""
    events: list[Event] = []
    info = SessionInfo("s1", "agent", "gpt-4o", "live", stream)
    tracker = SessionTracker(info, emit=events.extend, digest=str, limits=WindowLimits.of(32_768, "given"))
    tracker.start(1.0)
    for turn in range(1, turns + 1):
        asked = tracker.add("user_message", f"asked {turn} of {stream}", 100, at=float(turn))
        tracker.add("assistant_response", "certainly", 50, at=float(turn))
        tracker.end_turn(Usage(input_tokens=1_000 * turn, output_tokens=50), cost_dollars=0.01, at=float(turn))
        if turn == 3:
            dropped = EvictedBlock(asked.id, "user_message", 100, "drop", "old", turn_added=turn)
            tracker.evict(BlocksEvicted("hybrid", (dropped,), 100, 100), at=float(turn))
    if end:
        tracker.end("done", float(turns))
    tracker.flush()
    return events


def numbered(store) -> list[tuple[int, int]]:
    return [(turn.turn, turn.window_id) for turn in store.turns("s1")]


def test_a_run_continues_where_the_last_one_ended(store) -> None:
    store.append(run("one", 8))
    before = store.blocks_at("s1", 8)
    store.append(run("two", 5))

    row = store.session("s1")
    assert numbered(store) == [(turn, 1) for turn in range(1, 9)] + [(turn, 2) for turn in range(9, 14)]
    assert (row.turns, row.windows, row.exchanges) == (13, 2, 13)
    assert row.input_tokens == sum(turn.input_tokens for turn in store.turns("s1"))
    assert row.peak_used_tokens == 8_000
    assert row.ended
    assert store.session("s1").evicted_blocks == 2
    after = store.blocks_at("s1", 8)
    assert [(block.block_id, block.tokens) for block in after] == [
        (block.block_id, block.tokens) for block in before
    ]
    left = [block for block in after if block.removed_by == "roll"]
    assert {block.reason for block in left} == {"session continued"}
    now = store.blocks_at("s1", 13)
    assert {block.window_id for block in now} == {2}
    assert all(block.block_id.endswith(".2") and 9 <= block.turn_added <= 13 for block in now)
    assert store.verify().intact
    assert store.rebuild_projections() == 1
    assert store.verify().intact


def test_runs_may_be_stored_by_one_batch_or_event_by_event(store) -> None:
    events = [*run("one", 3), *run("two", 2), *run("three", 4, end=False)]
    store.append(events)
    together = store.turns("s1"), store.blocks_at("s1", 9)
    bodies = [(one.event.type, one.event) for one in store.events(EventFilter(session_id="s1", limit=10_000))]
    store.rebuild_projections()

    assert (store.turns("s1"), store.blocks_at("s1", 9)) == together
    assert numbered(store) == [(turn, 1 + (turn > 3) + (turn > 5)) for turn in range(1, 10)]
    assert [kind for kind, _ in bodies].count("session.continued") == 2
    assert not store.session("s1").ended


def test_runs_at_once_have_turns_of_their_own(store) -> None:
    one, two = run("one", 6), run("two", 6)
    for turn in range(7):
        for events in (one, two):
            store.append([event for event in events if event.context.turn == turn])

    turns = store.turns("s1")
    assert [turn.turn for turn in turns] == list(range(1, 13))
    assert store.session("s1").turns == 12
    assert sum(turn.input_tokens for turn in turns) == store.session("s1").input_tokens
    assert store.verify().intact


def test_what_comes_late_for_an_earlier_run_is_of_its_turns(store) -> None:
    one, two = run("one", 6), run("two", 6)
    missing = [event for event in one if event.context.turn == 3]
    store.receive([ReceivedBatch([event for event in one if event not in missing])])
    store.receive([ReceivedBatch(two)])
    store.receive([ReceivedBatch(missing), ReceivedBatch([*one, *two])])

    third = store.turns("s1")[2]
    assert third.turn == 3
    assert third.input_tokens is not None
    assert store.session("s1").turns == 12
    assert [turn.turn for turn in store.turns("s1")] == list(range(1, 13))


def test_runs_in_shuffled_batches_lose_nothing(store) -> None:
    chance = random.Random(8)
    runs = [run(name, 4) for name in ("one", "two", "three")]
    batches = [events[start : start + 9] for events in runs for start in range(0, len(events), 9)]
    chance.shuffle(batches)
    for batch in batches:
        store.receive([ReceivedBatch(batch)])

    stored = [one.event for one in store.events(EventFilter(session_id="s1", limit=10_000))]
    own = sorted((e.context.stream_id, e.n) for e in stored if e.type != "session.continued")
    assert own == sorted((event.context.stream_id, event.n) for events in runs for event in events)
    assert store.session("s1").turns == len(store.turns("s1")) == 12


def test_alerts_of_each_run_are_its_own(store) -> None:
    for name, end in (("one", False), ("two", True)):
        events = run(name, 3, end=end)
        context = replace(events[-1].context, turn=2, stream_id=f"{name}/alerts")
        store.append([*events, Event(context, 0, 1.0, AlertFired("red", "critical", 2, 0.9, 0.9))])

    rows = store.alerts(AlertFilter(session_id="s1"))
    assert sorted(row.crossing_turn for row in rows) == [2, 5]
    assert [row.crossing_turn for row in rows if row.resolved_turn is None] == [5]
    assert store.session("s1").firing == 1


def test_a_title_or_note_between_the_runs_starts_none(store) -> None:
    store.append(run("one", 3))
    store.give_title("s1", "A title")
    store.append(run("two", 2))
    store.add_note("s1", 4, "Here it goes on")

    assert numbered(store) == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]
    assert store.session("s1").title == "A title"
    assert [note.turn for note in store.notes("s1")] == [4]


NUMBERS = {
    "id", "group", "replaces", "turn", "exchange", "block_id", "block_ids", "last_kept", "replacement",
    "turn_added", "turn_left", "removed", "results", "from_window", "to_window", "crossing_turn", "fired_turn",
}  # fmt: skip
"""Names of fields that hold what a run counts by itself."""


@pytest.mark.parametrize(
    "kind", [*PAYLOADS.values(), Block, EvictedBlock, Candidate], ids=lambda kind: kind.__name__
)
def test_every_number_that_a_run_counts_is_changed(kind: type) -> None:
    names = {field.name for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    nested = {
        name
        for name in names
        if any(part.__name__ in str(hints[name]) for part in (Block, EvictedBlock, Candidate))
    }
    nested = {name for name in nested if "Cause" not in str(hints[name])}

    assert (names & NUMBERS) | nested <= set(continuation._FIELDS.get(kind, {}))
