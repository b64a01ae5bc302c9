"""The manager around an agent's loop."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from message_rules import anthropic_faults, openai_faults

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import (
    BlocksEvicted,
    BudgetWarned,
    CheckpointSaved,
    ContentCompressed,
    Event,
    FidelityEvaluated,
    HistoryRepaired,
    LimitChanged,
    OverflowDetected,
    PressureMeasured,
    RulesFollowed,
    TurnEnded,
    WindowRolled,
)
from windowpane.exceptions import ConfigurationError, IrreducibleContextError
from windowpane.manager.plans.policies import POLICIES
from windowpane.manager.status import Decision
from windowpane.testing import MemoryArchive, MemoryCheckpoints, RecordingSink, chat_reply, in_memory_dependencies

GOAL = "Migrate user-service from axios to fetch"


def manager(sink: RecordingSink, *, limit: int | None = 32_768, **options: Any) -> ContextWindowManager:
    dependencies = options.pop("dependencies", None) or in_memory_dependencies(sink)
    window = ContextWindowManager(
        agent="tester", model="no-such-model", limit_tokens=limit, dependencies=dependencies, **options
    )
    window.add_system("You are careful.")
    return window


def tool_turn(window: ContextWindowManager, n: int, *, result: str, text: str | None = None) -> Decision:
    decision = window.on_turn_start()
    window.on_turn_end(chat_reply(text, calls=[(f"c{n}", "read_file", json.dumps({"path": f"src/f{n}.py"}))]))
    window.on_tool_result("read_file", result, f"c{n}")
    return decision


def filler(tokens: int, *, tag: str = "w") -> str:
    """About *tokens* tokens of distinct words, by the test counter's four characters a token."""
    text = " ".join(f"{tag}{n}" for n in range(tokens))
    return text[: tokens * 4]


def valid(window: ContextWindowManager) -> bool:
    return openai_faults(window.messages()) == [] == anthropic_faults(window.messages("anthropic").messages)


def test_a_quiet_window_is_not_changed() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        decision = window.on_turn_start()

        assert decision.action == "none"
        assert window.messages() == [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "hello"},
        ]


def test_yellow_prepares_and_changes_nothing() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        window.add_user(filler(51_000))

        assert window.on_turn_start().action == "prepare"
    assert sink.of(BlocksEvicted) == []


def test_orange_evicts_tool_results_down_to_the_target() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        window.add_user(GOAL)
        decisions = [tool_turn(window, n, result=filler(6_000, tag=f"r{n}x")) for n in range(13)]
        decisions.append(window.on_turn_start())
        evicting = [decision for decision in decisions if decision.action == "evict"]

        assert len(evicting) == 1
        assert valid(window)
    evicted = sink.of(BlocksEvicted)[0]
    after = next(measured for measured in sink.of(PressureMeasured) if measured.phase == "after")
    assert after.used_tokens <= 60_000
    assert {block.form for block in evicted.blocks} == {"mask"}
    assert all(block.replacement_tokens <= 50 for block in evicted.blocks)
    assert evicted.tokens_freed == evicted.tokens_removed - sum(b.replacement_tokens for b in evicted.blocks)
    assert evicted.shortfall_tokens == 0


def test_candidates_can_be_listed_without_evicting() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        window.add_user(GOAL)
        for n in range(10):
            tool_turn(window, n, result=filler(4_000, tag=f"r{n}x"))
        before = window.messages()
        found = window.eviction_candidates(5)

        assert found
        assert [one.score for one in found] == sorted(one.score for one in found)
        assert window.messages() == before
    assert sink.of(BlocksEvicted) == []


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_candidates_are_the_blocks_of_the_next_eviction(policy: str) -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768, policy=policy) as window:
        window.add_user("go")
        found: list[str] = []
        for n in range(60):
            found = [candidate.block_id for candidate in window.eviction_candidates(3)]
            window.on_turn_start()
            window.flush()
            if sink.of(BlocksEvicted):
                break
            window.on_turn_end(chat_reply("thinking aloud " * 20, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", f"row_{n} in src/f{n}.py " * 110, f"c{n}")

    assert [block.block_id for block in sink.of(BlocksEvicted)[0].blocks][:3] == found


def test_an_evicted_result_can_be_retrieved_by_the_handle_its_placeholder_names() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        window.add_user(GOAL)
        for n in range(14):
            tool_turn(window, n, result=filler(6_000, tag=f"r{n}x"))
        block = sink.of(BlocksEvicted)[0].blocks[0]

        assert block.handle is not None
        original = window.retrieve(block.handle)
        assert original is not None
        assert len(original) > 20_000
        placeholder = next(m for m in window.messages() if block.handle in str(m.get("content")))
        assert placeholder["role"] == "tool"


def test_without_an_archive_no_placeholder_promises_an_original() -> None:
    from dataclasses import replace

    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), archive=None)
    with manager(sink, limit=100_000, dependencies=dependencies) as window:
        window.add_user(GOAL)
        for n in range(14):
            tool_turn(window, n, result=filler(6_000, tag=f"r{n}x"))

        assert "wp:" not in json.dumps(window.messages())
    assert all(block.handle is None for event in sink.of(BlocksEvicted) for block in event.blocks)


