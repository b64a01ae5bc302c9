"""Replay: recorded sessions under other policies, presets, windows and thresholds, compared."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from windowpane.core.characters import plain
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow
from windowpane.store.replays import StoredReplay
from windowpane.text.formats import count
from windowpane_dashboard.charts.replays import MAXIMUM_PANES, replay_panes
from windowpane_dashboard.page import address, messages, store_access, times, widget_state, widgets
from windowpane_dashboard.page.number_formats import DOLLARS, SCORE, SHARE, SMALL_SHARE, TOKENS_SHORT
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
from windowpane_dashboard.sections.simulate import simulate_section
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
        is_filled_in = position.simulate is not None and position.id is None
        stored = None if is_filled_in else chosen_replay(snapshot, position.id)
        address.write(PAGE, st.query_params.to_dict())
        simulate_section(snapshot, position, open_=stored is None)
        if stored is None:
            with head:
                widgets.headline(
                    "The form is filled in: press Simulate."
                    if is_filled_in
                    else "No replay is stored yet: choose sessions and policies, then simulate.",
                    PAGE,
                )
            if position.simulate is not None:
                results_section((), recorded_sessions(snapshot, [position.simulate]))
        else:
            results = results_by_setup(stored.runs)
            with head:
                widgets.headline(replay_headline(results), PAGE)
            recorded = recorded_sessions(snapshot, sessions_of(results))
            results_section(results, recorded)
            timelines_section(results, position, {row.session_id: picker_label(row) for row in recorded})
            configuration_section(results, position)
            notes_section(stored)
        threshold_section(snapshot)


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


def bound_select(
    label: str,
    options: list[str],
    requested: str | None,
    *,
    name: str,
    default: str,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Draw a selection for the parameter *name* of the address; return the choice."""
    chosen: str = st.selectbox(
        label,
        options,
        format_func=lambda option: plain(labels.get(option, option)),
        **address.bound_widget(PAGE, name, requested if requested in options else default),
    )
    return chosen


def recorded_sessions(snapshot: StoreSnapshot, names: list[str]) -> list[SessionRow]:
    """Return the sessions that are stored."""
    return [row for name in names if (row := snapshot.store.session(name)) is not None]


def results_section(results: tuple[SetupResult, ...], recorded: list[SessionRow]) -> None:
    """Draw the table of setups below the sessions as they were recorded."""
    frame = results_frame(results, recorded)
    if frame.empty:
        return
    config = st.column_config
    widgets.table(
        frame,
        key="replay_results",
        alt="Values of each setup over all its sessions",
        numbers={
            "tokens sent": TOKENS_SHORT,
            "cost tokens": TOKENS_SHORT,
            "dollars": DOLLARS,
            "cached": SHARE,
            "names kept": SCORE,
            "share of all": SMALL_SHARE,
            "peak": SHARE,
        },
        column_config={
            "under": config.TextColumn(width=190),
            "sessions": config.NumberColumn(width=70),
            "overflows": config.NumberColumn(width=80, help="calls without room for their output"),
            "tokens sent": config.NumberColumn(width=88),
            "cost tokens": config.NumberColumn(
                width=88, help="at the price of fresh input: cached 0.10, all else 1.25"
            ),
            "dollars": config.NumberColumn(width=76, help="list price of the sent tokens"),
            "cached": config.NumberColumn(width=64),
            "removed blocks": config.NumberColumn(width=104),
            "compactions": config.NumberColumn(width=100),
            "names kept": config.NumberColumn(width=84, help="removed names still visible, 0 to 1"),
            "needed again": config.NumberColumn(width=96, help="blocks, within 20 turns of their removal"),
            "share of all": config.NumberColumn(width=84, help="of all content tokens"),
            "peak": config.NumberColumn(width=60, help="highest utilization"),
        },
    )
    st.caption(
        "Messages, tool results and answers are recorded; the window's "
        "management is simulated. "
        "The sessions as recorded include tokens that the recording does not show. "
        "Best overall: fewest overflows, then most names kept, then least cost."
    )


def timelines_section(
    results: tuple[SetupResult, ...], position: ReplayAddress, labels: Mapping[str, str]
) -> None:
    """Draw the size of each call under every setup, one above the other; *labels* name the sessions."""
    st.subheader("Timelines", anchor=False, divider="grey")
    sessions = sessions_of(results)
    chosen = sessions[0]
    if len(sessions) > 1:
        chosen = bound_select(
            "Session", sessions, position.session, name="session", default=chosen, labels=labels
        )
    else:
        st.caption(escape_markdown(labels.get(chosen, chosen)))
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
    best = best_setup(results)
    names = [result.setup for result in results if result.kind == "managed"]
    if not names:
        st.text("Only baselines were replayed; no configuration reproduces them.")
        return
    default = best.setup if best is not None and best.setup in names else names[0]
    chosen = bound_select("Setup", names, position.setup, name="setup", default=default)
    config = next(result.config for result in results if result.setup == chosen)
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
        help="Saves the configuration of this setup as windowpane.yml.",
    )
    use.caption("Save it as the file that WINDOWPANE_CONFIG names, or pass the same names as arguments.")


def notes_section(stored: StoredReplay) -> None:
    """Draw the sessions that could not be replayed, with the reason."""
    if stored.row.notes:
        with st.expander(f"Not replayed: {len(stored.row.notes)}", icon=":material/info:"):
            for note in stored.row.notes[:50]:
                widgets.show_text(note)


main()
