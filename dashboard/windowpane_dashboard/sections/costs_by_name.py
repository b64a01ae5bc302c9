"""Costs by name: of tools, MCP servers, skills, memory files, and files or commands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import pandas as pd
import streamlit as st

from windowpane.report.composition import NAME_KINDS, NamedCost, NameKind, costs_by_name, servers_of
from windowpane.store.clickhouse.fallback import ReadsWithFallback
from windowpane.store.reads.tool_use import COMPARED_SESSIONS
from windowpane.store.records import Composition
from windowpane.text.formats import count, dollars
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.number_formats import DOLLARS
from windowpane_dashboard.queries.filters import TrendAddress
from windowpane_dashboard.queries.tool_use import end_of
from windowpane_dashboard.sections.tool_use import uses_table
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized

ROWS: Final = 50
LISTED: Final = 3
"""Names of tools that were never called, in a sentence."""
REPOSITORIES: Final = 2
"""Of one row."""
KINDS: Final = {**{str(kind): label for kind, label in NAME_KINDS.items()}, "file": "tool, file or command"}
SELECT_PIXELS: Final = 220
SERVER: Final = "mcp__"
_OPTIONAL: Final = ("calls", "≈ per call", "tokens of its definition", "never called", "repositories")
SHARE_NOTE: Final = "≈ the part of each call's price that its tokens make up."


def costs_by_name_section(
    reads: ReadsWithFallback, composition: Composition, total: float, position: TrendAddress, *, page: str
) -> None:
    """Draw the names that cost most in the sessions of the range and the repository, which cost *total*."""
    st.subheader("What costs most", anchor=False, divider="grey")
    options = {**KINDS, **{f"{SERVER}{name}": f"tool of {name}" for name in servers_of(composition.content)}}
    top = position.top or "tool"
    widgets.filter_select(
        st.container(width=SELECT_PIXELS),
        "Sum by",
        list(options),
        top,
        page=page,
        name="top",
        format_func=lambda name: options.get(name, name),
    )
    if top == "file":
        _files(reads, composition, position)
        return
    kind: NameKind = next((kind for kind in NAME_KINDS if kind == top), "tool")
    server = None if top in KINDS else top.removeprefix(SERVER)
    _names(costs_by_name(composition.content, kind, server=server), kind, composition, total)


def _names(costs: Sequence[NamedCost], kind: NameKind, composition: Composition, total: float) -> None:
    if not costs:
        st.text(f"No {NAME_KINDS[kind]} is recorded in {_sessions(composition)}.")
        return
    st.text(sanitized(names_sentence(costs)))
    paid = sum(cost.dollars or 0.0 for cost in costs)
    share = f": {dollars(paid)} of {dollars(total)}, the rest is other content" if paid < total else ""
    st.caption(escape_markdown(f"Over {_sessions(composition)} from their first day on{share}. {SHARE_NOTE}"))
    config = st.column_config
    frame = names_frame(costs[:ROWS], kind)
    widgets.table(
        frame,
        key=f"names_{kind}",
        alt=f"Costs by {NAME_KINDS[kind]}",
        height="content" if len(frame) <= 10 else 400,
        numbers={"≈ cost": DOLLARS, "≈ per call": DOLLARS},
        column_config={
            NAME_KINDS[kind]: config.TextColumn(width=190),
            "≈ cost": config.NumberColumn(width=76),
            "tokens of its definition": config.NumberColumn(width=150),
            "tokens sent": config.NumberColumn(width=126),
            "repositories": config.TextColumn(width=260),
        },
    )


def names_sentence(costs: Sequence[NamedCost]) -> str:
    """Return the answer of the table: the most expensive name, and the tools that were sent and never called."""
    first = costs[0]
    where = f", most in {next(iter(first.repositories))}" if len(first.repositories) > 1 else ""
    calls = f" for {count(first.calls, 'tool call')}" if first.calls else ""
    sentence = f"{first.name} costs most: {dollars(first.dollars)}{calls}{where}."
    unused = [cost for cost in costs if cost.definition_tokens is not None and not cost.calls]
    if not unused:
        return sentence
    names = ", ".join(cost.name for cost in unused[:LISTED])
    more = f" and {len(unused) - LISTED} more" if len(unused) > LISTED else ""
    paid = sum(cost.dollars or 0.0 for cost in unused)
    return f"{sentence} Sent and never called: {names}{more}, {dollars(paid)}."


def names_frame(costs: Sequence[NamedCost], kind: NameKind) -> pd.DataFrame:
    """Return one row per name, without columns in which no name has a value."""
    frame = pd.DataFrame(
        {
            NAME_KINDS[kind]: [end_of(cost.name) for cost in costs],
            "≈ cost": pd.array([cost.dollars for cost in costs], dtype="Float64"),
            "calls": [cost.calls for cost in costs],
            "≈ per call": pd.array([cost.dollars_per_call for cost in costs], dtype="Float64"),
            "tokens of its definition": pd.array([cost.definition_tokens for cost in costs], dtype="Int64"),
            "never called": [_unused(cost, kind) for cost in costs],
            "tokens sent": [cost.carried_tokens for cost in costs],
            "sessions": [cost.sessions for cost in costs],
            "repositories": [_repositories(cost) for cost in costs],
        }
    )
    is_one = len({name for cost in costs for name in cost.repositories}) < 2
    dropped = {name for name in _OPTIONAL if not frame[name].any()}
    dropped |= {"repositories"} if is_one else set()
    return frame.drop(columns=[*dropped, "tokens sent" if frame["≈ cost"].any() else "≈ cost"])


def _unused(cost: NamedCost, kind: NameKind) -> str | None:
    """Return the tools that were offered and never called; None where no definition is recorded."""
    if not cost.offered:
        return None
    if kind == "mcp_server":
        return f"{cost.unused} of {cost.offered} tools"
    return "never called" if cost.unused else ""


def _repositories(cost: NamedCost) -> str | None:
    more = len(cost.repositories) - REPOSITORIES
    listed = islice(cost.repositories.items(), REPOSITORIES)
    names = ", ".join(f"{name} {dollars(paid)}" if paid else name for name, paid in listed)
    return (f"{names} and {more} more" if more > 0 else names) or None


def _sessions(composition: Composition) -> str:
    if composition.sessions < composition.in_range:
        return f"the latest {composition.sessions:,} of {composition.in_range:,} sessions of this range"
    return f"{count(composition.sessions, 'session')} of this range"


def _files(reads: ReadsWithFallback, composition: Composition, position: TrendAddress) -> None:
    """Draw the files and commands: of all sessions of the range where a copy in ClickHouse sums them."""
    keys = None if position.repository is None else composition.keys[:COMPARED_SESSIONS]
    uses = reads.tool_leaderboard(days=position.range_days, sessions=keys)
    sessions = "sessions of this range"
    if keys is not None or not reads.uses_copy:
        sessions = f"latest {COMPARED_SESSIONS} {sessions}"
    if not uses:
        st.text(f"No tool was called in the {sessions}.")
        return
    st.caption(f"Over the {sessions}. {SHARE_NOTE}")
    uses_table(uses, key="leaderboard", alt=f"Tools that cost most in the {sessions}", sessions=True)
