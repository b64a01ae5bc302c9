"""The cost of sessions since a moment, such as local midnight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.store.database import Database
from windowpane.store.records import Spending
from windowpane.store.statements import Conditions

_COSTS: Final = """
    SELECT s.session_id, coalesce(p.agent, s.agent), s.project, s.started_at, s.cost_dollars,
        coalesce(p.session_id, s.session_id),
        (SELECT sum(t.cost_dollars) FROM turns AS t WHERE t.session = s.key AND t.at >= ?)
    FROM sessions AS s LEFT JOIN sessions AS p ON p.session_id = s.parent_session_id AND {parents}
    WHERE s.current = 1 AND s.same_as = '' AND s.cost_dollars > 0 AND {conditions}
    ORDER BY s.key"""


def since(connection: Database, moment: float, projects: Sequence[str] | None) -> list[Spending]:
    """Return the cost since *moment* of each session with a later event.

    That of a session which started later is its whole cost, compressions included; of an earlier one the calls
    count, at most its cost.
    """
    conditions, parents = Conditions(), Conditions()
    conditions.add("s.last_at >= ?", moment)
    conditions.among("s.project", projects)
    parents.add("p.current = 1")
    parents.among("p.project", projects)  # a parent of another project is as one that is not stored
    sql = _COSTS.format(conditions=conditions.clause, parents=parents.clause)
    rows = connection.execute(sql, (moment, *parents.values, *conditions.values))
    return [
        Spending(session, agent, project, _within(started, moment, cost, calls), root)
        for session, agent, project, started, cost, root, calls in rows
    ]


def _within(started: float | None, moment: float, cost: float, calls: float | None) -> float:
    return cost if started is None or started >= moment else min(cost, calls or 0.0)
