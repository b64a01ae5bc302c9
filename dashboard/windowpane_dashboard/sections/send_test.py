"""Sends a test message to a channel and shows whether it was taken."""

from __future__ import annotations

import streamlit as st

from windowpane.alerts.delivery.notifier import TestResult, send_test
from windowpane.exceptions import ConfigurationError
from windowpane_dashboard.page import widgets as elements

ADDRESS = "alerts_channel"
RESULT = "alerts_test_result"


def send_test_section() -> None:
    """Draw the form; the address is used once and kept nowhere."""
    with st.expander("Send a test message", icon=":material/send:"), st.form("alerts_test", border=False):
        left, right = st.columns([5, 1], vertical_alignment="bottom")
        left.text_input(
            "Channel",
            key=ADDRESS,
            placeholder="json://127.0.0.1:8000/hook",
            autocomplete="off",
            max_chars=1_000,
            help="Any Apprise address, `alertmanager://host:port`, or `log://`. A plain webhook "
            "is written `json://`, or `jsons://` for HTTPS. It is used once and not kept.",
        )
        sent = right.form_submit_button("Send", icon=":material/send:", width="stretch")
        if sent:
            st.session_state[RESULT] = _send(st.session_state[ADDRESS].strip())
        _show(st.session_state.get(RESULT))


def _send(address: str) -> TestResult | str:
    if not address:
        return "Enter the address of a channel first."
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
        elements.said(result)
    elif result.delivered:
        st.success("Delivered: the channel took the message.", icon=":material/check_circle:")
        elements.said(f"Channel: {result.channel}")
    else:
        st.error("Not delivered.", icon=":material/error:")
        elements.said(f"Channel {result.channel}: {result.reason}")
