"""Replay: recorded sessions under other policies, presets, windows and thresholds, compared."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from windowpane.core.characters import plain
from windowpane.store.filters import SessionFilter
from windowpane.store.replays import StoredReplay
from windowpane.text.formats import count
from windowpane_dashboard.charts.replays import MAXIMUM_PANES, replay_panes
from windowpane_dashboard.page import address, messages, store_access, times, widget_state, widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SHARE
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import ReplayAddress
from windowpane_dashboard.queries.replays import (
    SetupResult,
    best_setup,
    replay_headline,
    replay_label,
    results_by_setup,
    results_frame,
    run_summary,
    sessions_of,
    timelines_frame,
    timelines_of,
)
from windowpane_dashboard.queries.titles import picker_label
from windowpane_dashboard.sections.simulate import JOB, simulate_section
from windowpane_dashboard.sections.threshold_advice import threshold_section
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized

PAGE, CHOICE = "replay", "replay_choice"
LISTED = 200
CONFIG_CHARS = 100_000


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors(
        "The replays cannot be read", "Simulations can also be run by: windowpane replay"
    ):
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            messages.show_empty("The store is there, but it holds no sessions yet.")
        head = st.container()
        position = ReplayAddress.from_query(st.query_params.to_dict())
        is_filled_in = position.simulated is not None and position.id is None
        stored = None if is_filled_in else chosen_replay(snapshot, position.id)
        address.write(PAGE, st.query_params.to_dict())
        if is_filled_in:
            simulate_section(snapshot, position, open_=True)
            answer = "Simulating …" if JOB in st.session_state else "The form is filled in: press Simulate."
        elif stored is None:
            answer = threshold_section(snapshot, omits_first=True)
            simulate_section(snapshot, position, open_=True)
        else:
            results = results_by_setup(stored.runs)
            answer = replay_headline(results)
            simulate_section(snapshot, position, open_=False)
            results_section(results)
            timelines_section(snapshot, results, position)
            configuration_section(results, position)
            notes_section(stored)
            threshold_section(snapshot)
        with head:
            widgets.headline(answer, PAGE)


def chosen_replay(snapshot: StoreSnapshot, requested: str | None) -> StoredReplay | None:
    """Return the replay of the address, else the latest; draw the selection."""
    listed = snapshot.store.replays(limit=LISTED)
    rows = {row.id: row for row in listed}
    stored = snapshot.store.replay(requested) if requested else None
    if requested and stored is None:
        st.warning("This replay is not in the store; the latest is shown.", icon=":material/search_off:")
    if stored is None and listed:
        stored = snapshot.store.replay(listed[0].id)
    if stored is None:
        return None
    rows.setdefault(stored.row.id, stored.row)
    key = widget_state.fresh_key(CHOICE, stored.row.id)
    st.selectbox(
        "Stored replay",
        list(rows),
        key=key,
        format_func=lambda name: plain(replay_label(rows[name], times.local(rows[name].at))),
        on_change=lambda: widget_state.apply(CHOICE, key, lambda name: st.query_params.from_dict({"id": name})),
    )
    if requested != stored.row.id:
        st.query_params.from_dict({"id": stored.row.id})
    return stored


def bound_select(label: str, labels: Mapping[str, str], requested: str | None, *, default: str) -> str:
    """Draw a selection for the parameter of the address that the *label* names; return the choice."""
    visible = requested if requested in labels else default
    bound = address.bound_widget(PAGE, label.lower(), visible)
    return str(st.selectbox(label, list(labels), format_func=lambda option: plain(labels[option]), **bound))


def results_section(results: tuple[SetupResult, ...]) -> None:
    """Draw the table of setups."""
    frame = results_frame(results)
    if frame.empty:
        return
    config = st.column_config
    widgets.table(
        frame,
        key="replay_results",
        alt="Values of each setup over all its sessions",
        numbers={"cost": DOLLARS, "still visible": SHARE},
        column_config={
            "what removes content": config.TextColumn(width=142),
            "cost": config.NumberColumn(width=56),
            "still visible": config.NumberColumn(width=74),
            "needed again": config.NumberColumn(width=84),
        },
    )
    st.caption(
        "Still visible: names in removed content that the window still shows. All rows replay the same recorded "
        "messages, tool results and replies at list prices. What an agent was charged is on "
        "the Session page: it includes content that no recording has, so it cannot be compared with these."
    )


def timelines_section(snapshot: StoreSnapshot, results: tuple[SetupResult, ...], position: ReplayAddress) -> None:
    """Draw the size of each call under every setup, one above the other."""
    st.subheader("Timelines", anchor=False, divider="grey")
    sessions = sessions_of(results)
    rows = {name: snapshot.store.session(name) for name in sessions}
    labels = {name: name if row is None else picker_label(row) for name, row in rows.items()}
    chosen = sessions[0]
    if len(sessions) > 1:
        chosen = bound_select("Session", labels, position.session, default=chosen)
    else:
        st.caption(escape_markdown(labels[chosen]))
    runs = timelines_of(results, chosen)
    if len(runs) > MAXIMUM_PANES:
        st.caption(f"The first {MAXIMUM_PANES} of {count(len(runs), 'setup')}.")
    widgets.chart(
        replay_panes(runs, widgets.current_palette()),
        key="replay_panes",
        alt="Tokens of each call. " + "; ".join(run_summary(run) for run in runs[:MAXIMUM_PANES]),
    )
    widgets.folded_table(
        "Timelines as a table", lambda: timelines_frame(runs), key="replay_data", alt="Tokens of each call"
    )
    if runs[0].note:
        st.caption(escape_markdown(runs[0].note))


def configuration_section(results: tuple[SetupResult, ...], position: ReplayAddress) -> None:
    """Draw the configuration that manages live sessions like the chosen setup."""
    st.subheader("Configuration", anchor=False, divider="grey")
    managed = [result for result in results if result.kind == "managed"]
    if not managed:
        st.text("Only baselines were replayed; no configuration reproduces them.")
        return
    titles = {result.setup: result.title for result in managed}
    default = best_setup(managed) or managed[0]
    chosen = bound_select("Setup", titles, position.setup, default=default.setup)
    config = next(result.config for result in managed if result.setup == chosen)
    st.code(sanitized(config, length=CONFIG_CHARS), language=None)  # the colors of highlighted code are too pale
    save, use = st.columns([1.4, 6], vertical_alignment="center")
    save.download_button(
        "Configuration",
        data=config.encode(errors="replace"),
        file_name="windowpane.yml",
        mime="application/yaml",
        icon=":material/download:",
        on_click="ignore",
        width="stretch",
    )
    use.caption("Save it as the file that WINDOWPANE_CONFIG names, or pass the same names as arguments.")


def notes_section(stored: StoredReplay) -> None:
    """Draw the sessions that could not be replayed, with the reason."""
    if stored.row.notes:
        with st.expander(f"Not replayed: {len(stored.row.notes)}", icon=":material/info:"):
            for note in stored.row.notes[:50]:
                widgets.show_text(note)


main()
