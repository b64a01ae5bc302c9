"""Figures against their data: nothing hidden, nothing invented, nothing interpreted as markup."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from windowpane.store.records import AlertRow
from windowpane.store.sqlite import SqliteStore
from windowpane.text.labels import COMPONENT_LABELS
from windowpane_dashboard.charts.costs import cache_chart, cost_chart
from windowpane_dashboard.charts.downsample import MAXIMUM_POINTS, downsampled_rows
from windowpane_dashboard.charts.facts import facts_bar
from windowpane_dashboard.charts.layout import CONFIG, escape_label
from windowpane_dashboard.charts.window_chart import STACKING, natural_scale, window_chart
from windowpane_dashboard.queries.compressions import facts_frame, read_compressions, sides
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import Fleet, firing_now, firing_text, fleet_frame, read_fleet
from windowpane_dashboard.queries.timeline import Timeline, read_timeline, turns_frame
from windowpane_dashboard.queries.window import removed_blocks, window_at, window_frame
from windowpane_dashboard.sections.block_strip import MAXIMUM_BLOCKS, segments, ticks, window_strip
from windowpane_dashboard.sections.window import last_eviction
from windowpane_dashboard.style.theme import DARK, LIGHT, Palette


@pytest.fixture
def rich(small_store: SqliteStore) -> Timeline:
    """The session in which everything happens."""
    return read_timeline(small_store, "refactor-api")


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 3_000), st.integers(1, 4)),
        elements=st.floats(-1e9, 1e9) | st.just(np.nan),
        fill=st.floats(0, 10),
    ),
    st.integers(12, 400),
)
def test_reduction_never_hides_a_spike(series: np.ndarray, limit: int) -> None:
    """Whatever is left out, every column keeps its extremes, both ends stay, and the order holds."""
    kept = downsampled_rows(series, limit)

    assert len(kept) <= max(limit, len(series) if len(series) <= limit else 0)
    assert (np.diff(kept) > 0).all()
    assert {0, len(series) - 1} <= set(kept.tolist())
    for column in range(series.shape[1]):
        whole, reduced = series[:, column], series[kept, column]
        if not np.isnan(whole).all():
            assert np.nanmax(reduced) == np.nanmax(whole)
            assert np.nanmin(reduced) == np.nanmin(whole)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_picture_stacks_to_what_was_used(rich: Timeline, palette: Palette) -> None:
    """At every turn the stacked components sum to the used tokens, in the colours of the palette."""
    figure = window_chart(rich.turns, rich.spans, rich.marks, palette, selected=5)
    stacked = [trace for trace in figure.data if trace.stackgroup == "window"]

    assert np.allclose(sum(np.asarray(trace.y) for trace in stacked), rich.turns["used"])
    assert {trace.name for trace in stacked} <= set(COMPONENT_LABELS.values())
    assert {trace.line.color for trace in stacked} <= set(palette.components.values())
    assert not any(trace.type == "scattergl" for trace in figure.data)


def test_the_picture_marks_every_event_with_its_letter(rich: Timeline) -> None:
    """All seven kinds happened, each has a row, and a mark stands at the turn it happened in."""
    figure = window_chart(rich.turns, rich.spans, rich.marks, LIGHT, selected=5)
    lane = [trace for trace in figure.data if trace.yaxis == "y2"]

    assert [trace.text[0] for trace in lane] == list("ECSKWRA")
    for trace in lane:
        turns = rich.marks.loc[rich.marks["letter"] == trace.text[0], "turn"]
        assert sorted(trace.x) == sorted(turns)


def test_the_picture_shows_limit_zones_and_reserve(rich: Timeline) -> None:
    """Four bands, the limit and red lines, the hatched reserve, and names beside them."""
    figure = window_chart(rich.turns, rich.spans, rich.marks, LIGHT, selected=5)
    heights = {trace.name: trace.y[0] for trace in figure.data if trace.name in ("limit", "red")}
    limits = rich.spans[-1].limits
    assert limits is not None

    assert heights == {"limit": 20_000, "red": limits.at(limits.thresholds.red)}
    bands = [shape for shape in figure.layout.shapes if (shape.name or "").startswith("zone ")]
    assert [shape.name for shape in bands] == ["zone yellow", "zone orange", "zone red", "zone overflow"]
    assert any(trace.fillpattern.shape == "/" for trace in figure.data if trace.fill == "toself")
    assert any("limit 20k" in note.text for note in figure.layout.annotations)


def test_an_unknown_limit_draws_no_zone(small_store: SqliteStore) -> None:
    """Tokens are drawn, limit and zones are not."""
    timeline = read_timeline(small_store, "unknown-limit")
    figure = window_chart(timeline.turns, timeline.spans, timeline.marks, LIGHT, selected=6)

    assert [shape for shape in figure.layout.shapes if (shape.name or "").startswith("zone")] == []
    assert not any(trace.name in ("limit", "red", "forecast") for trace in figure.data)
    assert sum(trace.stackgroup == "window" for trace in figure.data) > 0


def test_the_forecast_fan_ends_at_red(rich: Timeline) -> None:
    """The fan opens at the last turn's size and never goes above red."""
    figure = window_chart(rich.turns, rich.spans, rich.marks, LIGHT, selected=5)
    fan = next(trace for trace in figure.data if trace.name == "forecast, 10–90%")
    last = rich.turns.iloc[-1]

    assert (fan.x[0], fan.y[0]) == (last["turn"], last["used"])
    assert max(fan.y) <= last["red_tokens"]
    assert max(fan.x) > last["turn"]


