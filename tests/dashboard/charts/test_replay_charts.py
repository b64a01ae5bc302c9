"""The timelines of a replay, one above the other."""

from __future__ import annotations

import pytest

from windowpane.store.replays import ReplayRunRow
from windowpane_dashboard.charts.replays import MAXIMUM_PANES, replay_panes
from windowpane_dashboard.style.theme import LIGHT


@pytest.mark.parametrize("setups", range(1, MAXIMUM_PANES + 2))
def test_every_number_of_setups_has_its_panes(setups: int) -> None:
    runs = [
        ReplayRunRow("s", f"setup {number}", "managed", "", "", 8_192, {"turns": 3}, "", (3_000, 9_000, 4_000))
        for number in range(setups)
    ]

    layout = replay_panes(runs, LIGHT).layout.to_plotly_json()

    panes = min(setups, MAXIMUM_PANES)
    domains = [layout[f"yaxis{'' if at == 0 else at + 1}"]["domain"] for at in range(panes)]
    edges = [edge for low, high in reversed(domains) for edge in (low, high)]
    assert edges == sorted(edges)
    assert edges[0] == 0
    assert edges[-1] <= 1
