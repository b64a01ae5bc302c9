"""The charts of cost, cache and facts agree with the data."""

from __future__ import annotations

import numpy as np
import pytest

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.charts.costs import cache_chart, cost_chart
from windowpane_dashboard.charts.facts import facts_bar
from windowpane_dashboard.queries.timeline import Timeline, read_timeline
from windowpane_dashboard.style.theme import LIGHT


@pytest.fixture
def rich(small_store: SqliteStore) -> Timeline:
    """The session in which everything happens."""
    return read_timeline(small_store, "refactor-api")


def test_without_usage_cost_and_cache_are_not_drawn(rich: Timeline) -> None:
    silent = rich.turns.assign(input_tokens=np.nan, cost_dollars=np.nan)

    assert cache_chart(silent, LIGHT) is None
    assert cost_chart(silent, LIGHT) is None
    cache = cache_chart(rich.turns, LIGHT)
    assert cache is not None
    parts = [trace for trace in cache.data if trace.name]
    assert np.allclose(sum(np.asarray(trace.y) for trace in parts), rich.turns["input_tokens"])


def test_facts_are_counted_in_the_legend() -> None:
    figure = facts_bar({"kept": 6, "recoverable": 0, "lost": 3, "contradicted": 1}, LIGHT)

    assert [trace.name for trace in figure.data] == ["kept 6", "lost 3", "contradicted 1"]
