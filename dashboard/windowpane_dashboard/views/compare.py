"""Compare: two sessions on the same axes, one above the other, and their differences."""

from __future__ import annotations

import time
from functools import partial

import streamlit as st

from windowpane.core.characters import plain
from windowpane.core.times import is_live
from windowpane.report.headline import sentence
from windowpane.store.filters import AlertFilter, SessionFilter
from windowpane.store.records import SessionRow
from windowpane_dashboard.charts.window_chart import SharedAxes, window_chart
from windowpane_dashboard.charts.zone_bands import forecast_turns
from windowpane_dashboard.page import address, messages, store_access, widgets
from windowpane_dashboard.page.number_formats import SHARE
from windowpane_dashboard.page.session_picker import OFFERED
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.comparison import ComparedSession, compare_headline, differences, same_task
from windowpane_dashboard.queries.filters import CompareAddress, SessionAddress
from windowpane_dashboard.queries.titles import picker_label, session_title
from windowpane_dashboard.sections.timeline import chart_description
from windowpane_dashboard.sections.turn_table import turn_table
from windowpane_dashboard.style.sanitize import escape_markdown

PAGE = "compare"
ALERTS = 1_000


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors(
        "The sessions cannot be compared", "The session page may still open each of them."
    ):
        head = st.container()
        rows = chosen_sessions(snapshot)
        if len(rows) < 2:
            with head:
                widgets.headline("Choose two sessions to compare.", PAGE)
            return
        sides = [_side(snapshot, row) for row in rows]
        frame = differences(*sides)
        with head:
            widgets.headline(compare_headline(frame), PAGE)
        differing = frame[frame["A"] != frame["B"]]
        if not differing.empty:
            column = st.column_config.TextColumn
            widgets.table(
                differing,
                key="compare_table",
                alt="Measures of both sessions with their difference",
                height="content",
                column_config={
                    "measure": column("differs in", width=128),
                    "A": column(width=66),
                    "B": column(width=66),
                    "B against A": column(width=98),
                },
            )
        charts(sides)
    store_access.rerun_on_change(snapshot, page=PAGE)


def _side(snapshot: StoreSnapshot, row: SessionRow) -> ComparedSession:
    alerts = snapshot.store.alerts(AlertFilter(session_id=row.session_id, limit=ALERTS))
    return ComparedSession(row, store_access.timeline(snapshot, row), tuple(alerts))


def chosen_sessions(snapshot: StoreSnapshot) -> list[SessionRow]:
    """Return the sessions of the address, else the latest with the same task; draw the selections."""
    offered = snapshot.store.sessions(SessionFilter(limit=OFFERED, order="recent"))
    if not offered:
        messages.show_empty("The store is there, but it holds no sessions yet.")
    rows = {row.session_id: row for row in offered}
    requested = CompareAddress.from_query(st.query_params.to_dict())
    for name in (requested.one, requested.other):
        if name is not None and name not in rows:
            row = snapshot.store.session(name)
            if row is None:
                st.warning("This session is not in the store; another one is shown instead.")
                widgets.show_text(name)
            else:
                rows[name] = row
    one = requested.one if requested.one in rows else None
    other = requested.other if requested.other in rows else None
    if one is None or other is None:
        one, other = same_task(rows.values(), one or other)
    bar = widgets.control_bar()
    for letter, name, session_id in (("A", "one", one), ("B", "other", other)):
        bar.container().selectbox(
            f"Session {letter}",
            list(rows),
            placeholder="Choose a session",
            format_func=lambda listed: plain(picker_label(rows[listed])),
            **address.bound_widget(PAGE, name, session_id),
        )
    address.write(PAGE, CompareAddress(one, other).to_query())
    return [rows[name] for name in (one, other) if name is not None]


def charts(sides: list[ComparedSession]) -> None:
    """Draw both windows turn by turn on the same axes, each with its headline."""
    drawn = [side.timeline.turns for side in sides if not side.timeline.turns.empty]
    now = time.time()
    last = max((int(turns["turn"].iloc[-1]) for turns in drawn), default=0)
    ends = [
        int(side.timeline.turns["turn"].iloc[-1]) + forecast_turns(side.timeline.turns)
        for side in sides
        if is_live(side.row, now) and not side.timeline.turns.empty
    ]
    axes = SharedAxes.around(*drawn, ahead=max(0, *ends, last) - last) if drawn else None
    for letter, side in zip("AB", sides, strict=True):
        turns, live = side.timeline.turns, is_live(side.row, now)
        headline = sentence(side.timeline.headline(side.row, live=live))
        left, right = st.columns([8, 1], vertical_alignment="center")
        title = escape_markdown(session_title(side.row))
        left.markdown(f"**{letter}: {title}**  \n{escape_markdown(headline)}")
        right.page_link(
            "views/session.py",
            label=f"Open {letter}",
            icon=":material/open_in_new:",
            query_params=SessionAddress(side.row.session_id).to_query(),
        )
        if turns.empty:
            st.text("No model call has been measured yet, so its window cannot be drawn.")
            continue
        figure = window_chart(
            turns,
            side.timeline.spans,
            side.timeline.marks,
            widgets.current_palette(),
            axes=axes,
            forecast=live,
        )
        widgets.main_chart(figure, key=f"compare_chart_{letter}", alt=chart_description(turns))
        widgets.folded_table(
            f"{letter} as a table",
            partial(turn_table, turns),
            key=f"compare_data_{letter}",
            alt=f"Turns of {letter}",
            numbers={"utilization": SHARE},
        )


main()
