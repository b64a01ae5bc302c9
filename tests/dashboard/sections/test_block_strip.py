"""The strip of the window: every block in order, joined where there are too many."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.queries.window import window_frame
from windowpane_dashboard.sections.block_strip import MAXIMUM_BLOCKS, segments, ticks, window_strip
from windowpane_dashboard.style.theme import LIGHT


def test_the_strip_shows_every_token_of_the_window_in_order(small_store: SqliteStore) -> None:
    blocks = window_frame(small_store.blocks_at("refactor-api", 12))
    strip = window_strip(blocks, LIGHT, limit_tokens=20_000)

    assert sum(strip.sizes) == blocks["tokens"].sum()
    assert strip.colors == [LIGHT.components[name] for name in blocks["component"]]
    assert strip.end == 20_000


@given(st.floats(1, 1e9))
def test_ticks_are_few_round_and_within_the_strip(end: float) -> None:
    positions = ticks(end)

    assert 1 <= len(positions) <= 10
    assert positions[0] == 0
    assert max(positions) <= end * 1.000_001
    if len(positions) > 1:
        assert np.allclose(np.diff(positions), positions[1])
        assert f"{positions[1]:e}"[0] in "125"


def test_small_neighbors_are_joined() -> None:
    number = 5_000
    blocks = pd.DataFrame(
        {
            "what": ["tool result"] * number, "tokens": np.tile([1, 3, 200, 4], number // 4), "from turn": 1,
            "pinned": False, "preview": "", "block": "b",
            "component": np.repeat(["tool_results", "message_history"], number // 2), "count": "exact",
        }
    )  # fmt: skip

    result = segments(blocks)

    assert len(result) <= MAXIMUM_BLOCKS
    assert sum(segment.tokens for segment in result) == blocks["tokens"].sum()
    assert [segment.component for segment in result] == sorted(
        [segment.component for segment in result], reverse=True
    )
