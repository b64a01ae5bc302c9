"""Compare: two sessions on the same axes, one above the other, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from windowpane.report.headline import session_answer
from windowpane.store.interface import SessionFilter
from windowpane.store.records import SessionRow
from windowpane_dashboard.charts.window_chart import SharedAxes, window_chart
from windowpane_dashboard.page import address, messages, store_access, widget_state, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.comparison import ComparedSession, compare_headline, differences
from windowpane_dashboard.queries.filters import CompareAddress, SessionAddress
from windowpane_dashboard.sections.timeline import chart_description, chart_table
from windowpane_dashboard.style.sanitize import escape_markdown

PAGE = "compare"
OFFERED = 200
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
            st.text("There is only one session in the store: import another to compare it with.")
            st.code("windowpane import", language=None)
            return
        sides = [_side(snapshot, row) for row in rows]
        frame = differences(*sides)
        with head:
            widgets.headline(compare_headline(frame, [row.session_id for row in rows]))
        pictures(sides)
        st.subheader("What differs", anchor=False, divider="grey")
        widgets.table(
            frame,
            key="compare_table",
            alt="Measures of both sessions with their difference",
            height="content",
            column_config={
                "measure": st.column_config.TextColumn(width=220),
                "A": st.column_config.TextColumn(f"A: {rows[0].session_id}"[:60], width=220),
                "B": st.column_config.TextColumn(f"B: {rows[1].session_id}"[:60], width=220),
                "B against A": st.column_config.TextColumn(width=200),
                "better": st.column_config.TextColumn(width=70, help="A, B, or neither where none is better"),
            },
        )
    store_access.rerun_on_change(snapshot, page=PAGE)


def _side(snapshot: StoreSnapshot, row: SessionRow) -> ComparedSession:
    alerts = snapshot.store.alerts(session_id=row.session_id, limit=ALERTS)
    return ComparedSession(row, store_access.timeline(snapshot, row), tuple(alerts))


def chosen_sessions(snapshot: StoreSnapshot) -> list[SessionRow]:
    """The two sessions of the address, else the two under most pressure; the selections offer the others."""
    offered = snapshot.store.sessions(SessionFilter(limit=OFFERED))
    if not offered:
        messages.show_empty("The store is there, but it holds no sessions yet.")
    rows = {row.session_id: row for row in offered}
    asked = CompareAddress.from_query(st.query_params.to_dict())
    for name in (asked.one, asked.other):
        if name is not None and name not in rows:
            found = snapshot.store.session(name)
            if found is None:
                st.warning("This session is not in the store; another is shown in its place.")
                widgets.show_text(name)
            else:
                rows[name] = found
    one = asked.one if asked.one in rows else next(iter(rows))
    other = asked.other if asked.other in rows else next((name for name in rows if name != one), None)
    if other is None:
        return [rows[one]]
    places = st.columns([6, 6, 1.2], vertical_alignment="bottom")
    _select(places[0], "A", rows, one, lambda name: _take(CompareAddress(name, other)))
    _select(places[1], "B", rows, other, lambda name: _take(CompareAddress(one, name)))
    swapped = CompareAddress(other, one)
    places[2].button("Swap", icon=":material/swap_vert:", on_click=lambda: _take(swapped), width="stretch")
    address.write(PAGE, CompareAddress(one, other).to_query())
    return [rows[one], rows[other]]


def _select(
    place: st.delta_generator.DeltaGenerator,
    letter: str,
    rows: dict[str, SessionRow],
    here: str,
    take: Callable[[str], None],
) -> None:
    control = f"compare_{letter}"
    key = widget_state.fresh_key(control, here)
    place.selectbox(
        f"Session {letter}",
        list(rows),
        key=key,
        format_func=lambda name: f"{rows[name].agent}  ·  {name}" if rows[name].agent else name,
        on_change=lambda: widget_state.apply(control, key, take),
    )


def _take(chosen: CompareAddress) -> None:
    address.write(PAGE, chosen.to_query())


def pictures(sides: list[ComparedSession]) -> None:
    """Both windows turn by turn on the same axes, each with its answer."""
    drawn = [side.timeline.turns for side in sides if not side.timeline.turns.empty]
    frame = SharedAxes.around(*drawn) if drawn else None
    for letter, side in zip("AB", sides, strict=True):
        turns = side.timeline.turns
        words = session_answer(side.row, worst_turn=side.timeline.worst_turn, facts=side.timeline.facts)
        left, right = st.columns([8, 1], vertical_alignment="center")
        left.markdown(f"**{letter}: {escape_markdown(side.row.session_id)}**  \n{escape_markdown(words)}")
        right.page_link(
            "views/session.py",
            label=f"Open {letter}",
            icon=":material/open_in_new:",
            query_params=SessionAddress(side.row.session_id).to_query(),
        )
        if turns.empty:
            st.text("No model call has been measured yet, so there is no picture of the window.")
            continue
        figure = window_chart(
            turns,
            side.timeline.spans,
            side.timeline.marks,
            widgets.current_palette(),
            selected=None,
            frame=frame,
        )
        widgets.chart(figure, key=f"compare_picture_{letter}", alt=chart_description(turns))
        widgets.folded_table(
            f"{letter} as a table",
            partial(chart_table, turns),
            key=f"compare_data_{letter}",
            alt=f"Turns of {letter}",
        )


main()
