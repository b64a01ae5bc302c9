"""One firing in detail, the runbook's entry of its alert, and the form that sends a test message."""

from __future__ import annotations

import streamlit as st

from windowpane.alerts.delivery.notifier import TestResult, send_test
from windowpane.alerts.guidance import GUIDANCE
from windowpane.alerts.rules import RULES_BY_NAME, alert_title
from windowpane.alerts.summary import condition_text
from windowpane.config.loading import load_config
from windowpane.exceptions import ConfigurationError
from windowpane.report.alerts import FiringOutcome, duration_text, settings_text, silence_text
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import AlertRow
from windowpane.text.formats import count
from windowpane.text.labels import severity_label
from windowpane_dashboard.page import times, widgets
from windowpane_dashboard.queries.alerts import MessageDelivery, alert_address, deliveries, lost_rules_of
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized

CHANNEL = "alerts_channel"
ADDRESS = "alerts_address"
RESULT = "alerts_test_result"


def firing_section(store: EventReader, row: AlertRow, outcome: FiringOutcome, *, title: str = "") -> None:
    """Draw a firing with its end, its deliveries, the runbook's entry, and a link by the session's *title*."""
    st.markdown(f"**{escape_markdown(f'{severity_label(row.severity)}: {alert_title(row.alert)}')}**")
    for text in (row.summary, *lost_rules_of(store, row)):
        widgets.show_text(f"{text}.")
    since = "" if row.fired_at is None else f", {times.local(row.fired_at)}"
    fired = f"Fired at turn {row.fired_turn}{since}; {outcome.text} ({duration_text(outcome)})."
    st.caption(escape_markdown(fired), help=times.utc_help(row.fired_at))
    _delivery_list(deliveries(store, row))
    if title:
        st.page_link(
            "views/session.py",
            label=escape_markdown(f"Turn {row.fired_turn} of {title}"),
            icon=":material/open_in_new:",
            query_params=alert_address(row).to_query(),
        )
    _change(row)
    runbook_entry(row.alert)


def _change(row: AlertRow) -> None:
    """Draw the lines that silence the alert or change its threshold, to copy; nothing is changed here."""
    threshold, disable = settings_text(row)
    with st.expander("Silence or change the threshold", icon=":material/notifications_off:"):
        st.caption("In this session for two hours, where Alertmanager receives the alerts:")
        st.code(sanitized(silence_text(row)), language=None, wrap_lines=True)
        if threshold:
            st.caption("In windowpane.yml, the threshold moved to the value of this alert:")
            st.code(threshold, language=None, wrap_lines=True)
        st.caption("In windowpane.yml, the alert off in all sessions:")
        st.code(disable, language=None, wrap_lines=True)


def _delivery_list(sent: tuple[MessageDelivery, ...]) -> None:
    if not sent:
        st.text("No notification was sent: no channel is set, or the session was imported.")
        return
    for one in sent:
        icon = ":material/check_circle:" if one.arrived else ":material/error:"
        result = "delivered to" if one.arrived else "not delivered to"
        tries = f" after {count(one.attempts, 'attempt')}" if one.attempts > 1 else ""
        why = f": {one.reason}" if one.reason else ""
        st.markdown(f"{icon} {escape_markdown(f'{one.state} {result} {one.channel}{tries}{why}')}")


def runbook_entry(alert: str) -> None:
    """Draw the runbook's entry of an alert: what to do, its meaning and its effect."""
    rule, guidance = RULES_BY_NAME.get(alert), GUIDANCE.get(alert)
    if rule is None or guidance is None:
        st.text("This alert is not in the runbook of this release.")
        return
    st.markdown("**What to do.**\n" + "\n".join(f"{n}. {step}" for n, step in enumerate(guidance.steps, 1)))
    with st.expander("Runbook", icon=":material/menu_book:"):
        if rule.threshold is not None:
            st.caption(f"It fires for: {escape_markdown(condition_text(rule))}.")
        st.markdown(f"**What it means.** {guidance.means}")
        st.markdown(f"**Why it matters.** {guidance.matters}")


def send_test_section() -> None:
    """Draw the form that sends a test message to a configured channel, or to another address where it is allowed.

    A visitor of the page must not be able to make this machine send requests to addresses of their choice.
    """
    config = load_config()
    settings = config.notify
    urls = [channel.url.get_secret_value() for channel in config.channels()]
    channels = {f"{number}. {url.partition(':')[0]}": url for number, url in enumerate(urls, 1)}
    with st.expander("Send a test message", icon=":material/send:"), st.form("alerts_test", border=False):
        left, right = st.columns([5, 1], vertical_alignment="bottom")
        left.selectbox(
            "Channel",
            channels,
            key=CHANNEL,
            help="The receivers in `notify.channels` and of the projects, by their kind.",
        )
        if settings.test_any_address:
            left.text_input(
                "Another address",
                key=ADDRESS,
                placeholder="json://127.0.0.1:8000/hook",
                autocomplete="off",
                max_chars=1_000,
                help="Any Apprise address, `alertmanager://host:port`, or `log://`. A plain webhook "
                "is written `json://`, or `jsons://` for HTTPS. It is used once and not stored.",
            )
        sent = right.form_submit_button("Send", icon=":material/send:", width="stretch")
        if sent:
            typed = st.session_state[ADDRESS].strip() if settings.test_any_address else ""
            st.session_state[RESULT] = _send(typed or channels.get(st.session_state[CHANNEL], ""))
        _show(st.session_state.get(RESULT))


def _send(address: str) -> TestResult | str:
    if not address:
        return "Configure a channel in notify.channels first."
    with st.spinner("Sending …"):
        try:
            return send_test(address)
        except ConfigurationError as error:
            return str(error)


def _show(result: TestResult | str | None) -> None:
    if result is None:
        return
    if isinstance(result, str):
        st.warning("Not sent.", icon=":material/error:")
        widgets.show_text(result)
    elif result.delivered:
        st.success("Delivered: the channel accepted the message.", icon=":material/check_circle:")
        widgets.show_text(f"Channel: {result.channel}")
    else:
        st.error("Not delivered.", icon=":material/error:")
        widgets.show_text(f"Channel {result.channel}: {result.reason}")
