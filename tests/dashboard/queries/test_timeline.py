"""The turns of a session as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.dashboard.timelines import TURN

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.queries.timeline import read_timeline, turns_frame


def test_an_unmeasured_turn_is_omitted(empty_store: SqliteStore, builders: Any) -> None:
    empty_store.append(builders.plain("open", start=0.0, turns=3, limit_tokens=9_000, end=False, open_turn=True))
    turns = read_timeline(empty_store, "open").turns

    assert len(empty_store.turns("open")) == 4
    assert list(turns["turn"]) == [1, 2, 3]
    assert list(turns["zone"]) == ["green"] * 3
    assert turns["used"].gt(0).all()


class TestTurns:
    @pytest.mark.parametrize(
        ("changes", "used"),
        [({}, 800), ({"used_final": None}, 700), ({"used_final": None, "used_after": None}, 900)],
        ids=["final", "reduced", "before"],
    )
    def test_the_size_of_a_turn_is_the_last_measured(self, changes: dict[str, Any], used: int) -> None:
        assert turns_frame([replace(TURN, **changes)])["used"].tolist() == [used]

    def test_fresh_input_excludes_the_cache(self) -> None:
        assert turns_frame([TURN])["fresh_tokens"].tolist() == [200]

    def test_calls_without_usage_count_as_sent_only_where_none_has_it(self) -> None:
        estimate = replace(TURN, turn=2, used_final=300, input_tokens=None)
        open_turn = replace(TURN, turn=3, used_final=None, input_tokens=None)

        assert turns_frame([TURN, estimate, open_turn])["sent"].sum() == 800
        assert turns_frame([estimate, open_turn])["sent"].sum() == 300
