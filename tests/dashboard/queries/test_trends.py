"""Trends as lines, the parts of a window, and the recorded sessions beside their replays."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pandas as pd
import pytest

from windowpane.store.records import BlockRow, SessionRow, TrendRow
from windowpane_dashboard.charts.trends import trend_chart
from windowpane_dashboard.queries.filters import TrendAddress
from windowpane_dashboard.queries.tool_use import TOP, fill_frame, top_frame
from windowpane_dashboard.queries.trends import (
    MAXIMUM_LINES,
    MEASURES,
    OTHERS,
    chosen_lines,
    comparable_lines,
    compared,
    compared_lines,
    trends,
)
from windowpane_dashboard.queries.window import window_frame
from windowpane_dashboard.style.theme import DARK, LIGHT


def row(day: int, **values: Any) -> TrendRow:
    known = {"day": day, "agent": "a", "model": "m", "release": "1", "sessions": 3, "calls": 10}
    return TrendRow(**{**dict.fromkeys((field.name for field in fields(TrendRow)), 0), **known, **values})


def block(number: int, **values: Any) -> BlockRow:
    known = {"block_id": f"b{number}", "content_type": "tool_result", "tool_name": "read"}
    known |= {"tokens": 100, "turn_added": 1}
    return BlockRow(**{**dict.fromkeys(field.name for field in fields(BlockRow)), **known, **values})


def filled(blocks: list[BlockRow]) -> pd.DataFrame:
    """The frame of a window that holds these blocks as they were counted."""
    return fill_frame(window_frame(blocks), blocks)


def test_a_week_starts_on_monday_and_sums_its_days() -> None:
    rows = [row(20_000 + day, cost_dollars=1.0, peaks=day + 1, peak_sum=0.5 * (day + 1)) for day in range(7)]
    ranged = trends(rows, TrendAddress(days="90"))

    assert ranged.frame["cost"].sum() == pytest.approx(7.0)
    assert set(ranged.frame["period"].dt.day_of_week) == {0}
    assert ranged.frame["peak"].tolist() == pytest.approx([0.5] * len(ranged.frame))


def test_one_day_is_drawn_with_days_around_it() -> None:
    """An axis of a millisecond would be labelled with times of day."""
    figure = trend_chart(trends([row(20_000, cost_dollars=1.0)], TrendAddress()), MEASURES[0], LIGHT)

    assert figure is not None
    first, last = figure.layout.xaxis.range
    assert (last - first).days == 4
    assert figure.layout.xaxis.dtick == 24 * 3_600_000


def test_lines_beyond_the_sixth_are_summed() -> None:
    rows = [row(20_000, agent=f"agent {number}", calls=number + 1) for number in range(9)]
    ranged = trends(rows, TrendAddress())

    assert len(ranged.frame) == MAXIMUM_LINES + 1
    assert ranged.frame.set_index("line")["calls"][OTHERS] == 1 + 2 + 3
    assert ranged.totals["calls"] == 45


def test_an_empty_range_is_empty() -> None:
    assert trends([], TrendAddress()).frame.empty


def test_a_release_is_marked_where_it_came_in() -> None:
    """The first release of an agent may be older than the range."""
    rows = [row(20_000, release="1"), row(20_000, agent="b", release="7"), row(20_001, release="1")]
    rows += [row(20_002, release="2", cost_dollars=1.0), row(20_002, agent="b", release="8")]
    ranged = trends(rows, TrendAddress())
    figure = trend_chart(ranged, MEASURES[0], LIGHT)

    assert list(ranged.releases.values()) == [["a 2", "b 8"]]
    assert figure is not None
    assert figure.data[-1].hovertext == ("2024-10-06, new: a 2, b 8",)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_names_in_charts_are_escaped(palette: Any) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    ranged = trends([row(20_000, agent=hostile, cost_dollars=1.0)], TrendAddress())
    figure = trend_chart(ranged, MEASURES[0], palette)

    assert figure is not None
    assert "<img" not in figure.to_json().replace("\\u003c", "<")


def test_the_parts_of_a_window_sum_to_it() -> None:
    blocks = [block(number, target=f"f{number}.py", tokens=10 + number) for number in range(15)]
    blocks.append(block(99, content_type="user_message", tool_name=None, tokens=500))
    fill = filled(blocks)
    top = top_frame(fill)
    total = sum(one.tokens for one in blocks)

    assert len(top) == TOP
    assert fill["tokens"].sum() == total
    assert list(top["share"]) == list(top["tokens"] / total)


def session(number: int, **values: Any) -> SessionRow:
    known = {"session_id": f"s{number}", "agent": "a", "started_at": float(number), "fidelity": None}
    return SessionRow(**{**dict.fromkeys((field.name for field in fields(SessionRow)), 0), **known, **values})


def test_the_newest_line_comes_first() -> None:
    rows = [session(number, agent_version=str(number % 3), label="") for number in range(29, -1, -1)]
    rows.append(session(40, agent_version="1", label="try"))

    lines = compared_lines(rows, "release")

    assert [(name, len(sides)) for name, sides in lines.items()] == [
        ("a try", 1),
        ("a 2", 10),
        ("a 1", 10),
        ("a 0", 10),
    ]


def test_releases_of_one_agent_are_compared_first() -> None:
    def release(name: str, first: int, *, agent: str = "codex") -> list[SessionRow]:
        return [session(first - number, agent=agent, agent_version=name) for number in range(10)]

    rows = release("9", 90) + release("2", 80, agent="claude-code") + release("8", 70)
    position = TrendAddress()
    lines = comparable_lines(rows, position)[0]

    assert chosen_lines(lines, position) == ("codex 9", "codex 8")
    assert chosen_lines(lines, replace(position, one="claude-code 2")) == ("claude-code 2", "codex 9")
    assert chosen_lines(lines, replace(position, other="claude-code 2")) == ("codex 9", "claude-code 2")


def test_a_difference_is_stated_only_where_chance_is_unlikely() -> None:
    """Two of ten sessions with one compaction, and nineteen of a hundred, were called worse by 5%."""
    one = [session(number, compressions=int(number < 2), cost_dollars=number + 20.0) for number in range(10)]
    other = [session(number, compressions=int(number < 19), cost_dollars=number / 10) for number in range(100)]
    measures = {measure.name: measure for measure in MEASURES}

    assert compared(measures["compactions"], one, other) == (
        "no clear difference",
        "0 (0 to 0)",
        "0 (0 to 0)",
    )
    assert compared(measures["cost"], one, other) == (
        "worse",
        "$24.50 ($22.25 to $26.75)",
        "$4.95 ($2.48 to $7.43)",
    )
    assert compared(measures["cost"], other, one)[0] == "better"


def test_more_facts_kept_are_better_and_unknown_ones_do_not_count() -> None:
    one = [session(number, fidelity=0.9 + number / 1_000) for number in range(10)]
    other = [session(number, fidelity=0.5 if number < 15 else None) for number in range(20)]
    few = [session(number, fidelity=0.5 if number < 9 else None) for number in range(20)]
    measure = next(measure for measure in MEASURES if measure.more_is_better)

    assert compared(measure, one, other) == ("better", "90% (90% to 91%)", "50% (50% to 50%) (n = 15)")
    assert compared(measure, one, few) == ("too few known", "90% (90% to 91%)", "–")
