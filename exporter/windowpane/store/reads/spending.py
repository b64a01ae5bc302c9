"""The cost of sessions since a moment, such as local midnight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.store.database import Database
from windowpane.store.records import Spending
from windowpane.store.statements import Conditions, placeholders

_COSTS: Final = """
    SELECT s.session_id, coalesce(p.agent, s.agent), s.project, s.started_at, s.cost_dollars,
        coalesce(p.session_id, s.session_id),
        CASE WHEN s.started_at >= ? THEN NULL
            ELSE (SELECT sum(t.cost_dollars) FROM turns AS t WHERE t.session = s.key AND t.at >= ?) END
    FROM sessions AS s LEFT JOIN sessions AS p ON p.session_id = s.parent_session_id AND {parents}
    WHERE s.same_as = '' AND +s.cost_dollars > 0 AND {conditions}
    ORDER BY s.key"""
"""A plus keeps SQLite, which has no statistics, from an index of all current sessions."""


def since(
    connection: Database, moment: float, projects: Sequence[str] | None, roots: Sequence[str] | None = None
) -> list[Spending]:
    """Return the cost since *moment* of each session with a later event; of *roots* and their sub-agents only.

    That of a session which started later is its whole cost, compressions included; of an earlier one the calls
    count, at most its cost.
    """
    conditions, parents = Conditions(), Conditions()
    conditions.add("s.last_at >= ?", moment)
    if roots is None:
        conditions.add("s.current = 1")
    else:
        ids = placeholders(roots)
        conditions.add(
            f"+s.current = 1 AND (s.session_id IN ({ids}) OR s.parent_session_id IN ({ids}))", *roots, *roots
        )
    conditions.among("s.project", projects)
    parents.add("+p.current = 1")
    parents.among("p.project", projects)  # a parent of another project is as one that is not stored
    sql = _COSTS.format(conditions=conditions.clause, parents=parents.clause)
    rows = connection.execute(sql, (moment, moment, *parents.values, *conditions.values))
    return [
        Spending(session, agent, project, _within(started, moment, cost, calls), root)
        for session, agent, project, started, cost, root, calls in rows
    ]


def _within(started: float | None, moment: float, cost: float, calls: float | None) -> float:
    return cost if started is None or started >= moment else min(cost, calls or 0.0)
