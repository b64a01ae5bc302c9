"""The charts of cost, cache, resent content and facts agree with the data."""

from __future__ import annotations

import numpy as np
import pytest

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.charts.costs import cache_chart, cost_chart, resent_chart
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


def test_stale_and_duplicate_tokens_add_up(small_store: SqliteStore) -> None:
    turns = read_timeline(small_store, "refactor-api").turns.copy()
    turns["stale_tokens"], turns["duplicate_tokens"] = turns["used"] * 0.2, turns["used"] * 0.05

    figure = resent_chart(turns, LIGHT)

    assert figure is not None
    bars = [np.array(trace.y) for trace in figure.data if trace.type == "bar"]
    assert np.allclose(sum(bars), turns["used"])


def test_without_stale_or_duplicate_tokens_nothing_is_drawn(small_store: SqliteStore) -> None:
    turns = read_timeline(small_store, "refactor-api").turns.assign(stale_tokens=0.0, duplicate_tokens=0.0)

    assert resent_chart(turns, LIGHT) is None
