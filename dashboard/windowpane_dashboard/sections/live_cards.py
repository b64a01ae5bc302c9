"""A card for each live session: what happens to its window next, and how full it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from windowpane.alerts.rules import alert_title
from windowpane.text.formats import UNKNOWN, ago, dollars, percent
from windowpane.text.zones import ZONE_SHAPES
from windowpane_dashboard.page import widgets
from windowpane_dashboard.queries.alerts import alert_address
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.fleet import LiveSession
from windowpane_dashboard.queries.titles import project, session_title
from windowpane_dashboard.style.sanitize import escape_markdown

CARD_WIDTH: Final = 330
"""Pixels in which a forecast with its range fits in one line."""


def live_cards(sessions: Sequence[LiveSession], now: float) -> None:
    """Draw the cards side by side, in as many lines as the page is narrow."""
    with st.grid(min_column_width=CARD_WIDTH, key="live_cards"):
        for number, session in enumerate(sessions):
            with st.container(border=True, gap="xxsmall", height="stretch", key=f"live_card_{number}"):
                _card(session, now)


def _card(session: LiveSession, now: float) -> None:
    row = session.row
    st.page_link(
        "views/session.py",
        label=f"**{escape_markdown(session_title(row))}**",
        query_params=SessionAddress(row.session_id).to_query(),
    )
    names = (project(row), row.agent)
    st.caption(escape_markdown(" · ".join(name for name in names if name and name != UNKNOWN)) or UNKNOWN)
    st.markdown(escape_markdown(session.forecast(now)))
    st.html(_bar(session))
    shape = "" if row.zone is None else f"{ZONE_SHAPES[row.zone]} "
    parts = [f"{shape}{percent(row.utilization, estimated=row.is_estimated)}", _cost(session)]
    st.caption(escape_markdown(" · ".join(part for part in parts if part != UNKNOWN)))
    if session.alert is not None:
        fired = f"{alert_title(session.alert.alert)}, {ago(session.alert.fired_at, now)}"
        link = alert_address(session.alert)
        st.page_link("views/session.py", label=f":small[{escape_markdown(fired)}]", query_params=link.to_query())


def _cost(session: LiveSession) -> str:
    """Return the cost of the day, with that of the whole session where it is more: `$3.10 today of $8.00`."""
    row, today = session.row, session.today_dollars
    total = dollars(row.total_cost_dollars, estimated=row.is_cost_estimated)
    if today is None:
        return total
    text = dollars(today, estimated=row.is_cost_estimated)
    return f"{text} today" if text == total else f"{text} today of {total}"


def _bar(session: LiveSession) -> str:
    """Return the utilization as a bar in the color of the zone; numbers and colors of ours only."""
    row, palette = session.row, widgets.current_palette()
    share = min(1.0, row.utilization or 0.0)
    color = palette.muted if row.zone is None else palette.zones[row.zone]
    return (
        f'<div role="img" aria-label="{percent(share)} of the window" style="height:8px;border-radius:4px;'
        f'background:{palette.grid}"><div style="height:8px;border-radius:4px;width:{round(100 * share)}%;'
        f'background:{color}"></div></div>'
    )
