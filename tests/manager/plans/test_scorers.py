"""Terms of the eviction score: the formula of each, at its ends and in between."""

from __future__ import annotations

import pytest
from builders import filler, item, snapshot, tool_items

from windowpane.core.vocabulary import ContentType
from windowpane.manager.plans.eviction import plan_eviction
from windowpane.manager.plans.policies import SCORERS, Policy
from windowpane.manager.snapshot import Item
from windowpane.testing import CharacterCounter

TURN = 50


def rate(term: str, *items: Item, **more: object) -> list[float | None]:
    """Return the values of *term* for the items."""
    taken = snapshot(list(items), turn=TURN, **more)
    return list(SCORERS[term](taken.items, taken))


def used(one: Item, turn: int, *, times: int = 1) -> Item:
    """The item, referred to last in *turn*."""
    return one._replace(referenced_turn=turn, references=times)


def test_recency_halves_every_ten_turns() -> None:
    old = item("old", "tool_result", 100, TURN - 20)

    assert rate(
        "recency", item("new", "tool_result", 100, TURN), item("mid", "tool_result", 100, TURN - 10), old
    ) == [
        1.0,
        0.5,
        0.25,
    ]
    assert rate("recency", used(old, TURN)) == [0.25]


def test_type_ttl_is_the_remaining_share() -> None:
    ages = [0, 2, 8, 20]
    results = [item(f"r{age}", "tool_result", 100, TURN - age) for age in ages]

    assert rate("type_ttl", *results) == [1.0, 0.75, 0.0, 0.0]
    assert rate("type_ttl", used(results[-1], TURN - 4)) == [0.5]
    assert rate("type_ttl", item("said", "user_message", 100, 1)) == [1.0]


def test_references_count_up_to_five() -> None:
    items = [used(item(f"r{times}", "tool_result", 100, 1), 2, times=times) for times in (0, 1, 4, 5, 9)]

    assert rate("reference_frequency", *items, references_known=True) == [0.0, 0.2, 0.8, 1.0, 1.0]
    assert rate("reference_frequency", *items, references_known=False) == [None] * 5


def test_similarity_counts_nearly_identical_later_content() -> None:
    text = filler(200)
    twins = [item(f"t{n}", "tool_result", 200, n, text=text + f" {n}") for n in (1, 2)]
    other = item("o", "tool_result", 200, 3, text=filler(200, tag="other"))
    reply = item("a", "assistant_response", 200, 4, text=text)
    short = [item(f"s{n}", "tool_result", 10, n, text="the same few words") for n in (5, 6)]
    first, second, different, said, *few = rate("similarity", *twins, other, reply, *short)

    assert first is not None
    assert first < 0.15
    assert (second, different, said) == (1.0, 1.0, 1.0)
    assert few == [None, None]


@pytest.mark.parametrize(
    ("more", "less"),
    [("user_message", "assistant_response"), ("tool_call", "tool_result"), ("summary", "thinking")],
)
def test_priority_ranks_the_types(more: ContentType, less: ContentType) -> None:
    high, low = rate("priority", item("m", more, 100, 1), item("l", less, 100, 1))

    assert high is not None
    assert low is not None
    assert high > low


def test_priority_favors_results_that_report_a_failure() -> None:
    """A little more than another result, so that it is not tried again."""
    findings = {"failed": "3 tests failed", "fine": "42 lines"}
    failed, fine = rate(
        "priority",
        item("failed", "tool_result", 100, 1),
        item("fine", "tool_result", 100, 1),
        findings=findings,
    )

    assert failed == pytest.approx(0.5)
    assert fine == pytest.approx(0.3)


def test_a_term_that_cannot_rate_a_block_has_no_weight_in_its_score() -> None:
    known = item("known", "tool_result", 200, TURN - 10, text=filler(200))
    unknown = item("unknown", "tool_result", 20, TURN - 10, text="short")
    policy = Policy("two", {"recency": 1.0, "similarity": 3.0})
    items = [item("goal", "user_message", 5, 1, exchange=1), known, unknown]
    taken = snapshot(items, turn=TURN)
    scores = {
        candidate.block_id: candidate.score
        for candidate in plan_eviction(
            taken, 0, policy=policy, counter=CharacterCounter(), grade="open_cycle"
        ).candidates
    }

    assert scores["known"] == pytest.approx((0.5 + 3.0) / 4)
    assert scores["unknown"] == pytest.approx(0.5)


def test_a_groups_score_weighs_its_blocks_by_their_tokens() -> None:
    heavy = [
        item("c1", "tool_call", 10, TURN - 40, group="g1"),
        item("r1", "tool_result", 1_000, TURN - 10, group="g1"),
    ]
    light = [
        item("c2", "tool_call", 1_000, TURN - 40, group="g2"),
        item("r2", "tool_result", 10, TURN - 10, group="g2"),
    ]
    policy = Policy("age", {"recency": 1.0}, masks=False, drops="any")
    taken = snapshot([item("goal", "user_message", 5, 1), *heavy, *light, *tool_items(9, 10, TURN)], turn=TURN)
    found = plan_eviction(taken, 500, policy=policy, counter=CharacterCounter(), grade="open_cycle")

    assert [block.id for removal in found.removals for block in removal.blocks] == ["c2", "r2"]


def test_the_cache_cost_counts_the_content_after_the_first_edit() -> None:
    results = [item(f"r{n}", "tool_result", 1_000, n + 1, text=filler(1_000, tag=f"t{n}")) for n in range(4)]
    items = [item("goal", "user_message", 7, 1), *results, item("end", "assistant_response", 40, TURN - 1)]
    policy = Policy("age", {"recency": 1.0})
    taken = snapshot(items, turn=TURN)
    found = plan_eviction(taken, 1_500, policy=policy, counter=CharacterCounter(), grade="open_cycle")

    assert [block.id for removal in found.removals for block in removal.blocks] == ["r0", "r1"]
    assert found.cache_cost_tokens == 2_040


def test_what_turns_out_not_to_be_needed_stays() -> None:
    small = item("small", "tool_result", 100, 1, text=filler(100, tag="s"))
    large = item("large", "tool_result", 1_000, 2, text=filler(1_000, tag="l"))
    taken = snapshot([item("goal", "user_message", 5, 1), small, large], turn=TURN)
    policy = Policy("age", {"recency": 1.0})
    found = plan_eviction(taken, 900, policy=policy, counter=CharacterCounter(), grade="open_cycle")

    assert [block.id for removal in found.removals for block in removal.blocks] == ["large"]
    assert found.shortfall_tokens == 0


def test_a_call_without_a_result_is_not_dropped_as_expired() -> None:
    lone = item("lone", "tool_call", 500, 1, group="g1")
    spent = [
        item("c", "tool_call", 50, 1, group="g2"),
        item("r", "thinking", 500, 1, group="g2")._replace(stale=True),
    ]
    taken = snapshot([item("goal", "user_message", 5, 1), lone, *spent], turn=TURN)
    policy = Policy("age", {"recency": 1.0}, masks=False)
    found = plan_eviction(taken, 5_000, policy=policy, counter=CharacterCounter(), grade="open_cycle")

    assert [block.id for removal in found.removals for block in removal.blocks] == ["c", "r"]
