"""One firing in full, and what the runbook says about its alert."""

from __future__ import annotations

import streamlit as st

from windowpane.alerts.guidance import GUIDANCE
from windowpane.alerts.rulefile import condition
from windowpane.alerts.rules import RULES_BY_NAME
from windowpane.alerts.wording import quantity
from windowpane.store.interface import EventReader
from windowpane.store.records import AlertRow
from windowpane.text.formats import count
from windowpane.text.labels import severity_label
from windowpane_dashboard.page import times
from windowpane_dashboard.page import widgets as elements
from windowpane_dashboard.queries.alerts import (
    Delivery,
    Outcome,
    deliveries,
    lasted_words,
    quantity_words,
    resolution,
    title_of,
)
from windowpane_dashboard.queries.filters import SessionPlace


def firing_section(store: EventReader, row: AlertRow, outcome: Outcome) -> None:
    """Draw what fired, how it ended and who was told, with the runbook's entry."""
    st.markdown(f"**{elements.escaped(f'{severity_label(row.severity)}: {title_of(row.alert)}')}**")
    elements.said(f"{row.summary}.")
    since = "" if row.fired_at is None else f", {times.local_and_utc(row.fired_at)}"
    st.caption(
        elements.escaped(
            f"Agent {row.agent or 'unnamed'}, session {row.session_id}. Held from turn {row.crossing_turn}, "
            f"fired at turn {row.fired_turn}{since}; {outcome.words} ({lasted_words(outcome)})."
            + _end_words(store, row)
        )
    )
    _delivery_list(deliveries(store, row))
    st.page_link(
        "views/session.py",
        label=f"Open the session at turn {row.fired_turn}",
        icon=":material/open_in_new:",
        query_params=SessionPlace(row.session_id, row.fired_turn).to_query(),
    )
    runbook_entry(row.alert)


def _end_words(store: EventReader, row: AlertRow) -> str:
    ended = resolution(store, row)
    value = quantity_words(row.alert, row.value)
    limit = "" if row.threshold is None else f", threshold {quantity_words(row.alert, row.threshold)}"
    text = "" if row.value is None else f" Value {value}{limit}"
    if ended is not None and ended.value is not None:
        text += f"{';' if text else ''} came back to {quantity_words(row.alert, ended.value)}"
    return f"{text}." if text else ""


def _delivery_list(sent: tuple[Delivery, ...]) -> None:
    if not sent:
        st.text("Nobody was told: no channel was set, or the session was imported, which never notifies.")
        return
    for one in sent:
        sign = ":material/check_circle:" if one.arrived else ":material/error:"
        word = "arrived at" if one.arrived else "did not arrive at"
        tries = f" after {count(one.attempts, 'attempt')}" if one.attempts > 1 else ""
        why = f": {one.reason}" if one.reason else ""
        st.markdown(f"{sign} {elements.escaped(f'{one.state} {word} {one.channel}{tries}{why}')}")


def runbook_entry(alert: str) -> None:
    """What the alert means, why it matters and what to do; the same words as the runbook."""
    rule, guidance = RULES_BY_NAME.get(alert), GUIDANCE.get(alert)
    if rule is None or guidance is None:
        st.text("This alert is not in the runbook of this release.")
        return
    st.markdown(f"**First:** {rule.todo}")
    with st.expander("Runbook", icon=":material/menu_book:", expanded=True):
        slack = quantity(rule.hysteresis, rule.unit) if rule.hysteresis else "none"
        st.caption(f"Condition: {elements.escaped(condition(rule))}; hysteresis {elements.escaped(slack)}.")
        st.markdown(f"**What it means.** {guidance.means}")
        st.markdown(f"**Why it matters.** {guidance.matters}")
        st.markdown(f"**How to see it.** {guidance.see}")
        st.markdown("**What to do.**\n" + "\n".join(f"{n}. {step}" for n, step in enumerate(guidance.steps, 1)))