def test_conversation_without_tool_results_is_compacted() -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768, task_goal=GOAL) as window:
        for n in range(60):
            window.add_user(f"Question {n}: " + filler(150, tag=f"q{n}x"))
            window.on_turn_start()
            said = f"We decided to keep module_{n} because of reason_{n}. " + filler(400, tag=f"a{n}x")
            window.on_turn_end(chat_reply(said))
            assert valid(window)
        compressed = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

        assert compressed
        assert all(event.ratio is not None and event.ratio > 2 for event in compressed)
        assert window.messages()[1]["content"] == f"## Goal\n{GOAL}"
        summary = next(block.text or "" for block in window.blocks() if block.content_type == "summary")
        assert GOAL not in summary
        assert "We decided to keep module_" in summary
    assert all(event.of is not None for event in sink.of(FidelityEvaluated))
    assert len(sink.of(FidelityEvaluated)) == len(compressed)


def test_the_rules_of_the_user_are_followed_through_the_compactions_of_the_manager() -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768, task_goal=GOAL) as window:
        window.add_user("Never push to the branch main.")
        for n in range(60):
            window.add_user(f"Question {n}: " + filler(150, tag=f"q{n}x"))
            window.on_turn_start()
            window.on_turn_end(chat_reply(filler(400, tag=f"a{n}x")))
        window.settle()
        compressed = [event.event_id for event in sink.events if isinstance(event.data, ContentCompressed)]

    followed = sink.of(RulesFollowed)
    assert followed
    assert {event.of for event in followed} <= set(compressed)
    assert sum(followed[0].user.values()) == 1


