"""Eviction plans: pure functions of a window snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.limits import DEFAULT_LIFETIMES, WindowLimits
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.eviction import plan_eviction
from windowpane.manager.plans.findings import finding_of, grouped_failures
from windowpane.manager.plans.placeholders import placeholder_text
from windowpane.manager.plans.policies import POLICIES, SCORERS, Policy, policy_named
from windowpane.manager.plans.protection import GRADES, Grade, protected
from windowpane.manager.snapshot import Item, Snapshot
from windowpane.testing import CharacterCounter

LIMITS = WindowLimits.of(100_000, "given")
COUNTER = CharacterCounter()


def item(
    name: str,
    content_type: ContentType,
    tokens: int,
    turn: int,
    *,
    group: str = "",
    digest: str = "",
    **more: Any,
) -> Item:
    block = Block(
        name, content_type, tokens, turn, group or name, more.pop("exchange", 1), digest or name, tokens * 4,
        "exact", f"text of {name}", tool_name="search" if content_type == "tool_result" else None,
        pinned=more.pop("pinned", False),
    )  # fmt: skip
    return Item(block, more.get("referenced"), more.get("references", 0), more.get("stale", False))


def tool_group(n: int, tokens: int, turn: int, **more: Any) -> list[Item]:
    return [
        item(f"call{n}", "tool_call", 20, turn, group=f"g{n}", **dict(more)),
        item(f"result{n}", "tool_result", tokens, turn + 1, group=f"g{n}", **dict(more)),
    ]


def snapshot(items: list[Item], *, turn: int, exchange: int = 1, **more: Any) -> Snapshot:
    return Snapshot(
        1, turn, exchange, LIMITS, tuple(items), DEFAULT_LIFETIMES, goal_block="goal", **more
    )  # fmt: skip


def window(results: int = 20, tokens: int = 3_000) -> Snapshot:
    items = [item("sys", "system_prompt", 500, 1), item("goal", "user_message", 50, 1)]
    for n in range(results):
        items += tool_group(n, tokens, n + 1)
    return snapshot(items, turn=results + 1)


def plan(snap: Snapshot, needed: int, *, policy: str = "hybrid", grade: Grade = "exchanges") -> Any:
    return plan_eviction(snap, needed, policy=POLICIES[policy], counter=COUNTER, grade=grade)


def removed_ids(found: Any) -> list[str]:
    return [block.id for removal in found.removals for block in removal.blocks]


def test_the_smallest_adequate_set_is_evicted() -> None:
    found = plan(window(), 500)

    assert removed_ids(found) == ["result0"]
    assert found.shortfall_tokens == 0


def test_a_target_that_cannot_be_met_reports_its_shortfall() -> None:
    found = plan(window(6), 90_000)

    assert found.shortfall_tokens == 90_000 - found.freed_tokens > 0


def test_the_last_three_tool_groups_of_a_single_exchange_stay() -> None:
    left = removed_ids(plan(window(12), 10**6, grade="tool_groups"))

    assert not {"result9", "result10", "result11"} & set(left)
    assert "result0" in left


def test_the_last_two_exchanges_stay() -> None:
    items = [item("goal", "user_message", 50, 1, exchange=1)]
    for n in range(12):
        items += tool_group(n, 4_000, n + 1, exchange=1 + n // 4)
    found = plan(snapshot(items, turn=14, exchange=3), 10**6)

    assert set(removed_ids(found)) <= {f"result{n}" for n in range(4)}


def test_a_result_that_is_repeated_later_is_evicted_before_its_equals() -> None:
    items = [item("goal", "user_message", 50, 1)]
    for n in range(10):
        items += tool_group(n, 6_000, 1)
    twin = items[8]
    items[8] = twin._replace(block=Block(**{**_fields(twin.block), "digest": "same"}))
    last = items[-1]
    items[-1] = last._replace(block=Block(**{**_fields(last.block), "digest": "same"}))
    found = plan(snapshot(items, turn=8), 1_000)

    assert removed_ids(found) == [twin.block.id]
    assert found.removals[0].reason == "repeated later in the window"


def _fields(block: Block) -> dict[str, Any]:
    return {name: getattr(block, name) for name in Block.__slots__}


def test_lru_keeps_the_blocks_used_last() -> None:
    items = [item("goal", "user_message", 50, 1)]
    for n in range(12):
        items += tool_group(n, 4_000, 1, referenced=20 if n == 0 else None)
    found = plan(snapshot(items, turn=21), 4_000, policy="lru")

    assert removed_ids(found)[0] != "result0"


def test_references_count_only_if_they_are_tracked() -> None:
    found = plan(window(), 3_000)
    tracked = plan_eviction(
        snapshot(list(window().items), turn=21, references_known=True), 3_000,
        policy=POLICIES["hybrid"], counter=COUNTER,
    )  # fmt: skip

    assert "reference_frequency" not in found.removals[0].terms
    assert "reference_frequency" in tracked.removals[0].terms


def test_a_placeholder_that_is_not_smaller_is_not_used() -> None:
    """Tiny results stay: masking them would make the window larger."""
    found = plan(window(20, tokens=15), 10**6)

    assert not [removal for removal in found.removals if removal.form == "mask"]


def test_fifo_drops_whole_groups_and_hybrid_reserves_messages_for_compaction() -> None:
    items = [item("goal", "user_message", 50, 1)]
    items += [item(f"a{n}", "assistant_response", 3_000, n) for n in range(1, 25)]
    snap = snapshot(items, turn=26)

    assert removed_ids(plan(snap, 5_000, policy="fifo", grade="tool_groups")) == ["a1", "a2"]
    assert removed_ids(plan(snap, 5_000, grade="tool_groups")) == []


def test_a_policy_of_lifetimes_drops_expired_messages_whole() -> None:
    items = [item("goal", "user_message", 50, 1)]
    items += [item(f"m{n}", "memory_injection", 4_000, n, stale=n < 4) for n in range(1, 12)]
    found = plan(snapshot(items, turn=40), 6_000, policy="type_based", grade="tool_groups")

    assert removed_ids(found) == ["m1", "m2"]
    assert {removal.form for removal in found.removals} == {"drop"}


def test_the_plan_states_its_cache_cost_and_the_next_candidates() -> None:
    snap = window(40, tokens=2_000)
    found = plan(snap, 1_500)
    position = next(at for at, one in enumerate(snap.items) if one.block.id == removed_ids(found)[0])

    assert found.cache_cost_tokens == sum(one.block.tokens for one in snap.items[position + 1 :])
    assert len(found.candidates) == 20
    assert [c.score for c in found.candidates] == sorted(c.score for c in found.candidates)


def test_a_placeholder_describes_the_removed_result_in_at_most_fifty_tokens() -> None:
    block = item("b7", "tool_result", 3_000, 7).block
    text = placeholder_text(block, "23 files reference axios in user-service/src/", "wp:b7", COUNTER)
    long = placeholder_text(block, "x" * 5_000, "wp:b7", COUNTER)

    assert "turn 7" in text
    assert "search" in text
    assert "23 files reference axios" in text
    assert "wp:b7" in text
    assert COUNTER.count(long) <= 50
    assert "wp:b7" in long


MANY_LINES = "ok\n" * 90


@pytest.mark.parametrize(
    ("output", "finding"),
    [
        (
            "compiling\nsrc/a.ts(3,1): error TS2304: Cannot find name\ndone",
            "src/a.ts(3,1): error TS2304: Cannot find name",
        ),
        ("listing\n\nFound 23 matches in 4 files\n", "Found 23 matches in 4 files"),
        ("{\n  \n}\nplain words here", "plain words here"),
        ("", ""),
        ("noise\n" * 10_000 + "3 failed, 10 passed", "3 failed, 10 passed"),
        (
            f"try:\n    import yaml\nexcept ImportError:\n{MANY_LINES}ERROR ERR-1572 refused\n{MANY_LINES}",
            "ERROR ERR-1572 refused",
        ),
        ('12→  except ImportError:\n13→      raise KeyError("x")', "lines 12 to 13"),
        ('a.go:7:  return fmt.Errorf("failed: %w", err)\nFound 1 match', "Found 1 match"),
        (
            'Exit code 1\n  File "/a/b.py", line 12, in main\nValueError: no rate',
            "ValueError: no rate (/a/b.py:12, exit 1)",
        ),
        (
            '{"output": "ok\\nFAILED tests/a.py::test_b - assert 1 == 2\\nok"}',
            "FAILED tests/a.py::test_b - assert 1 == 2",
        ),
        ("12 passed, 0 failed\nerror: missing key", "error: missing key"),
        (
            "  1→package cli\n  2→\n  3→// errors\n\n<system-reminder>\nRead it.\n</system-reminder>\n",
            "lines 1 to 3",
        ),
        ("105:func (t *T) Has() bool {\n106-\tvar err error\n107-}", "lines 105 to 107"),
        (
            "src/a.go:5:\tif err != nil {\nsrc/a.go:9:\treturn err\nlib/b.go:7:// error of the store",
            "3 lines of 2 files: src/a.go, lib/b.go",
        ),
        (
            "Exit code 1\n[lint] $ lint\ncmd/setup.go:888:2: missing cases in switch\n[lint] ERROR task failed",
            "cmd/setup.go:888:2: missing cases in switch (exit 1)",
        ),
        (
            "Chunk ID: fe073b\nProcess exited with code 0\nOutput:\n# Release\nRUN check || exit 1",
            "# Release",
        ),
        (
            "<tool_use_error>Found 2 matches of the string to replace\nif err { return err }</tool_use_error>",
            "<tool_use_error>Found 2 matches of the string to replace",
        ),
        ("12:00:01 start\n12:00:02 ERROR: refused\n12:00:03 stop", "12:00:02 ERROR: refused"),
        (
            "Exit code 1\n--- FAIL: TestA (0.1s)\n--- FAIL: TestA (0.2s)\n--- FAIL: TestB (0.1s)\n1 error",
            "--- FAIL: TestA (0.1s) (exit 1); --- FAIL: TestB (0.1s)",
        ),
    ],
)
def test_the_finding_of_a_result_is_its_failure_count_or_opening_text(output: str, finding: str) -> None:
    assert finding_of(output) == finding


def test_failures_that_differ_in_numbers_are_one_line() -> None:
    lines = grouped_failures(["ERROR E-1 refused", "fatal: no branch", "ERROR E-2 refused"])

    assert lines == ["fatal: no branch", "ERROR E-2 refused (also E-1)"]
    assert grouped_failures([*lines, "ERROR E-3 refused"])[-1] == "ERROR E-3 refused (also E-1, E-2)"


def test_the_default_does_not_drop_expired_messages() -> None:
    items = [item("goal", "user_message", 50, 1)]
    items += [item(f"m{n}", "memory_injection", 4_000, n, stale=n < 4) for n in range(1, 12)]

    assert not plan(snapshot(items, turn=40), 6_000, grade="tool_groups").removals


@pytest.mark.parametrize(
    "weights", [{"recency": 0.0}, {"recency": -0.1}, {"age": 1.0}, {"recency": float("nan")}]
)
def test_weights_that_cannot_be_right_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        Policy("own", weights)


def test_an_unknown_policy_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="hybrid"):
        policy_named("newest")


KINDS: list[ContentType] = ["user_message", "assistant_response", "memory_injection", "media", "summary"]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    items = [item("sys", "system_prompt", 100, 1), item("goal", "user_message", 40, 1)]
    turn = 1
    for n in range(draw(st.integers(0, 25))):
        turn += draw(st.integers(0, 3))
        tokens = draw(st.integers(0, 9_000))
        common = {
            "stale": draw(st.booleans()),
            "pinned": draw(st.integers(0, 9)) == 0,
            "exchange": 1 + n // draw(st.integers(1, 8)),
            "digest": draw(st.sampled_from(["", "d1", "d2"])),
        }
        if draw(st.booleans()):
            items += tool_group(n, tokens, turn, **common)
        else:
            items.append(item(f"x{n}", draw(st.sampled_from(KINDS)), tokens, turn, **common))
    return snapshot(
        items,
        turn=turn + draw(st.integers(0, 12)),
        exchange=max(one.block.exchange for one in items),
        references_known=draw(st.booleans()),
    )


@given(
    snapshots(),
    st.integers(0, 200_000),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(GRADES),
)
def test_no_plan_touches_protected_content_or_splits_a_group(
    snap: Snapshot, needed: int, policy: str, grade: Grade
) -> None:
    found = plan(snap, needed, policy=policy, grade=grade)
    left = removed_ids(found)
    kept = protected(snap, grade)
    by_id = {one.block.id: one.block for one in snap.items}

    assert len(set(left)) == len(left)
    assert not {by_id[name].group for name in left} & kept
    assert not any(by_id[name].pinned or by_id[name].content_type == "system_prompt" for name in left)
    for removal in found.removals:
        assert 0 <= removal.score <= 1
        assert set(removal.terms) <= set(SCORERS)
        if removal.form == "mask":
            assert [block.content_type for block in removal.blocks] == ["tool_result"]
            assert 0 < removal.placeholder_tokens < removal.blocks[0].tokens
        else:
            group = removal.blocks[0].group
            assert {b.id for b in removal.blocks} == {b.id for b in by_id.values() if b.group == group}
    assert found.freed_tokens == sum(by_id[name].tokens for name in left) - sum(
        removal.placeholder_tokens for removal in found.removals
    )
    assert found.shortfall_tokens == max(0, needed - found.freed_tokens)
    if needed == 0:
        assert left == []
    assert plan(snap, needed, policy=policy, grade=grade) == found


@given(snapshots())
def test_protection_gives_way_only_grade_by_grade(snap: Snapshot) -> None:
    exchanges, tools, cycle = (protected(snap, grade) for grade in GRADES)

    assert cycle <= tools <= exchanges
