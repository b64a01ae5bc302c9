"""The window at one turn: blocks, removed blocks and those that were needed again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from windowpane.report.calls import new_input_dollars
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.window import (
    regretted_blocks,
    removed_blocks,
    window_frame,
)
from windowpane_dashboard.sections.regrets import regrets_summary
from windowpane_dashboard.sections.window import nothing_removed


def test_removed_blocks_have_their_reason_and_when_they_were_needed_again(small_store: SqliteStore) -> None:
    removed = removed_blocks(small_store, "refactor-api", 21)
    evicted = removed[removed["removed"] == 17]

    assert set(evicted["why"]) == {"older than 8 turns, never referenced"}
    assert set(removed["why"]) == {"older than 8 turns, never referenced", "compaction"}
    assert list(evicted["needed again"].dropna()) == [20]


def test_removed_blocks_name_their_replacement(small_store: SqliteStore) -> None:
    window = window_frame(small_store.blocks_at("refactor-api", 21))

    removed = removed_blocks(small_store, "refactor-api", 21, window).set_index("removed")

    assert removed.loc[17, "why"].str.endswith(", replaced by placeholder of read").all()
    assert set(removed.loc[14, "why"]) == {"compaction, replaced by summary"}


def test_an_empty_list_of_removed_blocks_is_explained(small_store: SqliteStore) -> None:
    marks = read_timeline(small_store, "refactor-api").marks

    assert nothing_removed(marks, 3) == "Nothing had been removed from the window."
    assert "not in the recording" in nothing_removed(marks, 18)


def test_a_regret_names_its_file(small_store: SqliteStore) -> None:
    (removed,) = small_store.removed_blocks("refactor-api", 99, regretted=True)
    blocks = [replace(removed, target="src/app.py")]
    reader: Any = SimpleNamespace(removed_blocks=lambda *_, **__: blocks, turns=small_store.turns)

    frame = regretted_blocks(reader, "refactor-api", 98)

    assert list(frame["what"]) == ["read src/app.py"]


def test_a_regret_names_its_cause_and_its_cost(small_store: SqliteStore) -> None:
    frame = regretted_blocks(small_store, "refactor-api", 98)

    row = frame.iloc[0]
    assert (row["what"], row["removed"], row["again"]) == ("read", 17, 20)
    assert row["why"] == "older than 8 turns, never referenced"
    (call,) = small_store.turns("refactor-api", first=20, last=20)
    assert row["dollars"] == pytest.approx(new_input_dollars(call, 1_100))
    assert "1,100 tokens paid again, about $" in regrets_summary(frame)
