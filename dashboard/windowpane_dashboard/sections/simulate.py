"""The form that starts a simulation, and its progress."""

from __future__ import annotations

from typing import Final

import streamlit as st

from windowpane.core.characters import plain
from windowpane.core.store_names import full_name
from windowpane.evaluation.replay import combine_setups
from windowpane.evaluation.replay.setups import preset_names
from windowpane.exceptions import ConfigurationError
from windowpane.store.records import SessionRow
from windowpane.text.formats import count
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.session_picker import offered_sessions
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import ReplayAddress
from windowpane_dashboard.queries.titles import picker_label
from windowpane_dashboard.replay.jobs import SimulationJob, start_simulation
from windowpane_dashboard.replay.worker import SimulationRequest
from windowpane_dashboard.style.sanitize import escape_markdown

JOB: Final = "replay_job"
FILLED: Final = "replay_filled"
DEFAULT_POLICIES: Final = ("hybrid", "fifo")
WINDOWS: Final = ("8k", "16k", "32k", "64k", "128k", "200k", "400k", "1m")
POLL_SECONDS: Final = 0.5


def policies() -> list[str]:
    """Return every policy of this release."""
    return [setup.policy for setup in combine_setups(limits=[8_192], policies=["all"])]


def simulate_section(snapshot: StoreSnapshot, position: ReplayAddress, *, open_: bool) -> None:
    """Draw the form, filled in with the values of the address, or the progress of the running simulation."""
    if not snapshot.is_admin:
        st.caption("Simulations are started by admins; their results are listed here.")
        return
    _fill_in(position)
    job: SimulationJob | None = st.session_state.get(JOB)
    if job is not None:
        _progress(job)
        return
    with (
        st.expander("Simulate", icon=":material/play_arrow:", expanded=open_ or position.simulate is not None),
        st.form("replay_form", border=False),
    ):
        request = _form(snapshot)
        if st.form_submit_button("Simulate", type="primary", icon=":material/play_arrow:"):
            _start(request)


def _fill_in(position: ReplayAddress) -> None:
    """Set the form to the address, once for each address; what the user changes after that stays."""
    if position.simulate is None or st.session_state.get(FILLED) == position:
        return
    st.session_state[FILLED] = position
    chosen = set(position.policies.split(",")) if position.policies else DEFAULT_POLICIES
    st.session_state["replay_sessions"] = [position.simulate]
    st.session_state["replay_policies"] = [name for name in policies() if name in chosen]
    st.session_state["replay_windows"] = [position.window or WINDOWS[2]]


def _form(snapshot: StoreSnapshot) -> SimulationRequest:
    rows = offered_sessions(snapshot, *st.session_state.get("replay_sessions", ()))
    sessions = st.multiselect(
        "Recorded sessions",
        list(rows),
        format_func=lambda name: plain(_recorded_label(rows[name]) if name in rows else name),
        key="replay_sessions",
        help="Policies that read content need sessions whose content was captured.",
    )
    st.session_state.setdefault("replay_policies", list(DEFAULT_POLICIES))
    st.session_state.setdefault("replay_windows", ["32k"])
    left, middle, right = st.columns(3)
    chosen = left.multiselect("Policies", policies(), key="replay_policies")
    presets = middle.multiselect("Presets", preset_names(), key="replay_presets")
    windows = right.multiselect(
        "Windows",
        WINDOWS,
        key="replay_windows",
        accept_new_options=True,
        help="Tokens, such as 8k, 200k or 131072; type any other size.",
    )
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    zones = left.text_input(
        "Thresholds",
        key="replay_thresholds",
        placeholder="the window's defaults",
        help="Where removal starts, such as 0.7, or yellow/orange/red such as 0.5/0.7/0.9; comma-separated.",
    )
    name = middle.text_input("Name", key="replay_name", placeholder="the first session's", max_chars=100)
    baselines = right.checkbox("Compare with no policy", key="replay_baselines")
    return SimulationRequest(
        store=full_name(store_access.whole_store().address),
        sessions=tuple(sessions),
        policies=tuple(chosen),
        presets=tuple(presets),
        windows=tuple(windows),
        thresholds=zones or "",
        baselines=baselines,
        name=(name or "").strip(),
    )


def _recorded_label(row: SessionRow) -> str:
    return f"{picker_label(row)}  ·  {count(row.turns, 'turn')}"


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
