"""Single edits of the window: replacements, duplicates, staleness, references."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.core.limits import DEFAULT_LIFETIMES
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window
from windowpane.exceptions import WindowError


def block(block_id: str, content_type: ContentType = "user_message", **fields: Any) -> Block:
    values = {"tokens": 10, "turn": 1, "group": block_id, "exchange": 1, "digest": "", "chars": 0,
              "count_source": "exact"}  # fmt: skip
    return Block(id=block_id, content_type=content_type, **{**values, **fields})


def window(*blocks: Block) -> Window:
    made = Window(DEFAULT_LIFETIMES)
    for one in blocks:
        made.add(one)
    return made


def ids(of: Window) -> list[str]:
    return [one.id for one in of]


def test_a_placeholder_takes_the_position_and_group_of_its_block() -> None:
    held = window(
        block("a"),
        block("call", "tool_call", group="call"),
        block("result", "tool_result", group="call"),
        block("z"),
    )
    held.replace(["result"], [block("mask", "placeholder", group="call", replaces="result")])

    assert ids(held) == ["a", "call", "mask", "z"]
    assert held.group("call") == ("call", "mask")


def test_several_results_keep_their_order_when_one_is_replaced_later() -> None:
    held = window(block("a"), block("b"), block("c"))
    held.replace(["a", "b"], [block("s1", "summary"), block("s2", "summary")])
    held.replace(["s1"], [block("s3", "summary")])

    assert ids(held) == ["s3", "s2", "c"]


def test_removing_unknown_blocks_is_allowed() -> None:
    held = window(block("a"))
    left = held.replace(["ghost"], [block("s", "summary")])
    held.add(block("b"))

    assert left == []
    assert ids(held) == ["a", "s", "b"]


def test_a_repeated_id_is_removed_once() -> None:
    held = window(block("a"), block("b"))

    assert [one.id for one in held.replace(["a", "a"], ())] == ["a"]
    assert held.tokens == 10


def test_the_next_of_equal_blocks_stops_being_a_duplicate() -> None:
    held = window(block("a", digest="d"), block("b", digest="d"), block("c", digest="d"))
    assert held.duplicate_tokens == 20

    held.replace(["a"], ())

    assert held.duplicate_tokens == 10
    assert not held.slot("b").duplicate


@pytest.mark.parametrize(("content_type", "lifetime"), DEFAULT_LIFETIMES.items())
def test_a_block_is_stale_after_its_types_lifetime(content_type: ContentType, lifetime: int) -> None:
    held = window(block("a", content_type))
    for turn in range(2, 2 + lifetime):
        held.enter_turn(turn)
        assert held.stale_tokens == 0

    held.enter_turn(2 + lifetime)

    assert held.stale_tokens == 10


def test_a_stale_duplicate_counts_as_stale_once_it_is_single() -> None:
    held = window(block("a", digest="d"), block("b", "thinking", digest="d"))
    for turn in range(2, 6):
        held.enter_turn(turn)
    assert (held.duplicate_tokens, held.stale_tokens) == (10, 0)

    held.replace(["a"], ())

    assert (held.duplicate_tokens, held.stale_tokens) == (0, 10)


def test_a_reference_makes_a_stale_block_fresh() -> None:
    held = window(block("a", "thinking"))
    for turn in range(2, 6):
        held.enter_turn(turn)
    held.mark_referenced("a", 5)
    assert held.stale_tokens == 0

    for turn in (6, 7):
        held.enter_turn(turn)
        assert held.stale_tokens == 0
    held.enter_turn(8)
    assert held.stale_tokens == 10


@pytest.mark.parametrize("content_type", ["system_prompt", "user_message", "summary"])
def test_static_and_pinned_content_is_never_stale(content_type: ContentType) -> None:
    held = window(block("a", content_type), block("b", "thinking", pinned=True))
    for turn in range(2, 100):
        held.enter_turn(turn)

    assert held.stale_tokens == 0


def test_a_missing_block_is_an_error_that_names_it() -> None:
    with pytest.raises(WindowError, match="block ghost is not in the window"):
        window().slot("ghost")


def test_every_edit_changes_the_version() -> None:
    held = window(block("a"))
    versions = [held.version]
    held.replace(["a"], [block("b")])
    versions.append(held.version)
    held.clear()
    versions.append(held.version)

    assert len(set(versions)) == 3
    assert len(held) == 0
    assert held.tokens == 0
