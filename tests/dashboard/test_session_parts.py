"""Regrets with their cause and cost, what was paid again, sub-agents, the line through the selected turn."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from windowpane.core.events import SubagentDelegated, SubagentReturned
from windowpane.core.vocabulary import Severity, Zone
from windowpane.store.interface import SessionFilter
from windowpane.store.records import SessionRow
from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.charts.costs import resent_chart
from windowpane_dashboard.charts.window_chart import window_chart
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import fleet_frame, read_fleet
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.window import children_frame, regretted_blocks
from windowpane_dashboard.sections.cost import resent_summary
from windowpane_dashboard.sections.fleet_table import fleet_styled
from windowpane_dashboard.sections.regrets import regrets_summary
from windowpane_dashboard.style.theme import LIGHT


def test_a_regret_names_its_cause_and_its_cost(small_store: SqliteStore) -> None:
    """What came back, when and why it had left, how many tokens that took and its share of the call's cost."""
    turns = read_timeline(small_store, "refactor-api").turns

    frame = regretted_blocks(small_store, "refactor-api", turns)

    row = frame.iloc[0]
    assert (row["what"], row["removed"], row["again"]) == ("tool result of read", 17, 20)
    assert row["why"] == "evicted: older than 8 turns, never referenced"
    call = turns[turns["turn"] == 20].iloc[0]
    assert row["dollars"] == pytest.approx(1_100 * call["cost_dollars"] / call["input_tokens"])
    assert "1,100 tokens paid again, about $" in regrets_summary(frame)


def test_a_thread_leads_from_the_regret_to_the_eviction(small_store: SqliteStore) -> None:
    """From the turn it left to the turn it came back, between the rows of the lane."""
    drawn = read_timeline(small_store, "refactor-api")

    figure = window_chart(drawn.turns, drawn.spans, drawn.marks, LIGHT, selected=None, regrets=drawn.regrets)

    thread = next(trace for trace in figure.data if trace.name == "needed again")
    rows = dict(zip(figure.layout.yaxis2.ticktext, figure.layout.yaxis2.tickvals, strict=True))
    assert list(thread.x[:2]) == [17, 20]
    assert list(thread.y[:2]) == [rows["E evicted"], rows["R regret"]]


def test_what_was_paid_again_adds_up(small_store: SqliteStore) -> None:
    """Fresh, stale and duplicate stack to what each call sent; the sentence gives shares and about the cost."""
    turns = read_timeline(small_store, "refactor-api").turns.copy()
    turns["stale_tokens"], turns["duplicate_tokens"] = turns["used"] * 0.2, turns["used"] * 0.05

    figure = resent_chart(turns, LIGHT)

    assert figure is not None
    bars = [np.array(trace.y) for trace in figure.data if trace.type == "bar"]
    assert np.allclose(sum(bars), turns["used"])
    sentence = resent_summary(turns)
    assert "(20%) were stale" in sentence
    assert "(5%) duplicates" in sentence
    paid = 0.25 * turns["cost_dollars"].sum()
    assert f"${paid:.2f}" in sentence


def test_nothing_paid_again_draws_nothing(small_store: SqliteStore) -> None:
    """No figure, and a sentence that says so."""
    turns = read_timeline(small_store, "refactor-api").turns.assign(stale_tokens=0.0, duplicate_tokens=0.0)

    assert resent_chart(turns, LIGHT) is None
    assert resent_summary(turns) == "No call paid again for stale or duplicate content."


@pytest.fixture
def family(empty_store: SqliteStore, builders: Any) -> SqliteStore:
    """A session with two sub-agents, one of which came back."""
    now = time.time()
    parent = builders.rich(start=now - 800, session_id="boss")
    told = (SubagentDelegated("helper-1"), SubagentReturned("helper-1", 420), SubagentDelegated("helper-2"))
    empty_store.append([*parent, *(parent[-1]._replace(n=9_000 + n, data=data) for n, data in enumerate(told))])
    for name in ("helper-1", "helper-2"):
        events = builders.plain(name, start=now - 700, turns=2, limit_tokens=9_000, end=True)
        empty_store.append(
            [event._replace(context=replace(event.context, parent_session_id="boss")) for event in events]
        )
    return empty_store


def test_sub_agents_are_listed_with_their_result(family: SqliteStore) -> None:
    """In which turn each was given its task, and what came back."""
    children = family.sessions(SessionFilter(parent_session_id="boss"))

    frame = children_frame(family, "boss", children)

    by_name = {child.session_id: frame.iloc[place] for place, child in enumerate(children)}
    assert by_name["helper-1"]["result"] == 420
    assert by_name["helper-1"]["delegated"] == 23
    assert str(by_name["helper-2"]["result"]) == "<NA>"


def test_parent_and_child_link_to_each_other(
    family: SqliteStore, open_page: Callable[..., Any], said: Callable[..., str]
) -> None:
    """The parent's page lists the children; a child's page leads back."""
    parent = open_page("session", session="boss")
    assert not parent.exception
    assert "2 sub-agents worked in separate windows" in said(parent)

    child = open_page("session", session="helper-1")
    assert not child.exception
    assert any("Sub-agent of" in link.label for link in child.get("page_link"))


def test_the_fleet_marks_estimated_sizes(small_store: SqliteStore) -> None:
    """An estimate carries its sign in the table, and still sorts as a number."""
    listed = read_fleet(small_store, FleetFilters())
    rows: list[SessionRow] = [replace(listed.rows[0], count_source="estimate"), *listed.rows[1:]]
    frame = fleet_frame(replace(listed, rows=tuple(rows)), time.time())

    html = fleet_styled(frame, LIGHT).to_html()

    assert html.count("≈") == 2
    assert frame["tokens"].dtype.kind == "i"


@pytest.mark.parametrize(("worst", "zone"), [("critical", "red"), ("warning", "orange"), ("info", None)])
def test_the_fleet_colours_alerts_by_their_severity(
    small_store: SqliteStore, worst: Severity, zone: Zone | None
) -> None:
    """The cell of the session with the alert has the colour, however its words are put, and no other has it."""
    listed = read_fleet(small_store, FleetFilters())
    rows = [replace(row, zone=None, worst_zone=None, firing=0) for row in listed.rows]
    rows[1] = replace(rows[1], firing=3)
    fired = {rows[1].session_id: Counter({worst: 1, "info": 2})}
    frame = fleet_frame(replace(listed, rows=tuple(rows), fired=fired), time.time())
    frame["alerts"] = "other words"

    html = fleet_styled(frame, LIGHT).to_html()

    column = list(frame.columns).index("alerts")
    colored = {
        name: set(re.findall(rf"_row(\d+)_col{column}\b[^{{]*\{{\s*color: {LIGHT.zone_text[name]}", html))
        for name in ("red", "orange")
    }
    assert colored == {name: {"1"} if name == zone else set() for name in ("red", "orange")}