def test_a_long_session_is_drawn_with_few_points() -> None:
    """Ten thousand turns give at most 2,000 points a trace, and the spike among them is kept."""
    turns = _synthetic_turns(10_000)
    turns.loc[4_321, ["used", "tool_results"]] = 99_000.0
    marks = pd.DataFrame({"letter": [], "turn": [], "number": [], "text": [], "severity": []})

    figure = window_chart(turns, (), marks, LIGHT, selected=1)

    assert max(len(trace.x) for trace in figure.data) <= MAXIMUM_POINTS
    results = next(trace for trace in figure.data if trace.name == "tool results")
    assert max(results.y) == 99_000.0


def _synthetic_turns(number: int) -> pd.DataFrame:
    turns = turns_frame([])
    turns = turns.reindex(range(number))
    turns["turn"] = np.arange(1, number + 1)
    turns["used"] = turns["tool_results"] = np.linspace(100, 900, number)
    return turns.fillna(dict.fromkeys(STACKING, 0.0) | {"added_tokens": 0.0})


def test_a_saw_keeps_its_teeth() -> None:
    """Extremes that fall on the same turns leave room for more of them: every tooth of 160 is drawn."""
    turns = _synthetic_turns(10_000)
    turns["used"] = turns["tool_results"] = 1_000.0 + 1_000 * (np.arange(10_000) % 60)
    marks = pd.DataFrame({"letter": [], "turn": [], "number": [], "text": [], "severity": []})

    figure = window_chart(turns, (), marks, LIGHT, selected=None)

    results = next(trace for trace in figure.data if trace.name == "tool results")
    assert (np.asarray(results.y) == 60_000).sum() == 10_000 // 60
    assert len(results.y) <= MAXIMUM_POINTS


def test_a_small_session_is_drawn_at_its_own_scale(small_store: SqliteStore) -> None:
    """A window that is almost empty would be a flat line at the limit's scale."""
    assert natural_scale(read_timeline(small_store, "short").turns) == "content"
    assert natural_scale(read_timeline(small_store, "refactor-api").turns) == "limit"


@pytest.mark.parametrize(("first", "last", "top"), [(400, 200, 208), (200, 400, 416), (np.nan, 200, 208)])
def test_a_few_turns_of_another_window_do_not_press_down_the_rest(first: float, last: float, top: float) -> None:
    """There is room for the limit of most turns and for the one that holds now."""
    turns = _synthetic_turns(100)
    turns["used"] = turns["tool_results"] = turns["used_before"] = np.linspace(1, 150, 100)
    turns["limit_tokens"] = [first, *[200.0] * 98, last]
    marks = pd.DataFrame({"letter": [], "turn": [], "number": [], "text": [], "severity": []})

    figure = window_chart(turns, (), marks, LIGHT, selected=None)

    assert natural_scale(turns) == "limit"
    assert figure.layout.yaxis.range[1] == pytest.approx(top)


