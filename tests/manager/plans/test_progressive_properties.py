"""Invariants of the levels of progressive summarization, for any window at any age."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from builders import item, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.manager.plans.progressive_summarization import (
    AGING_TYPES,
    LEVELS,
    AgedBlock,
    ProgressivePlan,
    ShortenedBlocks,
    level_of,
    plan_progressive,
    rejection_reason,
    shorten,
)
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.snapshot import Item, Snapshot, groups_of
from windowpane.testing import CharacterCounter

COUNTER = CharacterCounter()
KINDS: Any = (
    "user_message", "assistant_response", "tool_pair", "thinking", "memory_injection", "summary", "system_prompt",
)  # fmt: skip


def prose(tag: str, tokens: int, *, facts: bool) -> str:
    """Text of about so many tokens, with or without what a summary keeps first."""
    said = f"Decided on plan_{tag} because reason_{tag} holds.\nValueError: bad input {tag}\n" if facts else ""
    return (said + f"line of {tag} " * tokens)[: max(1, tokens * 4)]


def items_of(drawn: list[tuple[str, int, int, bool, bool]]) -> list[Item]:
    """Blocks in order, each so many turns after the one before."""
    items = [item("u0", "user_message", 20, 1, text="Review all modules.")]
    turn = 1
    for n, (kind, tokens, later, facts, pinned) in enumerate(drawn):
        turn += later
        text = prose(f"x{n}", tokens, facts=facts)
        counted = COUNTER.count(text)
        if kind == "tool_pair":
            items.append(item(f"c{n}", "tool_call", 20, turn, group=f"g{n}"))
            items.append(item(f"r{n}", "tool_result", counted, turn, group=f"g{n}", text=text, pinned=pinned))
        else:
            items.append(item(f"b{n}", kind, counted, turn, text=text, pinned=pinned))  # type: ignore[arg-type]
    return items


WINDOWS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(1, 1_500), st.integers(0, 4), st.booleans(), st.booleans()),
    min_size=1,
    max_size=14,
).map(items_of)


def apply(state: Snapshot, plan: ProgressivePlan, known: ShortenedBlocks) -> Snapshot:
    """The window after every block of the plan gave way to its shorter form."""
    items = list(state.items)
    for n, aged in enumerate(plan.aged):
        text = shorten(aged, COUNTER)
        assert rejection_reason(aged, text, COUNTER) == ""
        at = next(at for at, one in enumerate(items) if one.block.id == aged.block.id)
        made = replace(aged.block, id=f"{aged.root}/{aged.level}/{n}", text=text, tokens=COUNTER.count(text))
        known.write(aged, text, "m")
        known.replaced(aged, made)
        items[at] = items[at]._replace(block=made)
    return replace(state, version=state.version + 1, items=tuple(items))


def last_turn(items: list[Item]) -> int:
    return max(one.block.turn for one in items)


@given(WINDOWS, st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_an_aging_window_only_shrinks_and_becomes_stable(items: list[Item], steps: list[int]) -> None:
    known = ShortenedBlocks()
    turn = last_turn(items)
    state = snapshot(items, turn=turn)
    shortened: dict[str, list[int]] = {}
    for step in steps:
        turn += step
        state = replace(state, turn=turn)
        plan = plan_progressive(state, known, 0)
        for aged in plan.aged:
            shortened.setdefault(aged.root, []).append(aged.level)
        after = apply(state, plan, known)

        assert after.tokens <= state.tokens - plan.expected_tokens
        assert plan_progressive(after, known, 0).aged == ()
        state = after
    assert all(levels == sorted(set(levels)) for levels in shortened.values())
    assert all(len(levels) < len(LEVELS) for levels in shortened.values())


@given(WINDOWS, st.integers(0, 60))
def test_protected_content_is_never_in_a_plan(items: list[Item], later: int) -> None:
    state = snapshot(items, turn=last_turn(items) + later)
    protected = never_removed(state, groups_of(state.items))

    for aged in plan_progressive(state, ShortenedBlocks(), 0).aged:
        assert aged.block.group not in protected
        assert aged.block.content_type in AGING_TYPES
        assert not aged.block.pinned
        assert aged.level == level_of(state.turn - aged.block.turn) > 0


@given(WINDOWS, st.integers(1, 60))
def test_every_shorter_form_fits_its_level_and_names_it(items: list[Item], later: int) -> None:
    state = snapshot(items, turn=last_turn(items) + later)

    for aged in plan_progressive(state, ShortenedBlocks(), 0).aged:
        text = shorten(aged, COUNTER)
        assert 0 < COUNTER.count(text) <= aged.max_tokens < aged.block.tokens
        assert aged.original == aged.block.text


@given(WINDOWS, st.integers(1, 60), st.floats(0.0, 1.2))
def test_no_more_is_shortened_than_the_target_requires(items: list[Item], later: int, share: float) -> None:
    state = snapshot(items, turn=last_turn(items) + later)
    target = int(share * state.tokens)
    plan = plan_progressive(state, ShortenedBlocks(), target)
    turns = [aged.block.turn for aged in plan.aged]

    assert turns == sorted(turns)
    assert plan.shortfall_tokens == max(0, state.tokens - plan.expected_tokens - target)
    if plan.aged:
        last = plan.aged[-1]
        assert state.tokens - (plan.expected_tokens - last.block.tokens + last.max_tokens) > target
    assert plan.aged or state.tokens <= target or not plan_progressive(state, ShortenedBlocks(), 0).aged


@settings(max_examples=settings.default.max_examples // 2)
@given(WINDOWS, st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_the_same_window_gives_the_same_texts(items: list[Item], steps: list[int]) -> None:
    def aged_texts() -> list[tuple[AgedBlock, str]]:
        known = ShortenedBlocks()
        turn = last_turn(items)
        state = snapshot(items, turn=turn)
        made: list[tuple[AgedBlock, str]] = []
        for step in steps:
            turn += step
            state = replace(state, turn=turn)
            plan = plan_progressive(state, known, state.tokens // 2)
            made += [(aged, shorten(aged, COUNTER)) for aged in plan.aged]
            state = apply(state, plan, known)
        return made

    assert aged_texts() == aged_texts()
