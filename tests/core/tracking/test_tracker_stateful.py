"""Whatever happens to a session, in whatever order: the measurements add up and every event can be stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from concluded import Concluded
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.codec import decode, encode, encode_all
from windowpane.core.events import ContentCompressed, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import CONTENT_TYPES

Make = Callable[..., Any]

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.sampled_from(CONTENT_TYPES),
            st.integers(0, 3000),
            st.sampled_from([None, "a", "b", "c"]),
            st.sampled_from([None, "c1", "c2"]),
        ),
        st.tuples(st.just("end"), st.one_of(st.none(), st.integers(0, 30_000))),
        st.tuples(st.just("evict"), st.lists(st.integers(0, 40), max_size=3), st.booleans()),
        st.tuples(
            st.just("compress"), st.lists(st.integers(0, 40), max_size=4), st.sampled_from(["content", "window"]),
            st.one_of(st.none(), st.integers(0, 9000)), st.integers(0, 2),
        ),
        st.tuples(st.just("refer"), st.lists(st.integers(0, 40), max_size=3)),
        st.tuples(st.just("measure"), st.sampled_from(["before", "after"])),
        st.tuples(st.just("roll"), st.sampled_from(["clear", "checkpoint"])),
        st.tuples(st.just("limit"), st.sampled_from([None, 8000, 20_000])),
    ),
    max_size=40,
)  # fmt: skip


def blocks_at(play: Any, places: list[int]) -> list[Any]:
    held = list(play.tracker.window)
    return [held[place % len(held)] for place in places] if held else []


def take(play: Any, step: tuple[Any, ...]) -> None:
    tracker = play.tracker
    match step:
        case ("add", kind, tokens, text, call):
            tracker.add(kind, text, tokens, tool_call_id=call)
        case ("end", total):
            tracker.end_turn(None if total is None else Usage(input_tokens=total, output_tokens=3))
        case ("evict", places, mask):
            blocks = blocks_at(play, places)
            placeholders = tuple(
                tracker.make_replacement("placeholder", "gone", 2, replaces=b.id) for b in blocks if mask
            )
            play.evict(*blocks, form="mask" if mask else "drop", placeholders=placeholders)
        case ("compress", places, scope, after, results):
            blocks = blocks_at(play, places)
            made = [tracker.make_replacement("summary", f"sum {n}", 20, replaces=None) for n in range(results)]
            removed, ids = tuple(b.id for b in blocks), tuple(block.id for block in made)
            tracker.compress(
                ContentCompressed("compaction", "auto", "accepted", 9, 3, scope, removed, ids),
                made,
                window_tokens=after,
            )
        case ("refer", places):
            tracker.mark_referenced([block.id for block in blocks_at(play, places)], "b0")
        case ("measure", phase):
            tracker.measure(phase)
        case ("roll", reason):
            tracker.roll(reason)
        case ("limit", tokens):
            tracker.set_limits(None if tokens is None else WindowLimits.of(tokens, "catalogue"))


@given(steps=STEPS)
def test_measurements_are_consistent_in_any_order_of_events(session: Make, steps: list[tuple[Any, ...]]) -> None:
    concluded = Concluded()
    play = session(WindowLimits.of(8000, "catalogue"), make_tracker=concluded.tracker)
    play.tracker.start()
    for step in steps:
        take(play, step)
    play.tracker.end("done")

    for measured in play.phases("before") + play.phases("after") + play.phases("final"):
        assert sum(measured.used_by_component.values()) == measured.used_tokens
        assert min(measured.used_by_component.values()) >= 0
        assert measured.used_tokens >= 0
        assert 0 <= measured.duplicate_tokens + measured.stale_tokens <= measured.used_tokens
        for ratio in (measured.tool_result_ratio, measured.duplicate_ratio, measured.stale_ratio):
            assert ratio is None or 0 <= ratio <= 1
        assert measured.velocity is None or measured.velocity >= 0
        assert (measured.limit_tokens is None) == (measured.zone is None) == (measured.utilization is None)
    assert [event.n for event in play.events] == list(range(len(play.events)))
    assert encode_all(concluded.again()) == encode_all(play.events)
    for event in play.events:
        raw = encode(event)
        assert encode(decode(raw)) == raw
