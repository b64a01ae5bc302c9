"""Chart, strip and table of a turn have one scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from windowpane.core.vocabulary import COMPONENTS
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.tool_use import fill_frame
from windowpane_dashboard.queries.window import at_measured_scale, read_turn_window, window_frame
from windowpane_dashboard.sections.block_strip import window_strip
from windowpane_dashboard.style.theme import LIGHT


@pytest.mark.parametrize("session", ["refactor-api", "unknown-limit", "short"])
def test_the_blocks_of_each_turn_sum_to_the_chart(small_store: SqliteStore, session: str) -> None:
    timeline = read_timeline(small_store, session)

    for _, values in timeline.turns.iterrows():
        window = read_turn_window(small_store, session, timeline, int(values["turn"]))

        by_component = window.blocks.groupby("component")["tokens"].sum()
        assert by_component.to_dict() == {name: values[name] for name in COMPONENTS if values[name]}
        assert sum(window_strip(window.blocks, LIGHT, limit_tokens=None).sizes) == round(values["used"])
        fill = fill_frame(window.blocks, small_store.blocks_at(session, window.turn))
        assert fill["tokens"].sum() == round(values["used"])


def test_scaled_blocks_and_missing_ones_are_estimates(small_store: SqliteStore) -> None:
    """Blocks that were counted as they are shown keep their source, and the order is that of the window."""
    blocks = window_frame(small_store.blocks_at("refactor-api", 5))
    counted = {name: int(blocks.loc[blocks["component"] == name, "tokens"].sum()) for name in COMPONENTS}
    measured = {**counted, "tool_results": 413, "unattributed": 16_008, "turn": 5}

    scaled = at_measured_scale(blocks, pd.Series(measured))

    assert scaled["tokens"].sum() == sum(measured[name] for name in COMPONENTS)
    assert list(scaled["block"])[1:] == list(blocks["block"])
    assert scaled.loc[0, "what"] == "not in the recording"
    of_results = scaled["component"] == "tool_results"
    assert set(scaled.loc[of_results, "count"]) == {"estimate"}
    fill = fill_frame(scaled, small_store.blocks_at("refactor-api", 5))
    assert fill.groupby("tool")["tokens"].sum()["read"] == 413
    assert fill.loc[0, ["tool", "tokens", "block"]].tolist() == ["not in the recording", 16_008, ""]
    kept = scaled[scaled["component"] == "message_history"]
    assert list(kept["count"]) == list(blocks.loc[blocks["component"] == "message_history", "count"])


def test_the_table_marks_estimates(small_store: SqliteStore, open_page: Callable[..., Any]) -> None:
    app = open_page("session", session="refactor-api")

    table = next(one.value for one in app.dataframe if "from turn" in one.value)
    assert "≈ tokens" in table
