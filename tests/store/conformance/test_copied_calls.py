"""A call that two recordings of one kind hold is counted once: a fork repeats the history that it came from."""

from __future__ import annotations

import pytest
from tests.store.conformance.direct_access import edit, fetch
from tests.store.conformance.test_same_sessions import CALLS, folded, record, turns_of

from windowpane.core.events import CallsCopied, Event
from windowpane.report.session_report import gather
from windowpane.report.text import to_text
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.store import Store

MORE = tuple(f"msg_02TZcV9e4Nb1cJf6YmV0{number:04}" for number in range(2))
ORIGINAL = record("claude_code", "original")
FORK = record("claude_code", "fork", calls=CALLS[:3] + MORE)
"""Repeats three of the four calls, then makes two others."""


def assert_six_calls(store: Store) -> None:
    """Every sum has the six calls once, of 1,000 to 4,000 and of 4,000 and 5,000 tokens."""
    totals = store.fleet_totals(SessionFilter(), live_since=0)
    assert (totals.sessions, totals.input_tokens, totals.cost_dollars) == (2, 19_000, pytest.approx(0.06))
    (day,) = store.trends(days=7)
    assert (day.calls, day.input_tokens, day.output_tokens) == (6, 19_000, 6 * 70)
    assert day.cost_dollars == pytest.approx(0.06)
    assert sum(row.cost_dollars or 0.0 for row in store.sessions()) == pytest.approx(0.06)
    assert store.verify().broken == ()


@pytest.mark.parametrize("order", [(ORIGINAL, FORK), (FORK, ORIGINAL)], ids=["original-first", "fork-first"])
def test_the_calls_that_a_fork_repeats_are_counted_once(store: Store, order) -> None:
    for recording in order:
        store.import_session(lambda recording=recording: recording)

    assert_six_calls(store)
    first, second = (recording[0].context.session_id for recording in order)
    copied = store.session(second)
    assert copied is not None
    assert copied.copied_turns == 3
    assert gather(store, copied).cost_notes == ("3 calls not included: copied from another session",)
    (event,) = store.events(EventFilter(session_id=second, types=("calls.copied",)))
    assert event.event.data == CallsCopied(first, 1, 3)
    assert [turn.input_tokens for turn in store.turns(second)][:3] == [1_000, 2_000, 3_000]


def test_the_report_of_a_copy_excludes_the_cost_of_its_calls(store: Store) -> None:
    store.import_session(lambda: FORK)
    store.import_session(lambda: record("claude_code", "older", calls=CALLS[:3]))
    copied = store.session("older")
    assert copied is not None
    assert (copied.copied_turns, copied.turns, copied.cost_dollars) == (3, 3, None)

    assert "Cost   –   3 calls not included: copied from another session" in to_text(gather(store, copied))


def test_a_fork_that_is_stored_as_it_grows_is_counted_once(store: Store) -> None:
    store.import_session(lambda: ORIGINAL)
    for turn in range(6):
        store.append([event for event in FORK if event.context.turn == turn])

    assert_six_calls(store)


def test_copies_in_one_batch_are_counted_once(store: Store) -> None:
    store.append([*ORIGINAL, *FORK])

    assert_six_calls(store)


def test_a_fork_that_is_imported_again_is_unchanged(store: Store) -> None:
    store.import_session(lambda: ORIGINAL)
    shorter = [event for event in FORK if event.context.turn <= 4]
    store.import_session(lambda: shorter)
    outcome = store.import_session(lambda: FORK)

    assert not outcome.revised
    assert_six_calls(store)
    assert store.import_session(lambda: FORK).appended == 0


def test_an_original_that_is_rewritten_still_counts_its_calls(store: Store) -> None:
    store.import_session(lambda: ORIGINAL[:-1])
    store.import_session(lambda: FORK)
    changed = record("claude_code", "original", start=ORIGINAL[0].at + 1)
    assert store.import_session(lambda: changed).revised

    assert_six_calls(store)


def first_counted(store: Store, session_id: str) -> Event:
    """Return the first event of a session that counts."""
    ((seq,),) = fetch(store, "SELECT counted_from FROM sessions WHERE session_id = ? AND current = 1", session_id)
    (stored,) = store.events(EventFilter(session_id=session_id, after_seq=seq - 1, limit=1))
    return stored.event


@pytest.mark.parametrize("original_at", [0, 1, 2], ids=["stored-first", "stored-second", "stored-last"])
def test_a_fork_that_is_rewritten_counts_from_its_first_new_event(store: Store, original_at: int) -> None:
    """The mark of the copied calls is in both revisions of the fork, in the later one, or in none."""
    fork = record("claude_code", "fork", calls=(*CALLS[:2], MORE[0], CALLS[2]))
    half = len(fork) * 3 // 4
    edited = [*fork[:half], *(event._replace(at=(event.at or 0.0) + 1) for event in fork[half:])]
    recordings = [fork, edited]
    recordings.insert(original_at, record("claude_code", "original", calls=CALLS))
    for recording in recordings:
        store.import_session(lambda recording=recording: recording)

    assert store.verify().broken == ()
    assert first_counted(store, "fork") == edited[half]


def test_a_rebuild_corrects_the_first_event_that_counts(store: Store) -> None:
    store.import_session(lambda: ORIGINAL)
    changed = record("claude_code", "original", start=ORIGINAL[0].at + 1)
    store.import_session(lambda: changed)
    edit(store, "UPDATE sessions SET counted_from = counted_from + 3 WHERE current = 1")
    assert "sessions.counted_from" in store.verify().broken[0].problem

    store.rebuild_projections()
    assert store.verify().intact
    store.import_session(lambda: [*changed, changed[-1]._replace(n=len(changed))])
    assert store.verify().intact


def test_rows_that_are_rebuilt_count_a_copy_once(store: Store) -> None:
    store.import_session(lambda: ORIGINAL)
    store.import_session(lambda: FORK)
    store.rebuild_projections()

    assert_six_calls(store)


def test_metrics_count_a_copied_call_once(store: Store) -> None:
    store.import_session(lambda: ORIGINAL)
    store.import_session(lambda: FORK)

    assert turns_of(folded(store)) == 6
