"""Trends: cost, fill, losses and cache by day or week, and the tools, servers and files that cost most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, get_args

import pandas as pd
import streamlit as st

from windowpane.core.characters import plain
from windowpane.store.filters import SessionFilter
from windowpane.store.projections.trends import DAY_SECONDS
from windowpane.store.records import RepeatedDay, TrendRow
from windowpane.text.formats import UNKNOWN, count, dollars, percent
from windowpane_dashboard.charts.trends import trend_chart, trend_legend, value_text
from windowpane_dashboard.page import address, long_ranges, messages, project_choice, store_access, widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SCORE, SHARE
from windowpane_dashboard.queries.filters import Range, TrendAddress, TrendLines, TrendPeriod
from windowpane_dashboard.queries.trends import (
    MEASURES,
    MINIMUM_COMPARED,
    ComparedLine,
    TrendMeasure,
    Trends,
    compared_lines,
    trends,
    trends_table,
    verdict,
)
from windowpane_dashboard.sections.context_health import context_health_section
from windowpane_dashboard.sections.costs_by_name import costs_by_name_section
from windowpane_dashboard.style.sanitize import sanitized

PAGE = "trends"
DEFAULT_DAYS = "90"
COMPARED = {"cost": "cost", "peak": "peak utilization", "compactions": "compactions", "regrets": "needed again"}
SUM_PIXELS = 260
DAYS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "a year", "3650": "everything"}


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The trends cannot be read"):
        head = st.container()
        position = TrendAddress.from_query(project_choice.query_of(PAGE))
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            messages.show_empty("The store is there, but it holds no sessions yet.")
        snapshot = project_choice.of_project(snapshot, PAGE, position.project)
        days = int(position.days or DEFAULT_DAYS)
        reads = long_ranges.long_ranges(snapshot.store)
        rows = reads.trends(days=days)
        filter_bar(position, sorted({row.agent for row in rows}), sorted({row.model for row in rows}))
        until = max((row.day for row in rows), default=0)
        repeated = reads.repeated_days(days=days, until=until) if rows else ()
        ranged = trends(rows, position, repeated)
        with head:
            widgets.headline(summary(ranged), PAGE)
        if not ranged.frame.empty:
            comparison(rows, position, repeated)
        costs_by_name_section(reads, position, page=PAGE, days=days)
        if not ranged.frame.empty:
            charts(ranged)
            widgets.folded_table(
                "Trends as a table",
                lambda: trends_table(ranged.frame),
                key="trends_data",
                alt="Sums and means by period",
                numbers={
                    "cost": DOLLARS,
                    "cost of breaks": DOLLARS,
                    "from the cache": SHARE,
                    "peak utilization": SHARE,
                    "facts kept": SCORE,
                },
            )
            since = float((until - days + 1) * DAY_SECONDS)
            context_health_section(
                snapshot, SessionFilter(agent=position.agent, model=position.model, at_from=since)
            )
        long_ranges.show_note(reads)
    store_access.rerun_on_change(snapshot, page=PAGE)


def filter_bar(position: TrendAddress, agents: list[str], models: list[str]) -> None:
    """Draw the filters with the values of the address."""
    bar = widgets.control_bar()
    choices: tuple[tuple[str, str, tuple[str, ...], Any], ...] = (
        ("by", "Lines by", get_args(TrendLines), str),
        ("period", "Period", get_args(TrendPeriod), str),
        ("days", "Range", get_args(Range), lambda days: DAYS[days]),
    )
    for name, label, options, text in choices:
        value = getattr(position, name) or (DEFAULT_DAYS if name == "days" else options[0])
        bar.container().selectbox(label, options, format_func=text, **address.bound_widget(PAGE, name, value))
    widgets.filter_select(
        bar, "Agent", agents, position.agent, bound=address.bound_widget(PAGE, "agent", position.agent)
    )
    widgets.filter_select(
        bar, "Model", models, position.model, bound=address.bound_widget(PAGE, "model", position.model)
    )
    address.write(PAGE, position.to_query())


def summary(ranged: Trends) -> str:
    """Return one sentence about the range."""
    if ranged.frame.empty:
        return "Nothing was recorded in this range."
    sums = ranged.totals
    cached = sums["cache_read_tokens"] / sums["input_tokens"] if sums["input_tokens"] else None
    cost = dollars(float(sums["cost_dollars"]), estimated=sums["estimated_outputs"] > 0)
    parts = [
        f"{count(int(sums['calls']), 'call')} for {cost}",
        f"{percent(cached)} of the input from the cache",
    ]
    if sums["cache_breaks"]:
        lost = dollars(float(sums["cache_break_dollars"]))
        parts.append(f"{count(int(sums['cache_breaks']), 'cache break')} for {lost}")
    parts.append(count(int(sums["compactions"]), "compaction"))
    return "; ".join(parts) + "."


def comparison(rows: Sequence[TrendRow], position: TrendAddress, repeated: Sequence[RepeatedDay]) -> None:
    """Draw whether an agent, model or release is worse than another, by what happened per session."""
    kinds = dict.fromkeys((position.by or "agent", *get_args(TrendLines)))
    by_kind = [compared_lines(rows, replace(position, by=by), repeated) for by in kinds]
    comparable = [lines for lines in by_kind if len(lines) > 1]
    if not comparable:
        return
    lines = next((lines for lines in comparable if position.one in lines), comparable[0])
    names = sorted(lines, key=lambda name: lines[name].sessions < MINIMUM_COMPARED)  # stable: the newest first
    one = position.one if position.one in lines else names[0]
    other = position.other if position.other in lines and position.other != one else None
    other = other or next(name for name in names if name != one)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="comparison"):
        st.markdown("Is", width="content")
        _compared_line("one", one, dict.fromkeys(chain(*comparable)))
        st.markdown("worse than", width="content")
        _compared_line("other", other, lines)
    first, second = lines[one], lines[other]
    few = [line.name for line in (first, second) if line.sessions < MINIMUM_COMPARED]
    if few:
        st.text(f"Too few sessions to compare: fewer than {MINIMUM_COMPARED} of {sanitized(' and '.join(few))}.")
        return
    frame = pd.DataFrame(
        [(COMPARED.get(measure.name, measure.title), *_cells(measure, first, second)) for measure in MEASURES],
        columns=["per session", "verdict", "one", "other"],
    )
    config = st.column_config.TextColumn
    widgets.table(
        frame,
        key="comparison_table",
        alt="Two lines compared by each measure",
        height="content",
        column_config={
            "per session": config(width=130),
            "verdict": config("", width=105),
            "one": config(f"n = {first.sessions:,}: {one[:40]}", width=72),
            "other": config(f"n = {second.sessions:,}: {other[:40]}", width=72),
        },
    )


def _compared_line(name: str, chosen: str, lines: Iterable[str]) -> None:
    st.selectbox(
        name,
        list(lines),
        label_visibility="collapsed",
        format_func=plain,
        width=SUM_PIXELS,
        **address.bound_widget(PAGE, name, chosen),
    )


def _cells(measure: TrendMeasure, one: ComparedLine, other: ComparedLine) -> tuple[str, str, str]:
    values = (line.values.get(measure.name) for line in (one, other))
    first, second = (UNKNOWN if value is None else value_text(value, measure.unit) for value in values)
    return verdict(measure, one, other), first, second


def charts(ranged: Trends) -> None:
    """Draw one chart per measure, two in a row."""
    palette = widgets.current_palette()
    st.html(trend_legend(ranged, palette))
    for start in range(0, len(MEASURES), 2):
        for column, measure in zip(st.columns(2, gap="medium"), MEASURES[start : start + 2], strict=False):
            with column:
                st.caption(measure.title)
                figure = trend_chart(ranged, measure, palette)
                if figure is None:
                    st.text("Not recorded in this range.")
                else:
                    widgets.chart(figure, key=f"trend_{measure.name}", alt=f"{measure.title}, as in the table")


main()
