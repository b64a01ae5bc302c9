"""Presets: each source's numbers, order, marker and words on this engine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import filler, is_valid, manager, sent, talk, tool_turn
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.core.events import BlocksEvicted, ContentCompressed, SessionStarted
from windowpane.core.limits import PROFILES
from windowpane.exceptions import ConfigurationError, IrreducibleContextError
from windowpane.manager.listeners import SourceRecord
from windowpane.manager.plans.policies import HYBRID_WEIGHTS
from windowpane.manager.presets.ai_sdk_go import (
    STATUS_EVENT,
    Custom,
    DropOldest,
    SlidingWindow,
    Summarize,
    ai_sdk_go,
)
from windowpane.manager.presets.baseagent import BASEAGENT, CLEARED, baseagent, truncated
from windowpane.manager.presets.cascade import BUDGET, CASCADE, CASCADE_MAP
from windowpane.manager.presets.picoclaw import picoclaw
from windowpane.manager.presets.preset import CharacterEstimate
from windowpane.manager.presets.registry import PRESETS, preset_named
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

UNCAPPED = replace(BASEAGENT, control=replace(BASEAGENT.control, result_tokens=100_000))
"""BaseAgent's example has results larger than its own cap."""


def texts(records: list[Any]) -> list[str]:
    return [record.text for record in records]


def test_baseagent_prunes_its_worked_example_from_150k_to_60k() -> None:
    sink, records = RecordingSink(), []
    with manager(sink, limit=200_000, preset=UNCAPPED) as window:
        window.on_record(records.append)
        window.add_system(filler(5_000, tag="s"))
        window.add_user(filler(1_000, tag="u"))
        for n, tokens in enumerate((50_000, 40_000, 24_000)):
            window.on_turn_start()
            arguments = filler(9_999, tag=f"a{n}x")
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "bash", arguments)]))
            window.on_tool_result("bash", filler(tokens, tag=f"t{n}x"), f"c{n}")
        decision = window.on_turn_start()
        results = [message["content"] for message in window.messages() if message["role"] == "tool"]

        assert decision.action == "evict"
        assert 60_000 <= window.status().used_tokens <= 60_000 + 2 * 12
        assert [result.startswith(CLEARED) for result in results] == [True, True, False]
        assert is_valid(window)
        handle = results[0].removeprefix(CLEARED).strip()
        assert window.retrieve(handle) == filler(50_000, tag="t0x")
    assert sink.of(ContentCompressed) == []
    assert texts(records)[-5:-1] == [
        "[compaction] Context: 150000 tokens (89.3% of 168000)",
        "[compaction] Context overflow detected, managing...",
        "[compaction] Prune scan: 114000 total tokens, 90000 prunable",
        "[compaction] Pruning 2 tool outputs, recovering ~90000 tokens",
    ]
    assert texts(records)[-1].startswith("[compaction] Pruning sufficient: 150000 -> 600")


def test_baseagent_cuts_a_result_middle_out_around_its_own_marker() -> None:
    """4,950 characters of both ends and the marker, with the original's handle; a tiny cap never grows it."""
    text = filler(9_000, tag="r")
    with manager(RecordingSink(), limit=200_000, preset="baseagent") as window:
        window.add_user("go")
        tool_turn(window, 0, result=text)
        shown = window.messages()[-1]["content"]
        head, middle, tail = shown.split("\n\n")

        assert (head, tail) == (text[:4_950], text[-4_950:])
        assert middle.startswith("[...truncated...] ")
        assert window.retrieve(middle.removeprefix("[...truncated...] ")) == text
    for cap in range(60):
        assert len(truncated(text, cap, CharacterEstimate(4), "wp:x")) <= cap * 4


