"""Progressive summarization: levels by age, written once, never larger."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.manager.plans.progressive_summarization import (
    LEVELS,
    AgedBlock,
    ShortenedBlocks,
    level_of,
    plan_progressive,
    rejection_reason,
    shorten,
)
from windowpane.manager.snapshot import Item, Snapshot
from windowpane.testing import CharacterCounter

COUNTER = CharacterCounter()
LIMITS = WindowLimits.of(32_768, "given")
OUTPUT = "\n".join(f"line {n} of src/module_{n}.py has nothing of note in it" for n in range(60))


def block(n: int, content_type: ContentType, text: str, *, turn: int, pinned: bool = False) -> Block:
    tokens = COUNTER.count(text)
    return Block(f"b{n}", content_type, tokens, turn, f"b{n}", 1, str(n), len(text), "exact", text, pinned=pinned)


def snapshot(*blocks: Block, turn: int) -> Snapshot:
    items = tuple(Item(one, None, 0, stale=False) for one in blocks)
    return Snapshot(1, turn, 1, LIMITS, items, {})


def user() -> Block:
    return block(0, "user_message", "Review all modules. " * 20, turn=1)


def only(found: tuple[AgedBlock, ...]) -> AgedBlock:
    (aged,) = found
    return aged


@pytest.mark.parametrize(
    ("age", "level"), [(0, 0), (1, 1), (5, 1), (6, 2), (20, 2), (21, 3), (999, 3), (1_000, 3), (10**9, 3)]
)
def test_the_level_follows_from_the_age_and_the_last_has_no_end(age: int, level: int) -> None:
    assert level_of(age) == level


def test_each_age_has_its_share_of_the_original() -> None:
    output = block(1, "tool_result", OUTPUT, turn=1)

    asked = [
        only(plan_progressive(snapshot(user(), output, turn=turn), ShortenedBlocks(), 0).aged)
        for turn in (4, 10, 40)
    ]

    assert [aged.level for aged in asked] == [1, 2, 3]
    assert [aged.max_tokens for aged in asked] == [
        max(12, int(LEVELS[level].ratio * output.tokens)) for level in (1, 2, 3)
    ]


def test_user_messages_and_pinned_or_current_blocks_stay() -> None:
    blocks = (
        user(),
        block(1, "tool_call", OUTPUT, turn=1),
        block(2, "thinking", OUTPUT, turn=1),
        block(3, "tool_result", OUTPUT, turn=1, pinned=True),
        block(4, "summary", OUTPUT, turn=1),
        block(5, "assistant_response", OUTPUT, turn=30),
    )

    assert plan_progressive(snapshot(*blocks, turn=30), ShortenedBlocks(), 0).aged == ()


def test_it_stops_at_the_target_and_reports_a_shortfall() -> None:
    blocks = [user(), *(block(n, "tool_result", OUTPUT, turn=n) for n in range(1, 9))]
    state = snapshot(*blocks, turn=12)

    enough = plan_progressive(state, ShortenedBlocks(), state.tokens - 500)
    everything = plan_progressive(state, ShortenedBlocks(), 0)

    assert [aged.block.id for aged in enough.aged] == ["b1"]
    assert enough.shortfall_tokens == 0
    assert everything.shortfall_tokens == state.tokens - everything.expected_tokens > 0


def test_a_level_is_written_once_and_from_the_original() -> None:
    known = ShortenedBlocks()
    text = f"Decided to keep the port because 8443 is taken.\n{OUTPUT}\nvalue_of_interest: 77"
    original = block(1, "assistant_response", text, turn=1)
    first = only(plan_progressive(snapshot(user(), original, turn=3), known, 0).aged)
    known.write(first, "[key points] short", "m")
    stand_in = replace(original, id="b9", text="[key points] short " + "x" * 800, tokens=200, replaces="b1")
    known.replaced(first, stand_in)

    assert plan_progressive(snapshot(user(), stand_in, turn=5), known, 0).aged == ()
    later = only(plan_progressive(snapshot(user(), stand_in, turn=15), known, 0).aged)

    assert (later.level, later.root, later.original) == (2, "b1", text)
    assert later.max_tokens == int(0.05 * original.tokens)
    assert known.text(first) == ("[key points] short", "m")
    assert known.text(later) is None
    known.forget([stand_in])
    assert known.text(first) is None
    assert known.levels == {}


def test_the_facts_stay_longest() -> None:
    text = f"{OUTPUT}\nConnectionError: port 8443 refused\nDecided to retry because the proxy restarts.\n{OUTPUT}"
    aged = only(
        plan_progressive(
            snapshot(user(), block(1, "assistant_response", text, turn=1), turn=4), ShortenedBlocks(), 0
        ).aged
    )

    short = shorten(aged, COUNTER)

    assert short.startswith("[key points] ")
    assert "ConnectionError: port 8443 refused" in short
    assert "Decided to retry because the proxy restarts" in short
    assert COUNTER.count(short) <= aged.max_tokens


def test_facts_that_do_not_fit_are_omitted_whole() -> None:
    text = "\n".join(f"AssertionError: module {n} failed in src/module_{n}.py" for n in range(60))
    output = block(1, "tool_result", text, turn=1)

    for turn in (10, 30):
        short = shorten(
            only(plan_progressive(snapshot(user(), output, turn=turn), ShortenedBlocks(), 0).aged), COUNTER
        )
        files = short.split("; ")[1:]

        assert files
        assert all(name.endswith(".py") for name in files)


def test_small_blocks_are_not_changed() -> None:
    small = block(1, "assistant_response", "All tests pass now.", turn=1)

    assert plan_progressive(snapshot(user(), small, turn=50), ShortenedBlocks(), 0).aged == ()


def test_a_larger_or_empty_text_is_not_accepted() -> None:
    aged = only(
        plan_progressive(
            snapshot(user(), block(1, "tool_result", OUTPUT, turn=1), turn=4), ShortenedBlocks(), 0
        ).aged
    )

    assert rejection_reason(aged, OUTPUT + "more", COUNTER) == "not smaller"
    assert rejection_reason(aged, "  ", COUNTER) == "empty"
    assert rejection_reason(aged, "short", COUNTER) == ""


@given(st.text(min_size=300, max_size=3_000), st.integers(1, 60))
def test_no_text_ever_grows(text: str, age: int) -> None:
    plan = plan_progressive(
        snapshot(user(), block(1, "tool_result", text, turn=1), turn=1 + age), ShortenedBlocks(), 0
    )

    for aged in plan.aged:
        short = shorten(aged, COUNTER)
        assert COUNTER.count(short) <= aged.max_tokens < aged.block.tokens
