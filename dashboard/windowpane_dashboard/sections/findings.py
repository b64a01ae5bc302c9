"""Findings: what a session spent in vain, where to see it, and a replay that shows what would change."""

from __future__ import annotations

import time

import streamlit as st

from windowpane.report.findings import Finding, findings, read_evidence
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars
from windowpane_dashboard.page import store_access
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import ReplayAddress
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.sections.timeline import select_turn
from windowpane_dashboard.style.sanitize import escape_markdown

LABELS = {
    "cache_breaks": "cache breaks",
    "stale": "stale content",
    "duplicates": "repeated content",
    "tool_flood": "one tool",
    "unused_tools": "unused tools",
    "compaction_soon": "compaction soon",
    "lost_content": "lost content",
}
NAMED = 4


def findings_section(snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline) -> None:
    """Draw the findings of the session folded under their sum, if there are any."""
    turns = snapshot.store.turns
    listed: tuple[Finding, ...] = store_access.cached_for_session(
        snapshot,
        row,
        f"findings {int(time.time() // 60)}" if not row.ended else "findings",
        lambda: findings(read_evidence(snapshot.store, row, turns(row.session_id), now=time.time())),
    )
    if not listed:
        return
    last = int(timeline.turns["turn"].iloc[-1])
    with st.expander(escape_markdown(summary(listed)), icon=":material/lightbulb:", key="findings"):
        for number, finding in enumerate(listed):
            _finding(row, finding, number, last)


def summary(listed: tuple[Finding, ...]) -> str:
    """Return the number of findings with the most expensive ones."""
    parts = [
        LABELS[finding.kind] + ("" if finding.dollars is None else f" {dollars(finding.dollars)}")
        for finding in listed[:NAMED]
    ]
    return f"{count(len(listed), 'finding')}: {', '.join(parts)}"


def _finding(row: SessionRow, finding: Finding, number: int, last: int) -> None:
    money, text, action = st.columns([1, 7, 2], vertical_alignment="center")
    money.markdown(f"**{escape_markdown(dollars(finding.dollars))}**")
    with text:
        st.markdown(escape_markdown(f"{finding.text}. {finding.advice}"))
        with st.container(horizontal=True):
            for index, evidence in enumerate(finding.evidence):
                st.button(
                    escape_markdown(f"turn {evidence.turn}"),
                    key=f"finding_{number}_{index}",
                    help=escape_markdown(evidence.text),
                    type="tertiary",
                    on_click=_show,
                    args=(f"finding_{number}_{index}", evidence.turn, last),
                )
    if action.button("Try in Replay", key=f"finding_replay_{number}", icon=":material/replay:"):
        trial = finding.trial
        position = ReplayAddress(
            simulate=row.session_id, policies=",".join(trial.policies), window=str(trial.window_tokens)
        )
        st.switch_page("views/replay.py", query_params=position.to_query())


def _show(key: str, turn: int, last: int) -> None:
    """Select the turn of a piece of evidence, if its button was pressed in the session that is shown."""
    if st.session_state.get(key):
        select_turn(turn, last)