def test_a_full_window_is_replaced_by_one_from_a_checkpoint() -> None:
    sink = RecordingSink()
    dependencies = in_memory_dependencies(sink)
    with manager(sink, limit=8_192, dependencies=dependencies, task_goal=GOAL) as window:
        window.add_user("Start with src/client.ts. You must never touch config.ts.")
        for n in range(30):
            window.on_turn_start()
            window.on_turn_end(chat_reply(filler(900, tag=f"a{n}x"), calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", filler(1_500, tag=f"r{n}x"), f"c{n}")
            assert valid(window)

        assert sink.of(WindowRolled)
        assert "You must never touch config.ts" in json.dumps(window.messages())
        assert window.status().window_id > 1
    assert sink.of(CheckpointSaved)
    assert isinstance(dependencies.checkpoints, MemoryCheckpoints)
    assert all(document["goal"] == GOAL for document, _ in dependencies.checkpoints.saved)


def test_what_must_stay_and_does_not_fit_is_an_error_with_numbers() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        for n in range(3):
            window.add_user(f"question {n}")
            window.on_turn_end(chat_reply(filler(900, tag=f"a{n}x")))
        window.add_user(filler(9_000), pinned=True)
        with pytest.raises(IrreducibleContextError) as caught:
            window.on_turn_start()

        assert caught.value.required_tokens > caught.value.usable_tokens
        assert caught.value.limit_tokens == 8_192
        assert window.messages()[-1] == {"role": "user", "content": filler(9_000)}
    assert sink.of(OverflowDetected)[-1].outcome == "failed"


def test_an_overflow_reports_the_size_that_did_not_fit() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384) as window:
        for n in range(5):
            window.add_user(f"question {n}")
            window.on_turn_end(chat_reply(filler(4_000, tag=f"a{n}x")))
        window.add_user("and now?")
        window.on_turn_start()
        after, levels = window.status().used_tokens, window._engine.levels
    overflow = sink.of(OverflowDetected)[-1]
    before = next(event.used_tokens for event in reversed(sink.of(PressureMeasured)) if event.phase == "before")

    assert levels is not None
    assert overflow.used_tokens == before > levels.ceiling > after


def test_a_large_system_prompt_alone_starts_no_reduction() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_system(filler(4_600))
        for n in range(6):
            window.add_user(f"question {n}")
            window.on_turn_start()
            window.on_turn_end(chat_reply("short answer"))

    assert sink.of(ContentCompressed) == []
    assert sink.of(BlocksEvicted) == []
    assert sink.of(OverflowDetected) == []


@pytest.mark.parametrize("static_tokens", [3_000, 4_600, 5_600, 5_900])
def test_nothing_that_may_leave_makes_a_call_impossible(static_tokens: int) -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_system(filler(static_tokens))
        window.add_user("Name the capital cities.")
        for n in range(120):
            window.on_turn_start()
            assert window.status().used_tokens <= 6_144
            window.on_turn_end(chat_reply(f"answer number {n} is short"))
            window.add_user(f"question {n}: and the next?")

    assert [event for event in sink.of(OverflowDetected) if event.outcome == "failed"] == []


def test_a_single_turn_too_large_is_reduced_from_within() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_user("read everything")
        window.on_turn_start()
        calls = [(f"c{n}", "read_file", "{}") for n in range(4)]
        window.on_turn_end(chat_reply(None, calls=calls))
        for call_id, name, _ in calls:
            window.on_tool_result(name, filler(2_600, tag=call_id), call_id)
        window.on_turn_start()

        assert window.status().used_tokens <= 5_735
        assert "read everything" in json.dumps(window.messages())
        assert valid(window)
    [overflow] = sink.of(OverflowDetected)
    assert overflow.outcome == "reduced"
    assert overflow.used_tokens > 10_400  # the size that did not fit, not the reduced one


def test_a_call_that_is_shortened_stays_with_its_result() -> None:
    """A call cut within its turn keeps its group, so that it and its result still leave together."""
    sink = RecordingSink()
    with manager(sink, limit=4_000) as window:
        window.add_user("write the file")
        window.on_turn_start()
        arguments = json.dumps({"path": "a", "text": filler(3_500)})
        window.on_turn_end(chat_reply(None, calls=[("c0", "write_file", arguments), ("c1", "read_file", "{}")]))
        window.on_tool_result("write_file", filler(100), "c0")
        window.on_turn_start()
        window.on_tool_result("read_file", filler(100), "c1")
        (call, *rest) = [block for block in window.blocks() if block.tool_call_id is not None]

        assert call.replaces is not None
        assert call.tokens < 3_000
        assert {block.group for block in rest} == {call.group}
        assert [block.tool_call_id for block in rest] == ["c1", "c0", "c1"]


def test_usage_of_the_provider_becomes_the_truth() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_turn_start()
        window.on_turn_end(chat_reply("hi", input_tokens=5_000, output_tokens=1))

        assert window.status().used_tokens == 5_001
    assert sink.of(TurnEnded)[0].count_source == "usage"


def test_a_result_without_its_call_is_sent_as_text_and_reported() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_tool_result("search", "42 hits", "unknown-call")

        assert valid(window)
        assert "42 hits" in json.dumps(window.messages())
    assert sink.of(HistoryRepaired)[0].repair == "unmatched_result"


def test_of_two_results_to_one_call_the_first_wins() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        tool_turn(window, 0, result="first")
        window.on_tool_result("read_file", "second", "c0")

        assert "second" not in json.dumps(window.messages())
        assert valid(window)
    assert sink.of(HistoryRepaired)[0].repair == "duplicate_result"


def test_a_call_without_result_is_answered_as_aborted_until_it_comes() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("a", "x", "{}"), ("b", "y", "{}")]))
        window.on_tool_result("x", "done", "a")

        assert valid(window)
        assert "aborted" in json.dumps(window.messages())
        window.on_tool_result("y", "also done", "b")
        assert "aborted" not in json.dumps(window.messages())
        assert valid(window)


def test_a_result_without_an_id_is_matched_to_the_open_call_of_its_tool() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("a", "x", "{}"), ("b", "y", "{}")]))
        window.on_tool_result("y", "from y")
        window.on_tool_result("x", "from x")

        tools = [message for message in window.messages() if message["role"] == "tool"]
        assert [(m["tool_call_id"], m["content"]) for m in tools] == [("a", "from x"), ("b", "from y")]


def test_ids_used_again_in_a_later_turn_are_other_calls() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        for n in range(3):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[("call_0", "x", "{}")]))
            window.on_tool_result("x", f"result {n}", "call_0")

        contents = [message["content"] for message in window.messages() if message["role"] == "tool"]
        assert contents == ["result 0", "result 1", "result 2"]
        assert valid(window)


