"""The causes of a session's cost and its findings: where to see each, and a replay that shows the change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from windowpane.report.cost_causes import CostCause, causes_sentence, cost_causes
from windowpane.report.findings import Evidence, Finding, findings, read_evidence
from windowpane.report.headline import Phrase
from windowpane.store.records import SessionRow
from windowpane.text.formats import dollars, percent
from windowpane_dashboard.page import store_access
from windowpane_dashboard.page.linked_headline import Target, linked_sentence
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import ReplayAddress, SessionAddress
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.sections.timeline import select_turn
from windowpane_dashboard.style.sanitize import escape_markdown


class _Line(NamedTuple):
    """A cause or a finding, with the turns in which it can be seen."""

    amount: str
    text: str
    finding: Finding | None
    at_turns: Sequence[Evidence]


def cost_sentence(snapshot: StoreSnapshot, row: SessionRow) -> None:
    """Draw what the session cost and why as a link to the causes, where it is known."""
    causes, _ = _read(snapshot, row)
    if causes:
        sentence = Phrase(causes_sentence(causes, estimated=row.is_cost_estimated), "cost")
        target = Target("session", SessionAddress(row.session_id, tab="cost"))
        linked_sentence([sentence], {"cost": target}, key="cost_sentence")


def causes_section(snapshot: StoreSnapshot, row: SessionRow, timeline: Timeline) -> None:
    """Draw the causes, which add up to the cost, each with what was found about it; then the other findings."""
    causes, listed = _read(snapshot, row)
    last = int(timeline.turns["turn"].iloc[-1])
    lines = [
        _Line(
            f"**{escape_markdown(dollars(cause.dollars))}** · {percent(cause.share)}",
            ": ".join(filter(None, (cause.name.capitalize(), cause.advice))),
            cause.finding,
            cause.finding.evidence if cause.finding else [Evidence(turn, "") for turn in cause.turns],
        )
        for cause in causes
    ]
    explained = [cause.finding for cause in causes]
    for finding in listed:
        if finding not in explained:
            part = "" if finding.dollars is None else f"{escape_markdown(dollars(finding.dollars))} of these"
            lines.append(_Line(part, f"{finding.text}. {finding.advice}", finding, finding.evidence))
    for number, line in enumerate(lines):
        _draw(row, line, number, last)


def _read(snapshot: StoreSnapshot, row: SessionRow) -> tuple[tuple[CostCause, ...], tuple[Finding, ...]]:
    def read() -> tuple[tuple[CostCause, ...], tuple[Finding, ...]]:
        evidence = read_evidence(snapshot.store, row, snapshot.store.turns(row.session_id), now=time.time())
        listed = findings(evidence)
        causes = cost_causes(evidence.counted_turns, evidence.breaks, total=row.cost_dollars, findings=listed)
        return causes, listed

    name = "causes" if row.ended else f"causes {int(time.time() // 60)}"
    causes: tuple[tuple[CostCause, ...], tuple[Finding, ...]] = store_access.cached_for_session(
        snapshot, row, name, read
    )
    return causes


def _draw(row: SessionRow, line: _Line, number: int, last: int) -> None:
    finding = line.finding
    money, text, turns, action = st.columns([1.3, 7, 2.4, 1.6], vertical_alignment="center", gap="small")
    money.markdown(line.amount)
    text.markdown(escape_markdown(line.text))
    with turns, st.container(horizontal=True, gap="small"):
        for index, turn in enumerate(dict.fromkeys(evidence.turn for evidence in line.at_turns)):
            here = "; ".join(evidence.text for evidence in line.at_turns if evidence.turn == turn)
            st.button(
                f"turn {turn}",
                key=f"finding_{number}_{index}",
                help=escape_markdown(here) or None,
                type="tertiary",
                on_click=_show,
                args=(f"finding_{number}_{index}", turn, last),
            )
    trial = finding and finding.trial
    if trial and action.button("Try in Replay", key=f"finding_replay_{number}"):
        position = ReplayAddress(
            simulate=row.session_id, policies=",".join(trial.policies), window=str(trial.window_tokens)
        )
        st.switch_page("views/replay.py", query_params=position.to_query())


def _show(key: str, turn: int, last: int) -> None:
    """Select the turn of a piece of evidence, if its button was pressed in the session that is shown."""
    if st.session_state.get(key):
        select_turn(turn, last)
