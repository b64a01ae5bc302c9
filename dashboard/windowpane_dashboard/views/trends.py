"""Trends: what costs most, whether a release is worse than another, and cost, fill, losses and cache by day."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, get_args

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
from windowpane_dashboard.page.number_formats import DOLLARS, SHARE
from windowpane_dashboard.page.width import page_width
from windowpane_dashboard.queries.filters import Range, TrendAddress, TrendLines
from windowpane_dashboard.queries.trends import (
    CHARTS,
    COMPARED_SESSIONS,
    MEASURES,
    Trends,
    chosen_lines,
    comparable_lines,
    compared,
    trends,
    trends_table,
)
from windowpane_dashboard.sections.context_health import context_health_section
from windowpane_dashboard.sections.costs_by_name import costs_by_name_section
from windowpane_dashboard.style.sanitize import sanitized

PAGE = "trends"
SELECT_PIXELS: Final = 168
SUM_PIXELS: Final = 300
DAYS: Final = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "a year", "3650": "everything"}


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The trends cannot be read"):
        head = st.container()
        position = TrendAddress.from_query(project_choice.query_of(PAGE))
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            messages.show_empty("The store is there, but it holds no sessions yet.")
        snapshot = project_choice.of_project(snapshot, PAGE, position.project)
        days, repository = position.range_days, position.repository
        reads = long_ranges.long_ranges(snapshot.store)
        rows = reads.trends(days=days)
        until = max((row.day for row in rows), default=0)
        since = float((until - days + 1) * DAY_SECONDS)
        composition = store_access.composition(snapshot, since, repository)
        filter_bar(position, composition.repositories)
        repeated = reads.repeated_days(days=days, until=until)
        if repository is not None:
            rows = reads.trends_of(composition.keys, days=days, until=until)
            repeated = [row for row in repeated if row.session in composition.keys]
        ranged = trends(rows, position, repeated)
        with head:
            widgets.headline(summary(ranged), PAGE)
        in_range = SessionFilter(at_from=since)
        sessions = store_access.compared_sessions(snapshot, in_range, repository)
        paid = sum(row.cost_dollars or 0.0 for row in sessions)
        costs_by_name_section(reads, composition, paid, position, page=PAGE)
        if not ranged.frame.empty:
            comparison(sessions, position)
            charts(ranged, position)
            context_health_section(snapshot, in_range, repository)
        long_ranges.show_note(reads)
    store_access.rerun_on_change(snapshot, page=PAGE)


def filter_bar(position: TrendAddress, repositories: Sequence[str]) -> None:
    """Draw the filters of the whole page."""
    bar = widgets.control_bar()
    bar.container(width=SELECT_PIXELS).selectbox(
        "Range",
        get_args(Range),
        format_func=lambda days: DAYS[days],
        **address.bound_widget(PAGE, "days", str(position.range_days)),
    )
    if repositories or position.repository is not None:
        column = bar.container(width=SELECT_PIXELS)
        widgets.filter_select(column, "Repository", repositories, position.repository, page=PAGE)
    address.write(PAGE, position.to_query())


def summary(ranged: Trends) -> str:
    """Return one sentence about the range."""
    if ranged.frame.empty:
        return "Nothing was recorded in this range."
    sums = ranged.totals
    cached = sums["cache_read_tokens"] / sums["input_tokens"] if sums["input_tokens"] else None
    paid = float(sums["cost_dollars"])
    cost = dollars(paid, estimated=sums["estimated_outputs"] > 0) if paid else "An unknown cost"
    again = float(sums["cache_break_dollars"])
    lost = f", {dollars(again)} of it to send again what the prompt cache had held" if again else ""
    return (
        f"{cost} for {count(int(sums['calls']), 'model call')}{lost}. "
        f"{percent(cached)} of the input came from the prompt cache."
    )


def comparison(rows: Sequence[SessionRow], position: TrendAddress) -> None:
    """Draw whether the sessions of a release, model or agent are worse than those of another."""
    comparable = comparable_lines(rows, position)
    if not comparable:
        return
    lines = comparable[0]
    one, other = chosen_lines(lines, position)
    sizes = {name: len(own) for lines in comparable for name, own in lines.items()}
    st.subheader("Is one worse than the other?", anchor=False, divider="grey")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="comparison"):
        first, second = ("Is", "one", one, chain(*comparable)), ("worse than", "other", other, lines)
        for text, name, chosen, offered in (first, second):
            st.markdown(text, width="content")
            st.selectbox(
                name,
                list(dict.fromkeys(offered)),
                label_visibility="collapsed",
                format_func=lambda line: f"{plain(line)} (n = {sizes[line]:,})",
                width=SUM_PIXELS,
                **address.bound_widget(PAGE, name, chosen),
            )
    few = [name for name in (one, other) if len(lines[name]) < MINIMUM_SESSIONS]
    if few:
        st.text(f"Too few sessions to compare: fewer than {MINIMUM_SESSIONS} of {sanitized(' and '.join(few))}.")
        return
    if lines[one][0].agent != lines[other][0].agent:
        st.text("These are different agents, mostly with other tasks: a difference may come from these.")
    frame = pd.DataFrame(
        [(measure.of_session, *compared(measure, lines[one], lines[other])) for measure in MEASURES],
        columns=["per session", "verdict", "one", "other"],
    )
    st.text(sanitized(comparison_answer(frame, one)))
    config, is_narrow = st.column_config.TextColumn, page_width() == "narrow"
    widgets.table(
        frame,
        key="comparison_table",
        alt="Two lines compared by each measure",
        height="content",
        narrow={"per session": 92, "verdict": 84, "one": 88, "other": 88},
        column_config={
            "per session": config(width=200),
            "verdict": config("verdict", width=130),
            "one": config("first" if is_narrow else plain(one)[:40], width=180),
            "other": config("second" if is_narrow else plain(other)[:40], width=180),
        },
    )
    st.caption(
        "Median (range of the middle half). Worse or better only where chance is unlikely (5% for all together). "
        f"At most the latest {COMPARED_SESSIONS:,} sessions of the range."
    )


def comparison_answer(frame: pd.DataFrame, one: str) -> str:
    """Return the measures in which the line *one* is worse or better: `codex is worse in cost.`"""
    names = frame.groupby("verdict")["per session"].agg(", ".join)
    clear = [f"{verdict} in {names[verdict]}" for verdict in ("worse", "better") if verdict in names]
    return f"{one} is {' and '.join(clear)}." if clear else "No clear difference."


def charts(ranged: Trends, position: TrendAddress) -> None:
    """Draw one chart per measure, two in a row."""
    st.subheader("By week" if position.is_weekly else "By day", anchor=False, divider="grey")
    lines = get_args(TrendLines)
    st.container(width=SELECT_PIXELS).selectbox(
        "A line per", lines, **address.bound_widget(PAGE, "by", position.by or lines[0])
    )
    palette = widgets.current_palette()
    st.html(trend_legend(ranged, palette))
    for start in range(0, len(CHARTS), 2):
        for column, measure in zip(st.columns(2, gap="medium"), CHARTS[start : start + 2], strict=True):
            with column:
                st.caption(measure.title)
                figure = trend_chart(ranged, measure, palette)
                if figure is None:
                    st.text("Not recorded in this range.")
                else:
                    widgets.chart(figure, key=f"trend_{measure.name}", alt=f"{measure.title}, as in the table")
    widgets.folded_table(
        "The charts as a table",
        lambda: trends_table(ranged.frame),
        key="trends_data",
        alt="Sums and means by period",
        numbers={
            "cost": DOLLARS,
            "from the cache": SHARE,
            "window at its fullest": SHARE,
            "kept by compactions": SHARE,
        },
    )


main()