def test_the_presets_take_other_numbers_under_their_sources_names() -> None:
    """The source's own advice for long tasks and for complex ones; picoclaw's two thresholds."""
    long, complex_ = (
        baseagent(auto_compact_threshold=0.70, prune_protect=30_000),
        baseagent(auto_compact_threshold=0.90, prune_protect=60_000),
    )
    acts = [
        one.control.levels_of(one.limits(200_000, "given"), 0.85).evict for one in (long, BASEAGENT, complex_)
    ]

    assert acts == [int(share * 168_000) + 1 for share in (0.70, 0.85, 0.90)]
    assert baseagent(output_token_max=8_000).limits(200_000, "given").usable_tokens == 192_000
    assert baseagent(max_output_tokens=500).control.result_tokens == 500
    sink, records = RecordingSink(), []
    with manager(sink, limit=40_000, preset=picoclaw(summarize_message_threshold=4), background=False) as window:
        window.on_record(records.append)
        for n in range(3):
            talk(window, f"question {n}: " + filler(60), f"answer {n}: " + filler(60))
    assert [record.name for record in records] == ["session_summarize"]


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (baseagent, {"auto_compact_threshold": 0}),
        (baseagent, {"auto_compact_threshold": 1.1}),
        (baseagent, {"prune_protect": -1}),
        (baseagent, {"prune_minimum": -1}),
        (baseagent, {"output_token_max": -1}),
        (baseagent, {"max_output_tokens": 0}),
        (baseagent, {"model_context_limit": 32_000}),
        (picoclaw, {"summarize_message_threshold": 0}),
        (picoclaw, {"summarize_token_percent": 101}),
        (ai_sdk_go, {"max_token_ratio": 0}),
        (ai_sdk_go, {"max_response_tokens": -1}),
    ],
)
def test_a_number_out_of_range_is_refused_by_its_name(make: Any, numbers: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as error:
        make(**numbers)

    assert error.value.path == next(iter(numbers))


def test_baseagent_acts_strictly_above_85_percent_of_what_is_usable() -> None:
    """142,800 of 168,000 tokens need no action, one more does."""
    limits = BASEAGENT.limits(200_000, "given")
    levels = BASEAGENT.control.levels_of(limits, 0.85)

    assert limits.usable_tokens == 168_000
    assert (levels.target, levels.evict) == (142_800, 142_801)


def test_baseagent_compacts_what_pruning_cannot_bring_down() -> None:
    sink, records = RecordingSink(), []
    with manager(sink, limit=32_768, preset="baseagent", task_goal="Port the parser") as window:
        window.on_record(records.append)
        window.add_system("You are careful.")
        for n in range(14):
            talk(
                window,
                f"question {n}",
                "We decided on parser_x because of speed_y. " + filler(2_000, tag=f"a{n}x"),
            )

            assert is_valid(window)
        compaction = next(event for event in sink.of(ContentCompressed) if event.outcome == "accepted")

        assert compaction.strategy == "compaction"
        assert "Port the parser" in sent(window)
        assert any(text.startswith("[compaction] Compacted:") for text in texts(records))


def test_the_cascade_has_its_source_s_numbers() -> None:
    limits = CASCADE.limits(128_000, "given")
    levels = CASCADE.control.levels_of(limits, 0.85)

    assert (limits.yellow_tokens, limits.orange_tokens, limits.red_tokens) == (64_000, 96_000, 115_200)
    assert (levels.evict, levels.target, levels.checkpoint, levels.roll) == (96_000, 76_800, 108_800, 121_600)
    assert limits.reserved_tokens == 6_400
    assert limits.margin_tokens == 0
    assert dict(CASCADE.control.policy.weights) == HYBRID_WEIGHTS
    assert sum(HYBRID_WEIGHTS.values()) == pytest.approx(1)
    assert list(CASCADE_MAP) == [0.75, 0.85, 0.92, 0.95]
    for shares in (BUDGET, *(shares for name, shares in PROFILES.items() if name != "default")):
        assert sum(shares.values()) + 0.05 == pytest.approx(1)


def test_the_cascade_evicts_from_75_percent_and_compacts_only_from_92() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000, preset="cascade") as window:
        decisions = [talk(window, f"question {n}", filler(10_000, tag=f"a{n}x")) for n in range(9)]
        assert all(decision.freed_tokens == 0 for decision in decisions)
        window.add_user("next " + filler(3_000))
        decision = window.on_turn_start()

        assert decision.action == "compact"
        assert window.status().used_tokens <= 60_000


def test_an_unknown_profile_names_the_choices() -> None:
    with pytest.raises(ConfigurationError, match="code_review"):
        manager(RecordingSink(), preset="cascade", budget="cooking")
    with pytest.raises(ConfigurationError, match="cascade, baseagent, picoclaw, ai_sdk_go"):
        preset_named("opencode")
    with pytest.raises(ConfigurationError, match="preset"):
        manager(RecordingSink(), preset="opencode")


