"""Two turns compared: what came, stayed and left between them."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from windowpane.text.formats import count, tokens
from windowpane_dashboard.page import address, widget_state, widgets
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.turn_flow import STAYED, flow_sums, is_arrival, turn_flow
from windowpane_dashboard.sections.session_tabs import SessionView
from windowpane_dashboard.sections.timeline import PAGE, turns_of

OTHER: Final = "other_turn"


def turn_flow_section(view: SessionView) -> None:
    """Draw the selected turn against another one, which is in the address."""
    first, last = turns_of(view.timeline)
    requested = SessionAddress.from_query(st.query_params.to_dict()).other
    other = min(max(requested or other_turn(view), first), last)
    key = widget_state.fresh_key(OTHER, other, scope=(first, last))
    left, right = st.columns([1, 4], vertical_alignment="bottom")
    left.number_input(
        "Compare with turn",
        first,
        last,
        key=key,
        step=1,
        on_change=lambda: widget_state.apply(OTHER, key, lambda turn: address.update(PAGE, other=str(int(turn)))),
    )
    start, end = sorted((other, view.turn))
    flow = turn_flow(view.snapshot.store, view.row.session_id, start, end)
    right.text(flow_summary(flow, start, end))
    if flow.empty:
        return
    sums = flow_sums(flow)
    widgets.table(sums, key="turn_flow_sums", alt=f"Tokens by component and flow from turn {start} to turn {end}")
    changed = flow[flow["flow"] != STAYED].sort_values("tokens", ascending=False, ignore_index=True)
    empty = [name for name in ("preview", "why") if not changed[name].any()]
    widgets.table(
        changed.drop(columns=[*empty, "before"]),
        key="turn_flow_blocks",
        alt="Blocks that came or left between the two turns, the largest first",
        height="content" if len(changed) <= 9 else 330,
        column_config={"tokens": st.column_config.NumberColumn(width=76)},
    )


def other_turn(view: SessionView) -> int:
    """Return the turn to compare with at first: the one before the last reduction up to the selected turn."""
    marks = view.timeline.marks
    reduced = marks.loc[marks["letter"].isin(["C", "E"]) & (marks["turn"] <= view.turn), "turn"]
    return int(reduced.max()) - 1 if len(reduced) else view.turn - 1


def flow_summary(flow: pd.DataFrame, first: int, last: int) -> str:
    """Return a sentence about the blocks and tokens that stayed, came and left."""
    if first == last:
        return "Choose another turn to compare this one with."
    came = flow["flow"].map(is_arrival).astype(bool)
    stayed = flow["flow"] == STAYED
    parts = [
        f"{count(int(rows.sum()), 'block')} {verb} ({tokens(float(flow.loc[rows, 'tokens'].sum()))} tokens)"
        for rows, verb in ((stayed, "stayed"), (came, "came"), (~stayed & ~came, "left"))
    ]
    return f"From turn {first} to turn {last}: {', '.join(parts)}."
