"""Trends: cost, fill, losses and cache by day or week, and the tools, servers and files that cost most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, get_args

import pandas as pd
import streamlit as st

from windowpane.core.characters import plain
from windowpane.report.context_health import MINIMUM_SESSIONS
from windowpane.store.filters import SessionFilter
from windowpane.store.projections.trends import DAY_SECONDS
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars, percent
from windowpane_dashboard.charts.trends import trend_chart, trend_legend
from windowpane_dashboard.page import address, long_ranges, messages, project_choice, store_access, widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SCORE, SHARE
from windowpane_dashboard.queries.filters import Range, TrendAddress, TrendLines, TrendPeriod
from windowpane_dashboard.queries.trends import (
    COMPARED_SESSIONS,
    MEASURES,
    Trends,
    chosen_lines,
    compared,
    compared_lines,
    trends,
    trends_table,
)
from windowpane_dashboard.sections.context_health import context_health_section
from windowpane_dashboard.sections.costs_by_name import costs_by_name_section
from windowpane_dashboard.style.sanitize import sanitized

PAGE = "trends"
DEFAULT_DAYS = "90"
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
            since = float((until - days + 1) * DAY_SECONDS)
            in_range = SessionFilter(agent=position.agent, model=position.model, at_from=since)
            comparison(store_access.compared_sessions(snapshot, in_range), position)
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
            context_health_section(snapshot, in_range)
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
    widgets.filter_select(bar, "Agent", agents, position.agent, page=PAGE)
    widgets.filter_select(bar, "Model", models, position.model, page=PAGE)
    address.write(PAGE, position.to_query())


def summary(ranged: Trends) -> str:
    """Return one sentence about the range."""
    if ranged.frame.empty:
        return "Nothing was recorded in this range."
    sums = ranged.totals
    cached = sums["cache_read_tokens"] / sums["input_tokens"] if sums["input_tokens"] else None
    cost = dollars(float(sums["cost_dollars"]), estimated=sums["estimated_outputs"] > 0)
    parts = [f"{count(int(sums['calls']), 'call')} for {cost}", f"{percent(cached)} of the input from the cache"]
    if sums["cache_breaks"]:
        lost = dollars(float(sums["cache_break_dollars"]))
        parts.append(f"{count(int(sums['cache_breaks']), 'cache break')} for {lost}")
    parts.append(count(int(sums["compactions"]), "compaction"))
    return "; ".join(parts) + "."


def comparison(rows: Sequence[SessionRow], position: TrendAddress) -> None:
    """Draw whether the sessions of an agent, model or release are worse than those of another."""
    kinds = dict.fromkeys((position.by or "agent", *get_args(TrendLines)))
    by_kind = [compared_lines(rows, replace(position, by=by)) for by in kinds]
    comparable = [lines for lines in by_kind if len(lines) > 1]
    if not comparable:
        return
    lines = next((lines for lines in comparable if position.one in lines), comparable[0])
    one, other = chosen_lines(lines, position)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="comparison"):
        st.markdown("Is", width="content")
        _compared_line("one", one, dict.fromkeys(chain(*comparable)))
        st.markdown("worse than", width="content")
        _compared_line("other", other, lines)
    few = [name for name in (one, other) if len(lines[name]) < MINIMUM_SESSIONS]
    if few:
        st.text(f"Too few sessions to compare: fewer than {MINIMUM_SESSIONS} of {sanitized(' and '.join(few))}.")
        return
    frame = pd.DataFrame(
        [(measure.of_session, *compared(measure, lines[one], lines[other])) for measure in MEASURES],
        columns=["per session", "verdict", "one", "other"],
    )
    config = st.column_config.TextColumn
    widgets.table(
        frame,
        key="comparison_table",
        alt="Two lines compared by each measure",
        height="content",
        column_config={
            "per session": config(width=190),
            "verdict": config("", width=130),
            "one": config(f"n = {len(lines[one]):,}: {one[:40]}", width=180),
            "other": config(f"n = {len(lines[other]):,}: {other[:40]}", width=180),
        },
    )
    st.caption(
        f"Median and quartiles of the latest {count(len(rows), 'session')} in this range (at most "
        f"{COMPARED_SESSIONS:,}). Worse or better where chance is unlikely: a rank test, 5% for the whole table. "
        "Both may have had other tasks."
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
