"""Turns: their start and end, their measurements, and the numbers and times of events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from windowpane.core.codec import decode, encode
from windowpane.core.events import SessionEnded, TurnEnded, Usage, WindowRolled

Make = Callable[..., Any]


def test_a_turn_starts_with_its_first_block_and_ends_with_its_call(session: Make) -> None:
    play = session(1000)
    play.turn(10, 5, total=12)

    assert play.kinds() == [
        "turn.started", "block.added", "pressure.measured", "block.added", "block.added", "turn.ended",
        "pressure.measured", "pressure.measured",
    ]  # fmt: skip
    assert {event.context.turn for event in play.events} == {1}


def test_tool_results_belong_to_the_turn_that_reads_them(session: Make) -> None:
    play = session()
    play.add_user(10)
    play.call("c", "{}")
    play.tracker.end_turn()
    result = play.result("c", "text")

    assert (result.turn, play.tracker.turn) == (2, 2)


def test_a_group_is_a_reply_its_calls_and_their_results(session: Make) -> None:
    play = session()
    user = play.add_user(10)
    said = play.tracker.add("thinking", "hm", 5)
    one, two = play.call("c1", "1"), play.call("c2", "2")
    play.tracker.end_turn()
    late, early = play.result("c2", "b"), play.result("c1", "a")
    reply = play.tracker.add("assistant_response", "done", 5)

    assert {one.group, two.group, late.group, early.group} == {said.group}
    assert len({user.group, said.group, reply.group}) == 3


def test_an_exchange_starts_with_a_user_message(session: Make) -> None:
    play = session()
    blocks = [play.tracker.add("system_prompt", None, 1), play.add_user(1), play.add_user(1)]
    blocks.append(play.tracker.add("assistant_response", None, 1))
    blocks.append(play.add_user(1))

    assert [block.exchange for block in blocks] == [0, 1, 1, 1, 2]


def test_before_is_what_the_call_sends_and_final_is_the_providers_count(session: Make) -> None:
    play = session(1000)
    play.turn(100, 30, total=140)
    before, final = play.phases("before")[0], play.phases("final")[0]

    assert (before.used_tokens, before.count_source) == (100, "estimate")
    assert (final.used_tokens, final.count_source) == (140, "usage")


def test_the_estimate_of_the_next_call_adds_the_reply_and_later_blocks(session: Make) -> None:
    play = session(1000)
    play.turn(100, 30, total=140)
    play.turn(50, 10)

    assert play.phases("before")[1].used_tokens == 140 + 30 + 50


def test_after_measures_the_window_after_a_reduction(session: Make) -> None:
    play = session(1000)
    big = play.add_user(600)
    play.tracker.measure("before")
    play.evict(big)
    play.tracker.measure("after")

    assert [m.used_tokens for m in play.phases("before") + play.phases("after")] == [600, 0]


def test_each_turn_has_one_final_measurement(session: Make) -> None:
    """Each turn ends with exactly one, whatever was measured before."""
    play = session(1000)
    for _ in range(5):
        play.add_user(10)
        play.tracker.measure("before")
        play.tracker.measure("after")
        play.turn(0, 5)

    assert len(play.phases("final")) == 5
    assert len(play.of(TurnEnded)) == 5


def test_a_call_without_any_content_is_a_turn(session: Make) -> None:
    play = session(1000)
    measured = play.tracker.end_turn(Usage(input_tokens=70))

    assert play.tracker.turn == 1
    assert measured.used_by_component["unattributed"] == 70


def test_events_are_numbered_without_gaps(session: Make) -> None:
    play = session(1000)
    play.tracker.start(task="task")
    for _ in range(3):
        block = play.add_user(100)
        play.turn(0, 20, total=150)
        play.evict(block)
        play.compact(result=5)
        play.tracker.roll("clear")
    play.tracker.end("done")

    assert [event.n for event in play.events] == list(range(len(play.events)))
    assert len({event.event_id for event in play.events}) == len(play.events)


def test_no_event_has_a_time_without_a_clock(session: Make) -> None:
    play = session(1000)
    play.tracker.start()
    play.turn(10, 5, total=12)
    play.tracker.end("done")

    assert {event.at for event in play.events} == {None}


def test_a_given_time_takes_precedence_over_the_clock(session: Make) -> None:
    ticks = count(100)
    play = session(clock=lambda: float(next(ticks)))
    play.tracker.add("user_message", None, 1, at=5.0)
    play.tracker.add("user_message", None, 1)

    assert [event.at for event in play.events] == [5.0, 5.0, 100.0]


def test_the_same_facts_give_the_same_bytes(session: Make) -> None:
    def played() -> list[bytes]:
        play = session(1000)
        play.tracker.start()
        for turn in range(6):
            play.turn(50 * turn, 20, total=100 + 60 * turn)
        play.tracker.end("done")
        return [encode(event) for event in play.events]

    assert played() == played()
    assert all(encode(decode(raw)) == raw for raw in played())


def test_events_are_handed_over_once_per_turn(session: Make) -> None:
    play = session(1000)
    play.turn(10, 5)
    assert play.batches == 1
    play.add_user(10)
    assert play.batches == 1


def test_a_turn_that_never_ends_is_handed_over_in_parts(session: Make) -> None:
    play = session()
    for _ in range(2500):
        play.add_user(1)

    assert play.batches == 2


@pytest.mark.parametrize("reason", ["checkpoint", "clear"])
def test_rolling_continues_in_an_empty_window(session: Make, reason: str) -> None:
    play = session(1000)
    play.turn(100, 30, total=140)
    play.tracker.roll(reason)
    play.turn(20, 5)

    assert play.of(WindowRolled) == [WindowRolled(reason, 1, 2, 170)]
    assert play.events[-1].context.window_id == 2
    assert play.phases("before")[1].used_tokens == 20


def test_rolling_in_the_middle_of_a_turn_measures_the_new_window(session: Make) -> None:
    """A turn that was measured before the rollover is measured again."""
    play = session(1000)
    play.add_user(100)
    play.tracker.measure("before")
    play.tracker.roll("checkpoint")
    final = play.tracker.end_turn()

    assert final.used_tokens == 0
    assert sum(final.used_by_component.values()) == 0


def test_a_session_ends_with_the_report_of_its_window(session: Make) -> None:
    play = session(1000)
    play.turn(100, 0, total=100)
    play.turn(500, 0, total=600)
    play.tracker.end_turn(Usage(input_tokens=200), cost_dollars=0.5)
    play.tracker.end("done")
    report = play.of(SessionEnded)[0].report

    assert (report.turns, report.peak_used_tokens, report.peak_utilization) == (3, 600, 0.6)
    assert (report.final_used_tokens, report.cost_dollars) == (200, 0.5)
    assert sum(report.zones.values()) == 3