def test_a_huge_result_is_capped_when_added_and_archived_whole() -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768) as window:
        window.add_user("hello")
        output = filler(40_000)
        tool_turn(window, 0, result=output)
        content = next(message["content"] for message in window.messages() if message["role"] == "tool")

        assert len(content) <= 27_034 // 2 * 4
        assert content.startswith(output[:100])
        assert content.endswith(output[-100:])
        handle = content.split("original: ")[1].split(" ")[0]
        assert window.retrieve(handle) == output


def test_an_overflow_from_the_provider_allows_exactly_one_smaller_retry() -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768) as window:
        window.add_user(GOAL)
        for n in range(8):
            tool_turn(window, n, result=filler(2_000, tag=f"r{n}x"))
        window.on_turn_start()
        before = len(json.dumps(window.messages()))
        first = window.on_overflow("This model's maximum context length is 16384 tokens. 17000 were requested")
        after = len(json.dumps(window.messages()))
        second = window.on_overflow("maximum context length is 16384 tokens")

        assert first.retry
        assert not second.retry
        assert after < before
        assert valid(window)
    assert [event.outcome for event in sink.of(OverflowDetected)] == ["retried", "failed"]
    assert sink.of(LimitChanged)[0].limit_tokens == 16_384


def test_a_network_error_is_not_an_overflow() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        decision = window.on_overflow(ConnectionError("connection reset by peer"))

        assert not decision.retry
        assert "transient" in decision.reason
    assert sink.of(OverflowDetected) == []


def test_an_unknown_window_is_observed_and_never_reduced() -> None:
    sink = RecordingSink()
    with manager(sink, limit=None) as window:
        window.add_user(filler(300_000))
        decision = window.on_turn_start()

        assert decision.action == "none"
        assert decision.status.zone is None
        assert "size unknown" in str(decision.status)


def test_listeners_receive_events_and_cannot_harm_the_agent() -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        heard.append(event)
        raise RuntimeError("a bug of the user's")

    sink = RecordingSink()
    with manager(sink, limit=32_768) as window:
        window.on("zone.changed", broken)
        window.add_user(filler(20_000))
        window.on_turn_start()

        assert [event.type for event in heard] == ["zone.changed"]


def test_a_failing_archive_does_not_stop_the_eviction() -> None:
    class FullDisk(MemoryArchive):
        def put(self, session_id: str, handle: str, text: str) -> None:
            raise OSError(28, "No space left on device")

    from dataclasses import replace

    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), archive=FullDisk())
    with manager(sink, limit=100_000, dependencies=dependencies) as window:
        window.add_user(GOAL)
        for n in range(14):
            tool_turn(window, n, result=filler(6_000, tag=f"r{n}x"))

    assert sink.of(BlocksEvicted)
    assert all(block.handle is None for event in sink.of(BlocksEvicted) for block in event.blocks)


def test_a_reply_of_unknown_shape_is_contained(caplog: pytest.LogCaptureFixture) -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("hello")
        window.on_turn_start()
        window.on_turn_end(object())

        assert "on_turn_end" in caplog.text
        assert valid(window)


def test_tool_results_may_come_from_several_threads() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        window.add_user("hello")
        window.on_turn_start()
        calls = [(f"c{n}", "t", "{}") for n in range(20)]
        window.on_turn_end(chat_reply(None, calls=calls))
        threads = [
            threading.Thread(target=window.on_tool_result, args=("t", f"result {call_id}", call_id))
            for call_id, _, _ in calls
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        results = {m["tool_call_id"]: m["content"] for m in window.messages() if m["role"] == "tool"}
        assert results == {call_id: f"result {call_id}" for call_id, _, _ in calls}


def test_a_component_warns_once_when_it_passes_its_budget_share() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000) as window:
        window.add_user("hello")
        for n in range(11):
            tool_turn(window, n, result=filler(900, tag=f"r{n}x"))

    assert [event.component for event in sink.of(BudgetWarned)] == ["tool_results"]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"policy": "newest"}, "eviction.policy"),
        ({"weights": {"recency": -1.0}}, "eviction.weights.recency"),
        ({"weights": {"age": 1.0}}, "eviction.weights.age"),
        ({"limit_tokens": 0}, "limit_tokens"),
        ({"budget": {"tool_results": 1.5}}, "budget.tool_results"),
        ({"enforce": "always"}, "enforce"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_path(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ContextWindowManager(
            agent="a",
            model="m",
            dependencies=in_memory_dependencies(RecordingSink()),
            **{"limit_tokens": 8_192, **options},
        )

    assert caught.value.path == path
