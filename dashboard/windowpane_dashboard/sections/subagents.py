"""Sub-agents: separate sessions, linked from parent to child and back."""

from __future__ import annotations

import streamlit as st

from windowpane.store.filters import SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars, tokens
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.team import children_frame, read_delegations, read_team, team_cost
from windowpane_dashboard.queries.titles import TITLE_OF_LINK, session_title
from windowpane_dashboard.style.sanitize import escape_markdown

TURN_OF_LINK = r"turn=(\d+)"


def parent_link(store: EventReader, row: SessionRow) -> None:
    """Draw a link to the parent session, at the turn of the delegation, if there is one."""
    if row.parent_session_id:
        turn = read_delegations(store, row.parent_session_id, [row]).delegated.get(row.session_id)
        where = "" if turn is None else f", delegated at turn {turn}"
        parent = store.session(row.parent_session_id)
        title = row.parent_session_id if parent is None else session_title(parent)
        st.page_link(
            "views/session.py",
            label=f"Sub-agent of {escape_markdown(title)}{where}",
            icon=":material/arrow_upward:",
            query_params=SessionAddress(row.parent_session_id, turn=turn).to_query(),
        )


def has_children(store: EventReader, row: SessionRow) -> bool:
    """Return whether the session delegated to sub-agents that are in the store."""
    return bool(store.sessions(SessionFilter(parent_session_id=row.session_id, limit=1)))


def children_section(store: EventReader, row: SessionRow) -> None:
    """Draw the cost of the team, and the table of sub-agents with their delegations."""
    team = read_team(store, row)
    total = team_cost(team)
    estimated = any(member.is_cost_estimated for member in team)
    together = "" if total is None else f"{dollars(total, estimated=estimated)} together, "
    others = sum(member.project != row.project for member in team)
    elsewhere = f", including {others:,} of other projects" if others else ""
    children = [member for member in team if member.parent_session_id == row.session_id != member.session_id]
    sent = sum(child.input_tokens for child in children)
    worst = [child for child in children if child.worst_zone in ("red", "overflow")]
    st.text(
        f"{together}{count(len(team), 'session')}{elsewhere}. "
        f"{count(len(children), 'sub-agent')} worked in separate windows; their calls sent {tokens(sent)} "
        f"tokens. {count(len(worst), 'of them', 'of them')} reached red."
    )
    frame = children_frame(store, row.session_id, children)
    widgets.table(
        frame,
        key="children",
        alt="Sub-agents of this session",
        numbers={"dollars": DOLLARS},
        column_config={
            "session": st.column_config.LinkColumn(width=260, display_text=TITLE_OF_LINK, alignment="left"),
            "delegated": st.column_config.LinkColumn("delegated at turn", width=110, display_text=TURN_OF_LINK),
            "returned": st.column_config.LinkColumn("returned at turn", width=110, display_text=TURN_OF_LINK),
            "result": st.column_config.NumberColumn("result tokens", width=90),
            "peak": st.column_config.NumberColumn("peak tokens", width=90),
            "dollars": st.column_config.NumberColumn("cost", width=80),
        },
    )
