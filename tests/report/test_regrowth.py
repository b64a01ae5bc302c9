"""Regrowth: the turns from a compaction back to its level, and what refilled the window."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from tests.report.test_findings import turn

from windowpane.report.regrowth import Regrowth, read_regrowth
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import TurnRow


def calls(*sizes: int) -> list[TurnRow]:
    return [
        turn(number, used_final=size, components={"tool_results": size // 2, "message_history": size - size // 2})
        for number, size in enumerate(sizes, 1)
    ]


def regrown(turns: Sequence[TurnRow], *, compacted: int, following: int | None = None) -> Regrowth | None:
    blocks = ((1, "old.py", 900), (5, "a.py", 300), (6, "a.py", 200), (6, "b.py", 100))
    added: Any = [
        SimpleNamespace(
            block_id=number, content_type="tool_result", turn_added=turn_added, tool_name="Read", target=name,
            tokens=tokens, count_source="estimate",
        )
        for number, (turn_added, name, tokens) in enumerate(blocks)
    ]  # fmt: skip
    store = cast("EventReader", SimpleNamespace(blocks_at=lambda _session, _turn: added))
    return read_regrowth(store, "s", turns, compacted_turn=compacted, next_turn=following)


def test_a_window_that_is_back_at_the_level_names_the_turns_and_what_filled_it() -> None:
    """The content has its share of the measured 550 tokens of tool results, of which 1,500 were counted."""
    one = regrown(calls(500, 800, 1_000, 200, 600, 1_100, 1_200), compacted=3)

    assert one is not None
    assert (one.level_tokens, one.start_tokens, one.end_tokens, one.turns, one.is_back) == (
        1_000,
        200,
        1_100,
        2,
        True,
    )
    assert one.text == (
        "back at 1k after 2 turns: tool results 450, message history 450; most of it Read a.py 183, Read b.py 37"
    )


def test_a_window_that_ended_below_the_level_has_its_last_size() -> None:
    one = regrown(calls(1_000, 200, 600), compacted=2)

    assert one is not None
    assert not one.is_back
    assert one.text.startswith("refilled to 600 of 1k after 1 turn: tool results 200")


def test_the_next_compaction_ends_it_near_the_level() -> None:
    one = regrown(calls(1_000, 200, 950, 300), compacted=1, following=3)

    assert one is not None
    assert (one.turns, one.is_back) == (1, True)


def test_a_compaction_without_calls_around_it_has_none() -> None:
    assert regrown(calls(1_000), compacted=1) is None
    assert regrown(calls(300, 400), compacted=0) is None