def test_the_strip_shows_every_token_of_the_window_in_order(small_store: SqliteStore) -> None:
    """Segments follow one another without gap and sum to the blocks' tokens."""
    blocks = window_at(small_store, "refactor-api", 12)
    strip = window_strip(blocks, LIGHT, limit_tokens=20_000)

    assert sum(strip.sizes) == blocks["tokens"].sum()
    assert strip.colors == [LIGHT.components[name] for name in blocks["component"]]
    assert strip.end == 20_000


@pytest.mark.parametrize(("turn", "evicted_turn"), [(16, None), (18, 17), (21, 17)])
def test_blocks_have_the_score_of_the_last_eviction(
    small_store: SqliteStore, turn: int, evicted_turn: int | None
) -> None:
    """What would have been next has one from the turn of that eviction on; what was never looked at has none."""
    marks = read_timeline(small_store, "refactor-api").marks

    last = last_eviction(marks, turn)
    blocks = window_at(small_store, "refactor-api", turn, evicted_turn=last)
    scored = blocks[blocks["score"].notna()]
    texts = window_strip(blocks, LIGHT, limit_tokens=20_000).texts

    assert last == evicted_turn
    assert set(scored["score"]) == ({0.64} if evicted_turn else set())
    assert sum("score 0.64" in text for text in texts) == len(scored)
    assert set(scored["what"]) <= {"tool result of read"}


@given(st.floats(1, 1e9))
def test_the_ticks_of_the_strip_are_few_round_and_within_it(end: float) -> None:
    """From 0 in even steps of 1, 2 or 5 times a power of ten."""
    places = ticks(end)

    assert 1 <= len(places) <= 10
    assert places[0] == 0
    assert max(places) <= end * 1.000_001
    if len(places) > 1:
        assert np.allclose(np.diff(places), places[1])
        assert f"{places[1]:e}"[0] in "125"


