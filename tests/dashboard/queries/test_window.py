"""The window at one turn: blocks, scores, removed blocks, regrets and sub-agents."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.window import (
    last_eviction,
    regretted_blocks,
    removed_blocks,
    window_at,
    window_frame,
)
from windowpane_dashboard.sections.block_strip import window_strip
from windowpane_dashboard.sections.regrets import regrets_summary
from windowpane_dashboard.sections.window import nothing_removed
from windowpane_dashboard.style.theme import LIGHT


@pytest.mark.parametrize(("turn", "evicted_turn"), [(16, None), (18, 17), (21, 17)])
def test_blocks_have_the_score_of_the_last_eviction(
    small_store: SqliteStore, turn: int, evicted_turn: int | None
) -> None:
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
    removed = removed_blocks(small_store, "refactor-api", 21)
    evicted = removed[removed["why"].str.startswith("evicted")]

    assert set(evicted["why"]) == {"evicted: older than 8 turns, never referenced"}
    assert set(evicted["score"]) == {0.12}
    assert evicted["needed again"].str.startswith("turn ").sum() == 1


def test_removed_blocks_name_their_replacement(small_store: SqliteStore) -> None:
    window = window_at(small_store, "refactor-api", 21)

    removed = removed_blocks(small_store, "refactor-api", 21, window).set_index("removed")

    assert set(removed.loc[17, "replaced by"]) == {"placeholder, 20 tokens"}
    assert set(removed.loc[14, "replaced by"]) == {"summary, 640 tokens"}


def test_an_empty_list_of_removed_blocks_is_explained(small_store: SqliteStore) -> None:
    marks = read_timeline(small_store, "refactor-api").marks

    assert nothing_removed(marks, 3) == "Nothing had been removed from the window."
    assert "not in the recording" in nothing_removed(marks, 18)


def test_a_later_use_is_marked_as_later(small_store: SqliteStore) -> None:
    block = replace(small_store.blocks_at("refactor-api", 9)[0], last_referenced=12)

    labels = {turn: window_frame([block], turn)["last used"].iloc[0] for turn in (9, 12, 20)}

    assert labels == {9: "later: 12", 12: "turn 12", 20: "turn 12"}


def test_a_regret_names_its_file(small_store: SqliteStore) -> None:
    (removed,) = small_store.removed_blocks("refactor-api", 99, regretted=True)
    reader: Any = SimpleNamespace(removed_blocks=lambda *_, **__: [replace(removed, target="src/app.py")])

    frame = regretted_blocks(reader, "refactor-api", read_timeline(small_store, "refactor-api").turns)

    assert list(frame["target"]) == ["src/app.py"]


def test_a_regret_names_its_cause_and_its_cost(small_store: SqliteStore) -> None:
    turns = read_timeline(small_store, "refactor-api").turns

    frame = regretted_blocks(small_store, "refactor-api", turns)

    row = frame.iloc[0]
    assert (row["what"], row["removed"], row["again"]) == ("tool result of read", 17, 20)
    assert row["why"] == "evicted: older than 8 turns, never referenced"
    call = turns[turns["turn"] == 20].iloc[0]
    assert row["dollars"] == pytest.approx(1_100 * call["cost_dollars"] / call["input_tokens"])
    assert "1,100 tokens paid again, about $" in regrets_summary(frame)
