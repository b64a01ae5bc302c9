"""A session with its sub-agents and theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windowpane.store.interface import EventReader, SessionFilter
from windowpane.store.records import SessionRow

MEMBERS: Final = 200
"""Sessions of one team that are read."""


class Member(NamedTuple):
    """One session of a team; the parent of all has depth 0."""

    row: SessionRow
    depth: int


def read_team(reader: EventReader, row: SessionRow) -> tuple[Member, ...]:
    """Return the session and its descendants, each below its parent in the order they started."""
    team: list[Member] = []
    seen: set[str] = set()
    waiting = [Member(row, 0)]
    while waiting and len(team) < MEMBERS:
        member = waiting.pop()
        if member.row.session_id in seen:  # a recording may name itself as its parent
            continue
        seen.add(member.row.session_id)
        team.append(member)
        children = reader.sessions(
            SessionFilter(parent_session_id=member.row.session_id, order="recent", limit=MEMBERS)
        )
        started = sorted(children, key=lambda child: child.started_at or 0.0, reverse=True)
        waiting += [Member(child, member.depth + 1) for child in started]
    return tuple(team)


def team_cost(team: Sequence[Member]) -> float | None:
    """Return the cost of all members; None where no price is known."""
    costs = [member.row.cost_dollars for member in team if member.row.cost_dollars is not None]
    return sum(costs) if costs else None
