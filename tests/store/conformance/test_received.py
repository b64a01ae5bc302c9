"""Events from other hosts: stored once, whatever is repeated, and only the faulty ones refused."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.codec import encode
from windowpane.core.events import (
    Event,
    EventContext,
    SessionDescribed,
    SessionStarted,
    SubagentDelegated,
    TelemetryDropped,
    TurnStarted,
)
from windowpane.store.captured_content import CapturedText
from windowpane.store.filters import EventFilter
from windowpane.store.writes import received
from windowpane.store.writes.received import NumberRanges, ReceivedBatch


def stored(store, session_id: str | None = None) -> list[Event]:
    return [item.event for item in store.events(EventFilter(session_id=session_id, limit=100_000))]


def session(session_id: str, numbers: range, *, turn: int = 1) -> list[Event]:
    context = EventContext(session_id, "agent", "gpt-4o", turn, 1, "live", f"{session_id}/stream")
    return [Event(context, n, 1.0 + n, TurnStarted() if n else SessionStarted()) for n in numbers]


@given(st.lists(st.integers(0, 60)))
def test_ranges_hold_the_numbers_of_a_set(numbers: list[int]) -> None:
    ranges, expected = NumberRanges(), set[int]()
    for number in numbers:
        assert ranges.add(number) == (number not in expected)
        expected.add(number)
        ranges = NumberRanges(str(ranges))

    assert not any(ranges.add(number) for number in expected)
    assert str(ranges).count(",") == max(0, len({n for n in expected if n + 1 not in expected}) - 1)


def test_the_ranges_of_one_stream_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(received, "MAXIMUM_RANGES", 3)
    ranges = NumberRanges()
    for number in range(0, 20, 2):
        ranges.add(number)

    assert str(ranges) == "~0-14,16,18"
    ranges = NumberRanges(str(ranges))
    assert ranges.add(17)
    assert [number for number in range(20) if ranges.is_unknown(number)] == list(range(1, 14))


def test_what_comes_late_for_thousands_of_gaps_is_stored_once(store) -> None:
    events = session("s", range(6_000))
    store.receive([ReceivedBatch(events[::2])])
    late = events[1::2]
    random.Random(3).shuffle(late)

    assert [
        store.receive([ReceivedBatch(late[start : start + 600])])[0].stored for start in range(0, 3_000, 600)
    ] == [600] * 5
    assert sum(receipt.stored for receipt in store.receive([ReceivedBatch(events), ReceivedBatch(late)])) == 0
    assert sorted(event.n for event in stored(store)) == list(range(6_000))


def test_repeated_batches_are_stored_once_and_in_order(store, make_session) -> None:
    """Cut anywhere, repeated from anywhere, as a sender does that got no acknowledgement."""
    events, chance = make_session(turns=8), random.Random(5)
    end = 0
    while end < len(events):
        start = max(0, end - chance.randrange(12))
        end = start + chance.randrange(1, 30)
        store.receive([ReceivedBatch(events[start:end])])

    assert list(map(encode, stored(store))) == list(map(encode, events))
    assert store.verify().intact
    assert store.session(events[0].context.session_id).turns == 8


def test_the_report_of_a_gap_is_new_although_it_comes_late(store) -> None:
    events = session("s", range(8))
    store.receive([ReceivedBatch(events[:3] + events[4:6])])

    (receipt,) = store.receive([ReceivedBatch([events[3], *events[4:]])])

    assert receipt.stored == 3
    assert [event.n for event in stored(store)] == [0, 1, 2, 4, 5, 3, 6, 7]


def test_batches_of_many_senders_share_a_transaction(store) -> None:
    batches = [ReceivedBatch(session(f"s{number}", range(number + 1))) for number in range(100)]
    before = store.receive(batches[:1])

    receipts = store.receive(batches)

    assert before[0].stored == 1
    assert [receipt.stored for receipt in receipts] == [0, *range(2, 101)]
    assert store.verify().intact


def test_only_the_faulty_event_is_refused(store) -> None:
    faulty = session("bad", range(6))
    faulty[3] = faulty[3]._replace(context=replace(faulty[3].context, turn=2**70))
    others = [ReceivedBatch(session("a", range(3))), ReceivedBatch(session("b", range(3)))]

    receipts = store.receive([others[0], ReceivedBatch([*faulty, *session("c", range(2))]), others[1]])

    assert [receipt.stored for receipt in receipts] == [3, 7, 3]
    ((refused,),) = [receipt.refused for receipt in receipts if receipt.refused]
    assert refused.position == 3
    assert refused.problem.startswith("the store cannot hold it: ")
    assert (store.verify().intact, store.verify().sender_gaps) == (True, 1)
    report = faulty[0]._replace(n=3, data=TelemetryDropped(3, 3, "sink_failed"))
    assert store.receive([ReceivedBatch([report])])[0].stored == 1
    assert (store.verify().intact, store.verify().sender_gaps) == (True, 0)


def test_a_token_writes_to_the_sessions_of_its_project_only(store) -> None:
    store.receive([ReceivedBatch(session("s", range(2))), ReceivedBatch(session("s", range(3)), project="beta")])
    mine = session("s", range(2))
    described = Event(mine[0].context, 3, 4.0, SessionDescribed(project="beta"))

    (receipt,) = store.receive([ReceivedBatch([*mine, described], project="alpha")])

    assert receipt.stored == 2
    assert [(event.position, event.problem) for event in receipt.refused] == [
        (2, "data.project: expected 'alpha', the project of the token, got 'beta'"),
    ]
    stored = {row.session_id: row.project for row in store.find_sessions("s")}
    assert stored == {"s": "", "s@alpha": "alpha", "s@beta": "beta"}
    assert store.verify().intact


def test_parents_and_subagents_are_of_the_project_of_the_token(store) -> None:
    store.receive([ReceivedBatch(session("lead", range(2)), project="beta")])
    child = session("child", range(1))[0]
    context = replace(child.context, parent_session_id="lead")
    delegated = Event(context, 1, 2.0, SubagentDelegated("grandchild"))

    store.receive([ReceivedBatch([child._replace(context=context), delegated], project="alpha")])

    assert store.session("child@alpha").parent_session_id == "lead@alpha"
    (event,) = store.events(EventFilter(session_id="child@alpha", types=("subagent.delegated",)))
    assert event.event.data.child_session_id == "grandchild@alpha"


def test_a_session_that_a_project_has_under_its_plain_id_continues(store) -> None:
    store.receive([ReceivedBatch(session("s", range(2)))])
    store.assign_project("s", "alpha")

    store.receive([ReceivedBatch(session("s", range(4)), project="alpha")])

    assert [row.session_id for row in store.find_sessions("s")] == ["s"]
    assert store.session("s").events == 5


def test_a_session_that_was_moved_to_another_project_takes_nothing_from_its_former_token(store) -> None:
    store.receive([ReceivedBatch(session("s", range(2)), project="alpha")])
    store.assign_project("s@alpha", "beta")

    (receipt,) = store.receive([ReceivedBatch(session("s", range(4)), project="alpha")])

    assert receipt.stored == 0
    assert {event.problem for event in receipt.refused} == {
        "session_id: the session was moved to another project than the token's"
    }
    assert store.session("s@alpha").project == "beta"


def test_received_texts_are_stored_where_the_store_captures(stores) -> None:
    text = CapturedText("d" * 32, "the secret is hush")
    stores.open().receive([ReceivedBatch(session("s", range(1)), [text])])
    without = stores.read().content(text.digest)
    capturing = stores.open(capture=True, redact=lambda value: value.replace("hush", "[redacted]"))
    capturing.receive([ReceivedBatch(session("s", range(1)), [text])])

    assert without is None
    assert capturing.content(text.digest) == "the secret is [redacted]"


def test_retention_deletes_what_is_remembered_of_a_session(store) -> None:
    store.receive([ReceivedBatch(session("old", range(3))), ReceivedBatch(session("older", range(3)))])

    assert store.prune(before=1e9) == 2
    (receipt,) = store.receive([ReceivedBatch(session("old", range(3)))])

    assert receipt.stored == 3