def fill(window: Any, exchanges: int, tokens: int) -> None:
    for n in range(exchanges):
        talk(window, f"question {n}", filler(tokens, tag=f"a{n}x"))


def test_ai_sdk_go_keeps_the_newest_messages_and_reports_it() -> None:
    sink, records = RecordingSink(), []
    with manager(sink, limit=40_000, preset=ai_sdk_go(strategy=SlidingWindow(6)), task_goal="Help") as window:
        window.on_record(records.append)
        window.add_system("You are careful.")
        fill(window, 20, 1_765)
        window.add_user("next")
        window.on_turn_start()
        left = window.messages()

        assert left[-1]["content"] == "next"
        assert left[0] == {"role": "system", "content": "You are careful."}
        assert [message["content"] for message in left[1:3]] == ["## Goal\nHelp", "question 0"]
        assert len(left) == 3 + 6
    status = records[-1]
    assert status.name == STATUS_EVENT
    assert set(status.fields) == {"Stage", "Details"}
    assert status.fields["Stage"] == "turn_started"
    assert str(status.fields["Details"]).startswith("context window at 8")
    assert "/40,000 tokens), compaction applied" in str(status.fields["Details"])
    assert sink.of(BlocksEvicted)[0].policy == "ai_sdk_go.sliding_window"


def test_ai_sdk_go_drops_the_oldest_and_keeps_the_system_prompt() -> None:
    sink = RecordingSink()
    with manager(sink, limit=40_000, preset=ai_sdk_go(strategy=DropOldest())) as window:
        window.add_system("You are careful.")
        fill(window, 20, 1_765)
        window.add_user("next")
        window.on_turn_start()

        assert window.status().used_tokens <= 27_200
        assert "You are careful." in sent(window)
        assert "a19x1 " in sent(window)
        assert "a1x1 " not in sent(window)


def test_ai_sdk_go_summarises_all_but_the_newest() -> None:
    sink = RecordingSink()
    with manager(sink, limit=40_000, preset=ai_sdk_go(strategy=Summarize(keep=10))) as window:
        fill(window, 20, 1_765)
        window.add_user("next")
        window.on_turn_start()
        left = sent(window)

        assert [n for n in range(20) if f"a{n}x200 " in left] == list(range(15, 20))
        assert is_valid(window)
    assert sum(event.outcome == "accepted" for event in sink.of(ContentCompressed)) == 1


