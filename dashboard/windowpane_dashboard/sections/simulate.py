"""The form that starts a simulation, and its progress."""

from __future__ import annotations

from typing import Final

import streamlit as st

from windowpane.core.characters import plain
from windowpane.core.store_names import full_name
from windowpane.evaluation.replay import StoreSource
from windowpane.evaluation.replay.setups import (
    MINIMUM_LIMIT_TOKENS,
    ReplaySetup,
    format_window,
    parse_window,
    preset_names,
)
from windowpane.exceptions import ConfigurationError
from windowpane.report.findings import BLIND_POLICY
from windowpane.store.records import SessionRow
from windowpane.text.formats import count
from windowpane.text.labels import POLICY_LABELS
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.session_picker import offered_sessions
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import ReplayAddress
from windowpane_dashboard.queries.titles import picker_label, session_title
from windowpane_dashboard.replay.jobs import SimulationJob, start_simulation
from windowpane_dashboard.replay.worker import SimulationRequest
from windowpane_dashboard.style.sanitize import escape_markdown

JOB: Final = "replay_job"
FILLED: Final = "replay_filled"
DEFAULT_POLICIES: Final = ("hybrid",)
NAME_CHARACTERS: Final = 100
MAXIMUM_SHARE: Final = 0.8
"""Part of the fullest window from which on a smaller one must remove something."""
WINDOWS: Final = ("8k", "16k", "32k", "64k", "128k", "200k", "400k", "1m")
POLL_SECONDS: Final = 0.5


def simulate_section(snapshot: StoreSnapshot, position: ReplayAddress, *, open_: bool) -> None:
    """Draw the form, filled in with the values of the address, or the progress of the running simulation."""
    if not snapshot.is_admin:
        st.caption("Simulations are started by admins; their results are listed here.")
        return
    _fill_in(snapshot, position)
    job: SimulationJob | None = st.session_state.get(JOB)
    if job is not None:
        _progress(job)
        return
    is_open = open_ or position.simulated is not None
    with (
        st.expander("Try other settings", icon=":material/tune:", expanded=is_open),
        st.form("replay_form", border=False),
    ):
        request = _form(snapshot)
        if st.form_submit_button("Simulate", type="primary", icon=":material/play_arrow:"):
            _start(request)


def _fill_in(snapshot: StoreSnapshot, position: ReplayAddress) -> None:
    """Set the form to the address, once for each address; what the user changes after that stays."""
    if position.simulated is None or st.session_state.get(FILLED) == position:
        return
    st.session_state[FILLED] = position
    requested = (position.policies or "").split(",")
    chosen = {name for name in requested if name in POLICY_LABELS} or {*DEFAULT_POLICIES, BLIND_POLICY}
    row = snapshot.store.session(position.simulated)
    if row is not None and not StoreSource(store_access.whole_store().address, row.session_id).load().has_content:
        chosen -= {name for name in chosen if ReplaySetup(MINIMUM_LIMIT_TOKENS, policy=name).reads_content}
    st.session_state["replay_sessions"] = [position.simulated]
    st.session_state["replay_policies"] = [name for name in POLICY_LABELS if name in chosen]
    st.session_state["replay_windows"] = trial_windows(row, position.window)


def trial_windows(row: SessionRow | None, window: str | None) -> list[str]:
    """Return the session's window, and a part of it in which content must be removed."""
    limit = (row and row.limit_tokens) or parse_window(window or WINDOWS[2])
    smaller, peak = limit, (row and row.peak_utilization) or 0.0
    while peak and smaller > max(MAXIMUM_SHARE * peak * limit, 2 * MINIMUM_LIMIT_TOKENS):
        smaller //= 2
    sizes = dict.fromkeys((limit, smaller))
    names = {size: format_window(size) for size in sizes}
    is_exact = {size: "." not in name and parse_window(name) == size for size, name in names.items()}
    return [name if is_exact[size] else str(size) for size, name in names.items()]


def _form(snapshot: StoreSnapshot) -> SimulationRequest:
    rows = offered_sessions(snapshot, *st.session_state.get("replay_sessions", ()))
    names = {name: f"{picker_label(row)}  ·  {count(row.turns, 'turn')}" for name, row in rows.items()}
    sessions = st.multiselect(
        "Recorded sessions",
        list(rows),
        format_func=lambda one: plain(names.get(one) or one),
        key="replay_sessions",
    )
    st.session_state.setdefault("replay_policies", list(DEFAULT_POLICIES))
    st.session_state.setdefault("replay_windows", ["32k"])
    left, right = st.columns(2)
    chosen = left.multiselect(
        "Remove before compaction",
        list(POLICY_LABELS),
        format_func=lambda name: POLICY_LABELS[name],
        key="replay_policies",
        help="All but oldest first and too old for its type need the captured content of the session.",
    )
    windows = right.multiselect(
        "Size of the window",
        WINDOWS,
        key="replay_windows",
        accept_new_options=True,
        help="Tokens, such as 8k, 200k or 131072; type any other size.",
    )
    left, right = st.columns(2)
    presets = left.multiselect("Or like another framework", preset_names(), key="replay_presets")
    zones = right.text_input(
        "Start when the window is this full",
        key="replay_thresholds",
        placeholder="by default",
        help="Such as 0.7, or 0.5/0.7/0.9 for where yellow, orange and red start; comma-separated.",
    )
    return SimulationRequest(
        store=full_name(store_access.whole_store().address),
        sessions=tuple(sessions),
        policies=tuple(chosen),
        presets=tuple(presets),
        windows=tuple(windows),
        thresholds=zones or "",
        name=session_title(rows[sessions[0]])[:NAME_CHARACTERS] if sessions and sessions[0] in rows else "",
    )


def _start(request: SimulationRequest) -> None:
    try:
        request.setups()
    except ConfigurationError as error:
        st.warning("Not simulated.", icon=":material/error:")
        widgets.show_text(str(error))
        return
    st.session_state[JOB] = start_simulation(request)
    st.rerun()


@st.fragment(run_every=POLL_SECONDS)
def _progress(job: SimulationJob) -> None:
    if job.replay:
        st.session_state.pop(JOB, None)
        st.query_params.from_dict({"id": job.replay})
        st.rerun(scope="app")
    if job.error:
        st.error("The simulation did not finish.", icon=":material/error:")
        widgets.show_text(job.error)
        if st.button("Back to the form"):
            st.session_state.pop(JOB, None)
            st.rerun(scope="app")
        return
    steps = f"{job.done} of {job.total} steps" if job.total else "reading the sessions"
    st.progress(job.share, text=escape_markdown(f"Simulating {job.title}: {steps}"))
    st.button("Stop", icon=":material/stop:", on_click=job.stop)
