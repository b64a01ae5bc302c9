"""Pruning of old tool results."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from builders import filler, item, manager, snapshot, tool_items, tool_turn

from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.truncation import clip_arguments, middle_out
from windowpane.manager.presets.baseagent import BASEAGENT, CLEARED, PrunePlan, Pruning, plan_prune
from windowpane.manager.snapshot import Item
from windowpane.testing import CharacterCounter, RecordingSink

COUNTER = CharacterCounter()
BASE = Pruning(40_000, 20_000)


def user(n: int, exchange: int) -> Item:
    return item(f"user{n}", "user_message", 10, exchange=exchange)


def prune(items: list[Item], pruning: Pruning = BASE, **more: Any) -> PrunePlan:
    return plan_prune(snapshot(items, **more), pruning, counter=COUNTER)


def cleared(found: PrunePlan) -> list[str]:
    return [] if found.plan is None else [removal.blocks[0].id for removal in found.plan.removals]


def run(*results: int, tools: dict[int, str] | None = None) -> list[Item]:
    """One instruction and a chain of results of these sizes, oldest first."""
    items = [user(0, 1)]
    for n, tokens in enumerate(results):
        items += tool_items(n, tokens, tool=(tools or {}).get(n, "search"))
    return items


def test_old_output_is_cleared_and_a_protected_tool_s_is_not() -> None:
    items = [user(0, 1), *tool_items(0, 50_000), *tool_items(1, 50_000, tool="skill")]
    items += [*tool_items(2, 41_000), user(1, 2), *tool_items(3, 60_000), user(2, 3)]
    found = prune(items, replace(BASE, protected_tools=("skill",)))

    assert cleared(found) == ["result0", "result2"]


def test_exactly_at_the_bounds_nothing_happens() -> None:
    """40,000 tokens are protected inclusively, and 20,000 are not more than 20,000."""
    assert cleared(prune(run(20_000, 40_000))) == []
    assert cleared(prune(run(20_001, 40_000))) == ["result0"]
    assert prune(run(40_000)).prunable_tokens == 0


def test_a_cleared_result_ends_the_scan() -> None:
    items = run(50_000, 30_000, 40_000)
    first = prune(items)
    done = [
        one._replace(block=replace(one.block, content_type="placeholder", text=CLEARED, tokens=9))
        if one.block.id in cleared(first)
        else one
        for one in items
    ]

    assert cleared(first) == ["result0", "result1"]
    assert cleared(prune(done)) == []
    assert prune([*items[:3], *done[3:]]).scanned_tokens == 40_000


def test_a_run_with_a_single_instruction_is_pruned_too() -> None:
    assert cleared(prune(run(30_000, 30_000, 40_000))) == ["result0", "result1"]


def test_the_input_is_not_touched() -> None:
    snap = snapshot(run(30_000, 30_000, 40_000))
    before = copy.deepcopy(snap.items)
    plan_prune(snap, BASE, counter=COUNTER)

    assert snap.items == before


def test_truncation_keeps_both_ends_once() -> None:
    """900 characters become 200, a marker and 200; what fits stays, and what was cut is not cut again."""
    text = "a" * 300 + "b" * 300 + "c" * 300
    short = middle_out(text, 125, COUNTER)

    assert short.startswith("a" * 200)
    assert short.endswith("c" * 200)
    assert "tokens left out" in short
    assert middle_out(short, 125, COUNTER) == short
    assert middle_out(text[:400], 125, COUNTER) == text[:400]


def test_arguments_that_cannot_be_truncated_are_skipped() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_user("read it")
        window.on_turn_start()
        window.on_turn_end(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "a", "function": {"name": "patch", "arguments": "*** Patch " + filler(1_500)}},
                    {"id": "b", "function": {"name": "read", "arguments": "{}"}},
                ],
            }
        )
        window.on_tool_result("patch", "done", "a")
        window.on_tool_result("read", filler(2_800, tag="r"), "b")
        window.on_tool_result("read", "x", None)
        window.add_user(filler(2_000, tag="q"))
        window.on_turn_start()

        assert window.status().used_tokens <= 6_144
        assert "*** Patch " + filler(1_500)[:50] in str(window.messages())


def test_the_newest_so_many_results_stay_whatever_their_size() -> None:
    keep_three = Pruning(0, 0, keep_results=3, skipped_user_turns=0)

    assert cleared(prune(run(9_000, 9_000, 9_000, 9_000, 9_000), keep_three)) == ["result0", "result1"]
    assert cleared(prune(run(9_000, 9_000, 9_000, 9_000), replace(keep_three, minimum_tokens=9_000))) == []
    assert cleared(
        prune(run(9_000, 9_000, 1, 1, 1, tools={0: "web"}), replace(keep_three, protected_tools=("web",)))
    ) == ["result1"]


def test_inputs_of_calls_can_be_cleared_and_stay_objects() -> None:
    clipped = clip_arguments('{"path": "a.py", "content": "' + "x" * 9_000 + '"}', 100, COUNTER)

    assert '"path": "a.py"' in clipped
    assert COUNTER.count(clipped) <= 100


@pytest.mark.parametrize("field", ["protect_tokens", "minimum_tokens", "keep_results", "skipped_user_turns"])
def test_a_negative_bound_is_refused_by_name(field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        replace(BASE, **{field: -1})


def test_a_marker_that_is_not_smaller_is_not_used() -> None:
    found = prune(run(*[5] * 9_000, 30_000, 40_000))

    assert cleared(found) == ["result9000"]


def test_every_result_is_capped_when_it_comes_in() -> None:
    """2,500 tokens, head and tail, under BaseAgent's numbers."""
    sink = RecordingSink()
    with manager(sink, limit=200_000, preset=BASEAGENT) as window:
        window.add_user("go")
        tool_turn(window, 0, result=filler(9_000))
        content = window.messages()[-1]["content"]

        assert COUNTER.count(content) <= 2_500
        assert content.startswith(filler(9_000)[:1_000])
