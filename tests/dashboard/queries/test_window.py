"""The window at one turn: blocks, scores, removed blocks, regrets and sub-agents."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from windowpane.core.events import SubagentDelegated, SubagentReturned
from windowpane.store.interface import SessionFilter
from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.window import (
    children_frame,
    last_eviction,
    regretted_blocks,
    removed_blocks,
    window_at,
    window_frame,
)
from windowpane_dashboard.sections.block_strip import window_strip
from windowpane_dashboard.sections.regrets import regrets_summary
from windowpane_dashboard.style.theme import LIGHT


@pytest.mark.parametrize(("turn", "evicted_turn"), [(16, None), (18, 17), (21, 17)])
def test_blocks_have_the_score_of_the_last_eviction(
    small_store: SqliteStore, turn: int, evicted_turn: int | None
) -> None:
    """Candidates have a score from the turn of that eviction on; other blocks have none."""
    marks = read_timeline(small_store, "refactor-api").marks

    last = last_eviction(marks, turn)
    blocks = window_at(small_store, "refactor-api", turn, evicted_turn=last)
    scored = blocks[blocks["score"].notna()]
    texts = window_strip(blocks, LIGHT, limit_tokens=20_000).texts

    assert last == evicted_turn
    assert set(scored["score"]) == ({0.64} if evicted_turn else set())
    assert sum("score 0.64" in text for text in texts) == len(scored)
    assert set(scored["what"]) <= {"tool result of read"}


def test_removed_blocks_have_reason_score_and_regret(small_store: SqliteStore) -> None:
    """An evicted block shows the policy's reason, its score, and the turn it was needed again."""
    removed = removed_blocks(small_store, "refactor-api", 21)
    evicted = removed[removed["why"].str.startswith("evicted")]

    assert set(evicted["why"]) == {"evicted: older than 8 turns, never referenced"}
    assert set(evicted["score"]) == {0.12}
    assert evicted["needed again"].str.startswith("turn ").sum() == 1


def test_removed_blocks_name_their_replacement(small_store: SqliteStore) -> None:
    """A placeholder or a summary is named with its tokens, whether it is still in the window or removed too."""
    window = window_at(small_store, "refactor-api", 21)

    removed = removed_blocks(small_store, "refactor-api", 21, window).set_index("removed")

    assert set(removed.loc[17, "replaced by"]) == {"placeholder, 20 tokens"}
    assert set(removed.loc[14, "replaced by"]) == {"summary, 640 tokens"}


def test_a_later_use_is_marked_as_later(small_store: SqliteStore) -> None:
    """Seen from a turn before its last use, a block is used later."""
    block = replace(small_store.blocks_at("refactor-api", 9)[0], last_referenced=12)

    labels = {turn: window_frame([block], turn)["last used"].iloc[0] for turn in (9, 12, 20)}

    assert labels == {9: "later: 12", 12: "turn 12", 20: "turn 12"}


def test_a_regret_names_its_cause_and_its_cost(small_store: SqliteStore) -> None:
    """A regret has the removed block, both turns, the reason, its tokens and its share of the call's cost."""
    turns = read_timeline(small_store, "refactor-api").turns

    frame = regretted_blocks(small_store, "refactor-api", turns)

    row = frame.iloc[0]
    assert (row["what"], row["removed"], row["again"]) == ("tool result of read", 17, 20)
    assert row["why"] == "evicted: older than 8 turns, never referenced"
    call = turns[turns["turn"] == 20].iloc[0]
    assert row["dollars"] == pytest.approx(1_100 * call["cost_dollars"] / call["input_tokens"])
    assert "1,100 tokens paid again, about $" in regrets_summary(frame)


@pytest.fixture
def family(empty_store: SqliteStore, builders: Any) -> SqliteStore:
    """A session with two sub-agents, one of which came back."""
    now = time.time()
    parent = builders.rich(start=now - 800, session_id="boss")
    delegations = (
        SubagentDelegated("helper-1"),
        SubagentReturned("helper-1", 420),
        SubagentDelegated("helper-2"),
    )
    empty_store.append(
        [*parent, *(parent[-1]._replace(n=9_000 + n, data=data) for n, data in enumerate(delegations))]
    )
    for name in ("helper-1", "helper-2"):
        events = builders.plain(name, start=now - 700, turns=2, limit_tokens=9_000, end=True)
        empty_store.append(
            [event._replace(context=replace(event.context, parent_session_id="boss")) for event in events]
        )
    return empty_store


def test_sub_agents_are_listed_with_their_result(family: SqliteStore) -> None:
    """Each sub-agent has links to the turns of its delegation and its return, and the size of its result."""
    children = family.sessions(SessionFilter(parent_session_id="boss"))

    frame = children_frame(family, "boss", children)

    by_name = {child.session_id: frame.iloc[index] for index, child in enumerate(children)}
    assert by_name["helper-1"]["result"] == 420
    assert by_name["helper-1"]["delegated"] == "session?session=boss&turn=23"
    assert by_name["helper-1"]["returned"] == "session?session=boss&turn=23"
    assert pd.isna(by_name["helper-2"]["returned"])
    assert str(by_name["helper-2"]["result"]) == "<NA>"


def test_parent_and_child_link_to_each_other(
    family: SqliteStore, open_page: Callable[..., Any], page_text: Callable[..., str]
) -> None:
    """The parent's page lists the children; a child's page links back."""
    parent = open_page("session", session="boss", tab="team")
    assert not parent.exception
    assert "2 sub-agents worked in separate windows" in page_text(parent)

    child = open_page("session", session="helper-1")
    assert not child.exception
    link = next(link for link in child.get("page_link") if "Sub-agent of" in link.label)
    assert link.label.endswith("delegated at turn 23")
    assert "turn=23" in link.proto.query_string
