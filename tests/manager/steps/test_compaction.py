"""Compaction: the blocks it removes, the summaries it accepts, and when it stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import filler, is_valid, item, manager, snapshot, talk, tool_items, tool_turn

from windowpane.core.events import (
    BlocksEvicted,
    BreakerOpened,
    ContentCompressed,
    OverflowDetected,
)
from windowpane.core.window.window import Window
from windowpane.exceptions import ConfigurationError, IrreducibleContextError, WindowError
from windowpane.manager.plans.acceptance import ProposedSummary, rejection_reason
from windowpane.manager.plans.compaction import CompactionBounds, plan_compaction
from windowpane.manager.plans.summary import PREAMBLE
from windowpane.manager.presets.ai_sdk_go import SlidingWindow, Summarize, ai_sdk_go, keep_newest, plan_oldest
from windowpane.manager.snapshot import Item
from windowpane.metrics.fold import MetricState
from windowpane.testing import RecordingSink, chat_reply


def exchange(n: int, tokens: int, *, turn: int = 1) -> list[Item]:
    return [
        item(f"u{n}", "user_message", 10, turn, exchange=n),
        item(f"a{n}", "assistant_response", tokens, turn, exchange=n),
    ]


def removed(
    items: list[Item], *, target: int = 1, bounds: CompactionBounds | None = None, **more: Any
) -> list[str]:
    plan = plan_compaction(snapshot(items, limit=32_768, **more), target, bounds or CompactionBounds())
    return [] if plan is None else [block.id for block in plan.removed]


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
@pytest.mark.parametrize("name", ["tail_ratio", "user_ratio", "summary_ratio"])
def test_a_share_of_all_or_less_than_nothing_is_refused(name: str, share: float) -> None:
    with pytest.raises(ConfigurationError, match=name):
        replace(CompactionBounds(), **{name: share})


def test_an_empty_or_a_single_message_is_not_cut() -> None:
    assert removed([]) == []
    assert removed([item("u1", "user_message", 20_000)]) == []


def test_the_cut_keeps_the_newest_that_fit_and_is_before_a_call() -> None:
    items = [one for n in range(1, 6) for one in exchange(n, 1_500, turn=n)]
    half = removed(items, target=10**6)
    with_call = [*items, item("call", "tool_call", 20, 6, group="open", exchange=5)]

    assert half == ["a1", "a2", "a3", "a4"]
    assert "call" not in removed(with_call, open_calls=frozenset({"open"}))


@pytest.mark.parametrize("target", [10**6, 7_500, 1])
def test_a_summary_has_a_share_of_the_usable_tokens_whatever_the_target(target: int) -> None:
    taken = snapshot([one for n in range(1, 9) for one in exchange(n, 2_500, turn=n)], limit=32_768)
    plan = plan_compaction(taken, target, CompactionBounds(tail_ratio=0.0))

    assert plan is not None
    assert plan.summary_tokens == int(0.35 * 27_034)


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        pytest.param(100, 6_000 + 2_500 // 2, id="half_of_what_is_new"),
        pytest.param(22_000, 27_034 - 22_000, id="what_fits"),
        pytest.param(26_000, (6_000 + 2_500) // 2, id="half_of_all"),
    ],
)
def test_the_next_summary_has_less_room_only_where_the_call_would_not_fit(fixed: int, expected: int) -> None:
    items = [
        item("s", "system_prompt", fixed),
        item("sum", "summary", 6_000, text=PREAMBLE),
        item("a1", "assistant_response", 2_500, 1),
    ]
    plan = plan_compaction(snapshot(items, limit=32_768, turn=9), 1)

    assert plan is not None
    assert plan.summary_tokens == expected


def test_the_previous_summary_is_continued_and_is_not_user_text() -> None:
    items = [
        item("sum", "summary", 400, text=f"{PREAMBLE}\n- old"),
        *exchange(1, 9_000),
        *exchange(2, 9_000, turn=2),
    ]
    plan = plan_compaction(snapshot(items, limit=32_768), 1)

    assert plan is not None
    assert [block.id for block in plan.previous] == ["sum"]
    assert plan.partial_message is None or plan.partial_message.content_type == "user_message"


def test_static_content_over_the_target_is_not_reduced() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_system(filler(7_000))
        for _ in range(3):
            window.add_user("go")
            with pytest.raises(IrreducibleContextError):
                window.on_turn_start()

    assert sink.of(ContentCompressed) == []
    assert sink.of(BlocksEvicted) == []


def test_under_soft_pressure_without_candidates_nothing_changes() -> None:
    sink = RecordingSink()
    with manager(sink, limit=10_000) as window:
        window.add_user(filler(7_000), pinned=True)
        window.on_turn_start()

        assert window.messages()[0]["content"] == filler(7_000)
    assert sink.of(ContentCompressed) == []
    assert sink.of(BlocksEvicted) == []


def test_under_hard_pressure_the_turn_itself_is_reduced() -> None:
    """Above the ceiling the results of the turn under way are shortened, so that the call can be made."""
    sink = RecordingSink()
    with manager(sink, limit=10_000) as window:
        window.add_user("read both")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("a", "f", "{}"), ("b", "f", "{}")]))
        window.on_tool_result("f", filler(4_400, tag="a"), "a")
        window.on_tool_result("f", filler(4_400, tag="b"), "b")
        window.on_turn_start()

        assert window.status().used_tokens <= 7_500
        assert is_valid(window)


def test_progress_of_less_than_a_tenth_is_not_accepted() -> None:
    """Unless the target is met."""
    proposed_summary = ProposedSummary("short", 1_000, 100, window_before=10_000, target_tokens=5_000)

    assert rejection_reason(proposed_summary) == "too little progress"
    assert rejection_reason(replace(proposed_summary, target_tokens=9_100)) == ""
    assert rejection_reason(replace(proposed_summary, tokens_before=1_100)) == ""


def test_of_25_messages_over_20_all_but_the_first_two_and_the_newest_seven_are_forgotten() -> None:
    items = [item(f"m{n}", "assistant_response", 100, n, pinned=n < 2) for n in range(25)]
    gone = removed(items, bounds=CompactionBounds(chosen_groups=keep_newest(7)))

    assert gone == [f"m{n}" for n in range(2, 18)]
    assert len(gone) == 16


@pytest.mark.parametrize("strategy", [SlidingWindow(0), SlidingWindow(-1), Summarize(-1)])
def test_a_bound_that_retains_nothing_is_refused(strategy: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"strategy\.(messages|keep)"):
        ai_sdk_go(strategy=strategy)


@pytest.mark.parametrize(
    ("sizes", "needed", "kept"),
    [((10, 10), 11, 0), ((10, 10, 10, 10), 15, 2), ((5, 5, 5, 5), 18, 0), ((10, 10), 10, 1), ((10, 10), 0, 2)],
)
def test_the_shortest_prefix_that_frees_enough_is_removed(sizes: tuple[int, ...], needed: int, kept: int) -> None:
    items = [item(f"a{n}", "assistant_response", tokens) for n, tokens in enumerate(sizes)]
    plan = plan_oldest(snapshot(items), needed)

    assert len(items) - len(plan.removals) == kept
    assert [removal.blocks[0].id for removal in plan.removals] == [f"a{n}" for n in range(len(sizes) - kept)]


def test_after_a_compaction_the_agent_continues_without_another() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384) as window:
        for n in range(4):
            talk(window, f"question {n}", filler(2_500, tag=f"a{n}x"))
        window.add_user("next " + filler(500))
        first = window.on_turn_start()
        second = window.on_turn_start()
        window.on_turn_end(chat_reply("ok"))
        window.add_user("go on")
        third = window.on_turn_start()

        assert first.freed_tokens > 0
        assert second.freed_tokens == third.freed_tokens == 0


def test_the_message_whose_call_overflowed_is_sent_again() -> None:
    sink = RecordingSink()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with manager(sink, limit=32_768) as window:
        for n in range(6):
            talk(window, f"question {n}", filler(2_500, tag=f"a{n}x"))
        window.add_user([{"type": "text", "text": "what is on this picture?"}, image])
        window.on_turn_start()
        decision = window.on_overflow("maximum context length exceeded")
        last = window.messages()[-1]

        assert decision.retry
        assert last["role"] == "user"
        assert last["content"] == [{"type": "text", "text": "what is on this picture?"}, image]


def test_the_newest_user_text_stays_and_the_one_that_only_fits_in_part_is_shortened() -> None:
    items = [item("goal", "user_message", 10)]
    for n in range(1, 7):
        items.append(item(f"u{n}", "user_message", 1_500, n, exchange=n))
        items.append(item(f"a{n}", "assistant_response", 3_000, n, exchange=n))
    items += [
        item("a7", "assistant_response", 4_000, 7, exchange=7),
        item("now", "user_message", 10, 8, exchange=8),
    ]
    plan = plan_compaction(
        snapshot(items, limit=32_768, goal_block="goal"),
        1,
        CompactionBounds(tail_tokens=0, user_tokens=4_000, user_ratio=0.5),
    )

    assert plan is not None
    gone = [block.id for block in plan.removed if block.content_type == "user_message"]
    assert gone == ["u1", "u2", "u3", "u4"]
    assert plan.partial_message is not None
    assert (plan.partial_message.id, plan.partial_tokens) == ("u4", 1_000)


def test_a_smaller_window_is_fitted_before_the_next_call() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        for n in range(8):
            tool_turn(window, n, result=filler(2_500, tag=f"r{n}x"))
        window.add_user("on the small model now")
        window.on_turn_start()
        window.on_overflow("This model's maximum context length is 8192 tokens")
        window.on_turn_end(chat_reply("ok"))
        window.add_user("and again " + filler(3_000))
        window.on_turn_start()

        assert window.status().limit_tokens == 8_192
        assert window.status().used_tokens <= 6_144
        assert is_valid(window)


def test_an_overflow_that_no_step_can_resolve_is_reported() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384) as window:
        window.add_user("hello", pinned=True)
        window.on_turn_start()
        decision = window.on_overflow("maximum context length exceeded")

        assert not decision.retry
    assert [event.outcome for event in sink.of(OverflowDetected)] == ["failed"]


def test_a_replacement_that_cannot_be_inserted_removes_nothing() -> None:
    window = Window({})
    for n in range(4):
        window.add(item(f"b{n}", "assistant_response", 10).block)
    before = (list(window), window.tokens, window.version)
    with pytest.raises(WindowError):
        window.replace(["b0", "b1"], [item("new", "summary", 1).block, item("b3", "summary", 1).block])

    assert (list(window), window.tokens, window.version) == before


def test_a_call_that_waits_stays_and_everything_before_it_may_go() -> None:
    items = [item("goal", "user_message", 10), *tool_items(1, 9_000), *tool_items(2, 9_000, turn=2)]
    items.append(item("call3", "tool_call", 20, 3, group="g3"))
    gone = removed(items, goal_block="goal", open_calls=frozenset({"g3"}))

    assert "call3" not in gone
    assert {"call1", "result1", "call2", "result2"} <= set(gone)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.0, 2.0])
def test_a_share_out_of_range_is_refused_instead_of_bent(share: float) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CompactionBounds(summary_ratio=share)

    assert caught.value.path.startswith("compression.summary")


def attempts(sink: RecordingSink) -> list[str]:
    return [event.outcome for event in sink.of(ContentCompressed) if event.strategy == "compaction"]


def test_after_three_attempts_without_progress_only_a_real_message_allows_another() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, cascade=["compaction"]) as window:
        window.add_user(filler(9_900), pinned=True)
        for n in range(9):
            window.on_turn_start()
            window.on_turn_end(chat_reply(filler(130, tag=f"a{n}x")))
        window.flush()
        stopped = attempts(sink)
        assert window.status().breaker_open
        window.add_user("a real message")
        for n in range(9, 12):
            window.on_turn_start()
            window.on_turn_end(chat_reply(filler(130, tag=f"a{n}x")))

    assert stopped == ["rejected"] * 3
    assert len(attempts(sink)) > 3
    assert {event.reason for event in sink.of(BreakerOpened)} == {"no progress"}


def test_a_window_that_refills_at_once_three_times_is_not_compacted_again() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, cascade=["compaction"]) as window:
        window.add_user("go")
        for n in range(14):
            window.on_turn_start()
            assert window.status().used_tokens <= 16_384
            window.on_turn_end(chat_reply(filler(5_200, tag=f"a{n}x")))
    turns = [event.context.turn for event in sink.events if event.type == "breaker.opened"]
    compacted = [
        event.context.turn
        for event in sink.events
        if isinstance(event.data, ContentCompressed) and event.data.strategy == "compaction"
    ]

    assert [event.reason for event in sink.of(BreakerOpened)] == ["refilled"]
    assert len(compacted) >= 3
    assert max(compacted) <= turns[0] < 14


def test_the_compression_ratio_on_metrics_is_that_of_the_replaced_content() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, cascade=["compaction"]) as window:
        window.add_user("go")
        for n in range(6):
            window.on_turn_start()
            window.on_turn_end(chat_reply(filler(3_000, tag=f"a{n}x")))
        window.flush()
        events = list(sink.events)
    sizes = {event.data.block.id: event.data.block.tokens for event in events if event.type == "block.added"}
    compressed = sink.of(ContentCompressed)[-1]
    state = MetricState()
    for event in events:
        state.apply(event)
    (ratio,) = [
        point.value
        for family in state.collect(now=events[-1].at or 0.0)
        if family.metric.name == "context_window_compression_ratio"
        for point in family.points
    ]

    assert compressed.tokens_before == sum(sizes[name] for name in compressed.removed)
    assert compressed.tokens_after == sum(sizes[name] for name in compressed.results)
    assert ratio == compressed.tokens_before / compressed.tokens_after > 2