def test_a_crowded_strip_joins_small_neighbours() -> None:
    """Thousands of blocks become few segments that hold the same tokens in the same order."""
    number = 5_000
    blocks = pd.DataFrame(
        {
            "what": ["tool result"] * number, "tokens": np.tile([1, 3, 200, 4], number // 4), "from turn": 1,
            "age": 1, "last used": "–", "pinned": False, "preview": "", "replaces": "", "block": "b",
            "component": np.repeat(["tool_results", "message_history"], number // 2), "count": "exact",
            "score": pd.NA,
        }
    )  # fmt: skip

    found = segments(blocks)

    assert len(found) <= MAXIMUM_BLOCKS
    assert sum(segment.tokens for segment in found) == blocks["tokens"].sum()
    assert [segment.component for segment in found] == sorted(
        [segment.component for segment in found], reverse=True
    )


def test_cost_and_cache_say_nothing_where_nothing_was_reported(rich: Timeline) -> None:
    """Missing usage and prices give no figure instead of zeros; known ones add up."""
    silent = rich.turns.assign(input_tokens=np.nan, cost_dollars=np.nan)

    assert cache_chart(silent, LIGHT) is None
    assert cost_chart(silent, LIGHT) is None
    cache = cache_chart(rich.turns, LIGHT)
    assert cache is not None
    parts = [trace for trace in cache.data if trace.name]
    assert np.allclose(sum(np.asarray(trace.y) for trace in parts), rich.turns["input_tokens"])


def test_facts_are_named_with_their_numbers() -> None:
    """Outcomes that occurred are in the legend with their count; the others are left out."""
    figure = facts_bar({"kept": 6, "recoverable": 0, "lost": 3, "contradicted": 1}, LIGHT)

    assert [trace.name for trace in figure.data] == ["kept 6", "lost 3", "contradicted 1"]


def test_agent_text_in_a_hover_box_is_not_markup() -> None:
    """Plotly's pseudo-HTML is escaped and nothing is sent to a cloud."""
    assert escape_label("<a href='javascript:x'>x</a> & <b>") == (
        "&lt;a href=&#x27;javascript:x&#x27;&gt;x&lt;/a&gt; &amp; &lt;b&gt;"
    )
    assert CONFIG["showSendToCloud"] is False
    assert CONFIG["displaylogo"] is False


def test_departures_carry_reason_score_and_return(small_store: SqliteStore) -> None:
    """What a policy evicted shows its words and score, and the turn it was needed again in."""
    left = removed_blocks(small_store, "refactor-api", 21)
    evicted = left[left["why"].str.startswith("evicted")]

    assert set(evicted["why"]) == {"evicted: older than 8 turns, never referenced"}
    assert set(evicted["score"]) == {0.12}
    assert evicted["needed again"].str.startswith("turn ").sum() == 1


def test_what_left_names_what_stands_for_it(small_store: SqliteStore) -> None:
    """A placeholder or a summary is named with its tokens, whether it is still in the window or has left too."""
    window = window_at(small_store, "refactor-api", 21)

    left = removed_blocks(small_store, "refactor-api", 21, window).set_index("removed")

    assert set(left.loc[17, "replaced by"]) == {"placeholder, 20 tokens"}
    assert set(left.loc[14, "replaced by"]) == {"summary, 640 tokens"}


def test_a_use_that_is_still_to_come_is_not_told_as_past(small_store: SqliteStore) -> None:
    """Seen from a turn before its last use, a block says that it is used later."""
    block = replace(small_store.blocks_at("refactor-api", 9)[0], last_referenced=12)

    words = {turn: window_frame([block], turn)["last used"].iloc[0] for turn in (9, 12, 20)}

    assert words == {9: "later: 12", 12: "turn 12", 20: "turn 12"}


def test_a_compression_is_paired_with_its_evaluation(small_store: SqliteStore) -> None:
    """Both sides have their blocks, and the facts come worst first without a text that was not captured."""
    found = read_compressions(small_store, "refactor-api")
    assert len(found) == 1
    before, after = sides(small_store, "refactor-api", found[0])
    fidelity = found[0].fidelity
    assert fidelity is not None

    facts = facts_frame(small_store, fidelity)
    assert len(before.blocks) == len(found[0].data.removed)
    assert [block.content_type for block in after.blocks] == ["summary"]
    assert not before.captured
    assert list(facts["outcome"])[:3] == ["lost"] * 3
    assert facts["text"].isna().all()


def test_a_turn_that_was_not_measured_is_not_drawn_as_empty(empty_store: SqliteStore, builders: Any) -> None:
    """An open last turn without a measurement leaves the picture at the turn before."""
    empty_store.append(builders.plain("open", start=0.0, turns=3, limit_tokens=9_000, end=False, open_turn=True))
    turns = read_timeline(empty_store, "open").turns

    assert len(empty_store.turns("open")) == 4
    assert list(turns["turn"]) == [1, 2, 3]
    assert list(turns["zone"]) == ["green"] * 3
    assert turns["used"].gt(0).all()


def test_only_what_fires_now_colours_a_session() -> None:
    """A resolved critical alert does not make a session critical while a warning fires."""
    plain = AlertRow("s", "a", "x", "warning", 3, 4, None, None, None, 1.0, 1.0, "")
    resolved = replace(plain, severity="critical", resolved_turn=9)

    assert firing_now([plain, resolved]) == {"s": {"warning": 1}}
    assert firing_now([resolved]) == {}
    both = firing_now([plain, plain, replace(resolved, resolved_turn=None)])
    assert Fleet((), more=False, fired=both).firing == {"s": "critical"}


def test_a_session_tells_its_worst_alerts_apart_from_the_others() -> None:
    """The number stands with the severity it counts, what is less severe follows, and nothing is said of none."""
    assert firing_text(2, Counter(warning=2)) == "2 warning"
    assert firing_text(3, Counter(critical=1, warning=1, info=1)) == "1 critical +2"
    assert firing_text(2, None) == "2 firing"
    assert firing_text(0, None) == ""


def test_the_fleet_table_knows_live_from_recorded(small_store: SqliteStore) -> None:
    """A forecast is given for live sessions only, and unknown figures stay empty."""
    listed = read_fleet(small_store, FleetFilters())
    frame = fleet_frame(listed, time.time()).set_index("agent")

    assert frame.loc["reviewer", "red in"] not in ("not live", "–")
    assert set(frame.loc["writer", "red in"]) == {"not live"}
    assert frame.loc["writer", "now"].isna().sum() == 1
