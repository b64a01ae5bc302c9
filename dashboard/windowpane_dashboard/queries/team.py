"""A session with its sub-agents and theirs, and the turns at which it delegated to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import pandas as pd

from windowpane.core.events import SubagentDelegated, SubagentReturned
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow, intact_events
from windowpane.text.formats import UNKNOWN
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.queries.titles import titled_url

MEMBERS: Final = 200
"""Sessions of one team that are read."""
DELEGATIONS: Final = 500
"""Delegations and returns of one session that are read at most."""


def read_team(reader: EventReader, row: SessionRow) -> tuple[SessionRow, ...]:
    """Return the session and its descendants."""
    team: dict[str, SessionRow] = {}
    waiting = [row]
    while waiting and len(team) < MEMBERS:
        member = waiting.pop()
        if member.session_id not in team:  # a recording may name itself as its parent
            team[member.session_id] = member
            query = SessionFilter(parent_session_id=member.session_id, order="recent", limit=MEMBERS)
            waiting.extend(reader.sessions(query))
    return tuple(team.values())


def team_cost(team: Sequence[SessionRow]) -> float | None:
    """Return the cost of all members; None where no price is known."""
    costs = [member.cost_dollars for member in team if member.cost_dollars is not None]
    return sum(costs) if costs else None


class Delegations(NamedTuple):
    """The turns at which a session delegated to others and had their results back, by the child's id."""

    delegated: dict[str, int]
    returned: dict[str, int]
    result_tokens: dict[str, int]


def read_delegations(reader: EventReader, session_id: str, children: Sequence[SessionRow]) -> Delegations:
    """Read the delegations of a session to *children*, `DELEGATIONS` events at most.

    Transcripts do not state when the session delegated: it did at its last turn before the child started.
    """
    read = Delegations({}, {}, {})
    query = EventFilter(
        session_id=session_id, types=("subagent.delegated", "subagent.returned"), limit=DELEGATIONS
    )
    for stored in intact_events(reader.events_or_damage(query)):
        data, turn = stored.event.data, stored.event.context.turn
        if isinstance(data, SubagentDelegated):
            read.delegated[data.child_session_id] = turn
        elif isinstance(data, SubagentReturned):
            read.returned[data.child_session_id] = turn
            read.result_tokens[data.child_session_id] = data.result_tokens
    unstated = [child for child in children if child.session_id not in read.delegated]
    turns = reader.turns(session_id) if unstated else ()
    for child in unstated:
        before = [turn.turn for turn in turns if turn.at is not None and turn.at <= (child.started_at or 0.0)]
        if before:
            read.delegated[child.session_id] = before[-1]
    return read


def children_frame(reader: EventReader, session_id: str, children: Sequence[SessionRow]) -> pd.DataFrame:
    """Return one row per sub-agent, with links to it and to the turns of its delegation and its return."""
    read = read_delegations(reader, session_id, children)
    names = [child.session_id for child in children]

    def links(turns: dict[str, int]) -> list[str | None]:
        return [SessionAddress(session_id, turn=turns[name]).url() if name in turns else None for name in names]

    return pd.DataFrame(
        {
            "session": [titled_url(child) for child in children],
            "agent": [child.agent or UNKNOWN for child in children],
            "delegated": links(read.delegated),
            "returned": links(read.returned),
            "result": pd.array([read.result_tokens.get(name) for name in names], dtype="Int64"),
            "turns": [child.turns for child in children],
            "peak": [child.peak_used_tokens for child in children],
            "dollars": pd.array([child.cost_dollars for child in children], dtype="Float64"),
            "worst zone": [zone_label(child.worst_zone) for child in children],
        }
    )