def test_ai_sdk_go_takes_a_strategy_of_the_user_s() -> None:
    def only_the_last(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
        assert budget == 8_500
        return messages[-1:]

    sink = RecordingSink()
    with manager(sink, limit=10_000, preset=ai_sdk_go(strategy=Custom(only_the_last))) as window:
        window.add_user("the task")
        for n in range(5):
            tool_turn(window, n, result=filler(1_800, tag=f"r{n}x"))
        window.on_turn_start()

        assert "the task" in sent(window)
        assert len([message for message in window.messages() if message["role"] == "tool"]) == 1
        assert is_valid(window)


@pytest.mark.parametrize("copied", [False, True])
def test_a_custom_strategy_removes_messages_that_equal_the_one_it_returns(copied: bool) -> None:
    def only_the_last(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
        return [dict(message) if copied else message for message in messages[-3:]]

    with manager(RecordingSink(), limit=10_000, preset=ai_sdk_go(strategy=Custom(only_the_last))) as window:
        records: list[SourceRecord] = []
        window.on_record(records.append)
        window.add_user("the task")
        for _ in range(9):
            window.add_user(filler(1_000, tag="same"))
            window.on_turn_end(chat_reply("ok"))
        window.add_user("next")
        window.on_turn_start()

        assert [message["content"][:8] for message in window.messages()].count(filler(1_000, tag="same")[:8]) < 9
        assert records[-1].text.endswith("compaction applied")


def test_a_strategy_of_the_user_s_that_fails_costs_nothing() -> None:
    def broken(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
        raise ZeroDivisionError

    sink = RecordingSink()
    with manager(sink, limit=10_000, preset=ai_sdk_go(strategy=Custom(broken))) as window:
        fill(window, 6, 1_900)
        window.add_user("next")
        window.on_turn_start()

        assert window.status().used_tokens <= 10_000


def test_ai_sdk_go_answers_a_huge_result_with_a_structured_error() -> None:
    """Over 25,000 tokens the result is an error object with both sizes; the original can be retrieved."""
    sink = RecordingSink()
    with manager(sink, limit=200_000, preset="ai_sdk_go") as window:
        window.add_user("go")
        output = filler(25_001)
        tool_turn(window, 0, result=output)
        error = json.loads(window.messages()[-1]["content"])

        assert error["error"] == "response_too_large"
        assert error["details"]["estimated_tokens"] == 25_001
        assert error["details"]["max_tokens"] == 25_000
        assert window.retrieve(error["details"]["original"]) == output
        tool_turn(window, 1, result=filler(25_000))
        assert window.messages()[-1]["content"] == filler(25_000)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"max_response_tokens": -1}, "max_response_tokens"),
        ({"max_token_ratio": 0}, "max_token_ratio"),
        ({"max_token_ratio": 1.2}, "max_token_ratio"),
        ({"strategy": SlidingWindow(0)}, "strategy.messages"),
        ({"strategy": Summarize(-1)}, "strategy.keep"),
        ({"strategy": DropOldest(keep_system=False)}, "strategy.keep_system"),
    ],
)
def test_what_ai_sdk_go_refuses_is_refused(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ai_sdk_go(**options)

    assert caught.value.path == path


def test_a_cap_of_0_is_none() -> None:
    """As in the source; the window's own bound still holds."""
    sink = RecordingSink()
    with manager(sink, limit=200_000, preset=ai_sdk_go(max_response_tokens=0)) as window:
        window.add_user("go")
        tool_turn(window, 0, result=filler(60_000))

        assert window.messages()[-1]["content"] == filler(60_000)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_selected_by_name_and_shares_the_window_out_as_its_source(name: str) -> None:
    sink = RecordingSink()
    with manager(sink, limit=200_000, preset=name) as window:
        window.add_user("hello")
    reserved = {"cascade": 10_000, "baseagent": 32_000, "picoclaw": 50_000, "ai_sdk_go": 0}

    assert sink.of(SessionStarted)[0].reserved_tokens == reserved[name]
    assert sink.of(SessionStarted)[0].margin_tokens == 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "reply", "tool", "tools", "overflow"]), st.integers(1, 3_000)), max_size=30
)


@settings(deadline=None, max_examples=40)
@given(STEPS, st.sampled_from(sorted(PRESETS)), st.sampled_from([4_096, 8_192, 32_768]), st.integers(0, 3))
def test_whatever_comes_in_every_preset_keeps_the_invariants(
    steps: list[Any], name: str, limit: int, pinned_at: int
) -> None:
    sink = RecordingSink()
    preset = preset_named(name)
    preset = replace(preset, control=replace(preset.control, background=False))
    window = manager(sink, limit=limit, preset=preset, dependencies=in_memory_dependencies(sink))
    window.add_user("the task is to count to ten")
    pinned = []
    for n, (kind, tokens) in enumerate(steps):
        if kind == "user":
            window.add_user(
                f"pinned {n}" if n == pinned_at else filler(tokens // 3, tag=f"u{n}x"), pinned=n == pinned_at
            )
            pinned += [f"pinned {n}"] if n == pinned_at else []
            continue
        if kind == "overflow":
            window.on_overflow("maximum context length exceeded")
        try:
            window.on_turn_start()
        except IrreducibleContextError:
            break
        assert window.status().used_tokens <= preset.limits(limit, "given").overflow_tokens
        calls = [(f"c{n}-{k}", "f", "{}") for k in range({"tool": 1, "tools": 3}.get(kind, 0))]
        window.on_turn_end(chat_reply(filler(tokens // 4, tag=f"a{n}x"), calls=calls))
        for call_id, tool, _ in calls:
            window.on_tool_result(tool, filler(tokens, tag=f"r{n}x"), call_id)

        assert is_valid(window)
        shown = sent(window)
        assert "the task is to count to ten" in shown
        assert all(text in shown for text in pinned)
    inner = window._engine.tracker.window
    assert inner.tokens == sum(block.tokens for block in inner)
    assert all(
        event.tokens_after < event.tokens_before
        for event in sink.of(ContentCompressed)
        if event.outcome == "accepted"
    )
