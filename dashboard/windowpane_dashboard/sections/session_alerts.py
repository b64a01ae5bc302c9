"""The alerts of one session, and one of them explained next to the list."""

from __future__ import annotations

import time
from typing import Final

import pandas as pd
import streamlit as st

from windowpane.alerts.rules import alert_title
from windowpane.report.alerts import outcome_of
from windowpane.store.filters import AlertFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.labels import severity_label
from windowpane_dashboard.page import address, widgets
from windowpane_dashboard.queries.alerts import requested_firing, selected_firing
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.sections.alert_detail import firing_section
from windowpane_dashboard.sections.timeline import PAGE, select_turn

TABLE: Final = "session_alerts"
LISTED: Final = 200


def session_alerts_section(store: EventReader, row: SessionRow, last: int) -> None:
    """Draw the alerts, the latest first, next to the one of the address; selecting a row selects its turn."""
    rows = list(store.alerts(AlertFilter(session_id=row.session_id, limit=LISTED)))
    requested = SessionAddress.from_query(st.query_params.to_dict())
    lasting = [one for one in rows if one.resolved_turn is None]
    chosen = requested_firing(store, row.session_id, requested) or selected_firing(lasting or rows, None)
    ticked = {"selection": {"rows": [rows.index(chosen)] if chosen in rows else []}}
    now = time.time()

    def explain(number: int) -> None:
        select_turn(rows[number].fired_turn, last)
        address.update(PAGE, alert=f"{rows[number].alert}:{rows[number].crossing_turn}")

    left, right = widgets.wrapping_columns([2.1, 1], narrowest="text")
    with left:
        widgets.table(
            pd.DataFrame(
                {
                    "severity": [severity_label(one.severity) for one in rows],
                    "alert": [alert_title(one.alert) for one in rows],
                    "turn": [one.fired_turn for one in rows],
                    "ended": [outcome_of(one, row, now).short for one in rows],
                    "what": [one.summary for one in rows],
                }
            ),
            key=TABLE,
            alt="Alerts of this session, the latest first",
            on_row=explain,
            selection_default=ticked,
            column_config={"turn": st.column_config.NumberColumn(width=50)},
        )
    if chosen is not None:
        with right, st.container(border=True):
            firing_section(store, chosen, outcome_of(chosen, row, now))
