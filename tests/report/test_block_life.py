"""The life of a block as sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windowpane.core.events import Candidate, EvictedBlock
from windowpane.report.block_life import LISTED_CANDIDATES, LISTED_USES, LifeStep, life_steps
from windowpane.store.reads.block_life import BlockLife, BlockRemoval, BlockUse
from windowpane.store.records import BlockRow

CALL = BlockRow(
    "b1", "tool_call", 20, "g1", 0, 2, None, 0, 1, None, "", None, None, None, None, 0, None, "read", "c1", False,
    "d1", 80, "exact", None,
)  # fmt: skip
NAME = "tool result of read"
RESULT = replace(CALL, block_id="b2", content_type="tool_result", tokens=1_500, count_source="estimate")
SUMMARY = replace(CALL, block_id="b9", content_type="summary", tokens=90, turn_added=8, tool_name=None)
EVICTED = EvictedBlock("b2", "tool_result", 1_500, "mask", "old", score=0.2)
REMOVAL = BlockRemoval(8, 80.0, "eviction", "type_ttl", "older than 8 turns", EVICTED)

EVICTION = "Removed by type ttl: older than 8 turns."
SCALE = "0 is removed first, 1 last."


def life(removal: BlockRemoval | None = None, replacement: BlockRow | None = None) -> BlockLife:
    return BlockLife(RESULT, 10.0, CALL, (), removal, replacement, ())


def step(found: BlockLife, name: str) -> LifeStep:
    (step,) = [step for step in life_steps(found) if step.step == name]
    return step


def test_a_block_in_the_window() -> None:
    assert life_steps(life()) == [
        LifeStep("added", 2, 10.0, f"Added as {NAME} of ≈1,500 tokens, the result of a tool call of read.", "b1"),
        LifeStep("in the window", 2, None, "Never removed; it is still in the window."),
    ]  # fmt: skip


def test_the_first_uses_and_the_last_are_named() -> None:
    uses = tuple(BlockUse(turn, None, f"u{turn}", CALL) for turn in range(3, 3 + LISTED_USES + 2))
    used = [step for step in life_steps(replace(life(), uses=uses)) if step.step == "used"]

    assert [step.turn for step in used] == [*range(3, 3 + LISTED_USES), uses[-1].turn]
    assert used[0].text == "Used by tool call of read of turn 2."
    assert used[-1].text == "2 more uses, the last by tool call of read of turn 2."
    exact = replace(life(), uses=uses[:LISTED_USES])
    assert len([step for step in life_steps(exact) if step.step == "used"]) == LISTED_USES
    (unknown,) = [
        step for step in life_steps(replace(life(), uses=(BlockUse(3, None, "u3", None),))) if step.step == "used"
    ]
    assert unknown.text == "Used by u3."


@pytest.mark.parametrize(
    ("removal", "text"),
    [
        (replace(REMOVAL, evicted=None), EVICTION),
        (
            replace(REMOVAL, removed_blocks=3, policy="", reason="", evicted=None),
            "Removed with 2 other items.",
        ),
        (replace(REMOVAL, kind="archived", evicted=None), "Archived by type ttl: older than 8 turns."),
        (
            replace(REMOVAL, evicted=replace(EVICTED, terms={"type_ttl": 0.15})),
            f"{EVICTION} Score 0.20 (type ttl 0.15). {SCALE}",
        ),
        (
            replace(REMOVAL, others=(EVICTED, replace(EVICTED, score=0.3), replace(EVICTED, score=None))),
            f"{EVICTION} Score 0.20; removed with it at 0.20 to 0.30. {SCALE}",
        ),
        (
            replace(REMOVAL, others=(EVICTED,)),
            f"{EVICTION} Score 0.20; removed with it at 0.20. {SCALE}",
        ),
        (
            replace(REMOVAL, others=(replace(EVICTED, score=None),)),
            f"{EVICTION} Score 0.20; removed with it at no score. {SCALE}",
        ),
    ],
)  # fmt: skip
def test_the_removal_has_its_cause_and_its_scores(removal: BlockRemoval, text: str) -> None:
    assert step(life(removal), "removed").text == text


def test_the_candidates_that_were_retained_are_named() -> None:
    candidates = tuple(Candidate(f"c{n}", "thinking", 10, n / 10) for n in range(LISTED_CANDIDATES + 1))
    text = step(life(replace(REMOVAL, candidates=candidates, others=(EVICTED,))), "removed").text

    assert "; retained against it: thinking c0 0.00, thinking c1 0.10" in text
    assert " and 1 other. 0 is removed first" in text
    assert "removed with it" not in text
    few = step(life(replace(REMOVAL, candidates=candidates[:-1])), "removed").text
    assert " and " not in few.partition("retained against it")[2]


@pytest.mark.parametrize(
    ("evicted", "replacement", "text"),
    [
        (None, None, "Replaced by nothing."),
        (EVICTED, None, "Replaced by nothing."),
        (
            replace(EVICTED, handle="wp:1"),
            None,
            "Replaced by nothing; the original can be retrieved as wp:1.",
        ),
        (None, SUMMARY, "Replaced by a summary of 90 tokens."),
        (EVICTED, SUMMARY, "Replaced by a summary of 90 tokens."),
        (
            replace(EVICTED, handle="wp:1"),
            replace(SUMMARY, content_type="assistant_response"),
            "Replaced by an assistant reply of 90 tokens; the original can be retrieved as wp:1.",
        ),
    ],
)
def test_the_replacement_and_the_way_back(
    evicted: EvictedBlock | None, replacement: BlockRow | None, text: str
) -> None:
    found = step(life(replace(REMOVAL, evicted=evicted), replacement), "replaced")

    assert found.text == text
    assert (found.turn, found.block_id) == ((8, None) if replacement is None else (8, "b9"))


def test_a_newer_version_is_one_step() -> None:
    newer = replace(SUMMARY, content_type="unattributed")
    steps = life_steps(life(replace(REMOVAL, kind="replaced", reason=""), newer))

    assert [one.text for one in steps if one.step in ("removed", "replaced")] == [
        "Replaced by content not in the recording of 90 tokens."
    ]


def test_content_that_was_needed_again() -> None:
    again = replace(life(REMOVAL), fetched_again=(BlockUse(11, 110.0, "u3", RESULT),))

    assert step(again, "needed again") == LifeStep(
        "needed again", 11, 110.0,
        f"Needed again by {NAME} of turn 2: ≈1,500 tokens.", "u3"
    )  # fmt: skip
