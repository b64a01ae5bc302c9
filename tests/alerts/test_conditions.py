"""The quantities that conditions judge, at the edges of their spans."""

from __future__ import annotations

import pytest

from windowpane.alerts.conditions import SignalHistory
from windowpane.alerts.rules import CHURN_TURNS
from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    ContentRegretted,
    ZoneChanged,
)
from windowpane.core.limits import REGRET_TURNS


def compressed(before: int, after: int) -> ContentCompressed:
    return ContentCompressed("truncation", "threshold", "accepted", before, after)


def evicted(tokens: int) -> BlocksEvicted:
    return BlocksEvicted("hybrid", (), tokens, tokens)


@pytest.mark.parametrize(("later", "counted"), [(CHURN_TURNS - 1, 1), (CHURN_TURNS, 0)])
def test_churn_is_of_the_last_ten_turns(later: int, counted: int) -> None:
    history = SignalHistory()
    history.record(evicted(100), 5)
    history.record(compressed(100, 10), 5)
    history.record(ZoneChanged("green", "yellow", 5_000, 0.5), 5)

    assert (history.reductions(5 + later), history.zone_changes(5 + later)) == (counted, counted)


@pytest.mark.parametrize(("later", "ratio"), [(REGRET_TURNS - 1, 0.25), (REGRET_TURNS, 0.0)])
def test_regret_looks_back_twenty_turns(later: int, ratio: float) -> None:
    history = SignalHistory()
    history.record(evicted(400), 5)
    history.record(ContentRegretted("eviction", "same_call", "b1", "b9", 100, 5, "id"), 7)

    assert history.regret_ratio(5 + later) == ratio


def test_the_compression_ratio_is_of_all_tokens_together() -> None:
    history = SignalHistory()
    for before, after in ((10, 10), (100, 1), (9_000, 6_000), (900, 399)):
        history.record(compressed(before, after), 5)

    assert history.compression_ratio == 10_000 / 6_400
