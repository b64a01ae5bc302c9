"""The fleet: one row per session, as pages filter and list it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Final

from windowpane.core.codec import decode
from windowpane.core.events import PAYLOADS, SessionDescribed
from windowpane.core.redaction import stored_id
from windowpane.core.same_session import RANKS
from windowpane.core.vocabulary import OWN_SOURCE
from windowpane.exceptions import EventFormatError
from windowpane.store.database import Database
from windowpane.store.filters import Attention, FleetOrder, SessionFilter
from windowpane.store.records import FleetTotals, SessionRow
from windowpane.store.statements import Conditions, Value, in_lists, placeholders

MAXIMUM_FOUND_SESSIONS: Final = 20
IDS_PER_STATEMENT: Final = 256
ASSIGNED: Final = "project:"
"""Start of the stream of an assignment."""


_DESCRIBED: Final = """SELECT body FROM events
    WHERE session = ? AND type = (SELECT id FROM event_types WHERE name = ?) ORDER BY seq"""
_ROW_FIELDS: Final = tuple(item.name for item in fields(SessionRow))
_SUBAGENTS: Final = """(
    WITH RECURSIVE below(id) AS (
        SELECT child.session_id FROM sessions AS child
        WHERE child.parent_session_id = sessions.session_id AND child.current = 1 AND {visible}
        UNION SELECT child.session_id FROM sessions AS child
        WHERE child.same_as <> '' AND child.same_as = sessions.session_id AND child.current = 1 AND {visible}
        UNION SELECT child.session_id FROM below JOIN sessions AS child ON +child.current = 1 AND {visible} AND (
            child.parent_session_id = below.id OR child.same_as <> '' AND child.same_as = below.id)
    )
    SELECT sum(child.cost_dollars) FROM below JOIN sessions AS child ON child.session_id = below.id
    WHERE +child.current = 1 AND length(child.same_as) = 0 AND child.session_id != sessions.session_id
)"""
"""Cost of the visible sub-agents at any depth, also of those that another record of the session has.

A recording may name a session its own descendant. The plus and the length keep SQLite, which has no statistics,
from other indexes than that of ids.
"""
_PARENT: Final = """(
    SELECT child.session_id FROM sessions AS child
    WHERE child.session_id = sessions.parent_session_id AND +child.current = 1 AND {visible}
)"""
"""The parent, if it is visible."""
_COMPUTED: Final = {"subagent_cost_dollars": _SUBAGENTS}
"""Fields of a row that are not columns."""
LISTED: Final = f"source <> '{OWN_SOURCE}'"
"""Condition of the sessions of agents; Windowpane's own ones hold alerts only."""
FLEET_ORDERS: Final[dict[FleetOrder, str]] = {
    "pressure": "pressure DESC, last_at DESC NULLS LAST, key DESC",
    "recent": "last_at DESC NULLS LAST, key DESC",
    "cost": "cost_dollars DESC NULLS LAST, key DESC",
    "regret": "regrets DESC, last_at DESC NULLS LAST, key DESC",
}
"""Columns that each order sorts by, read from an index."""
_TEXT_COLUMNS: Final = ("session_id", "agent", "title", "folder", "repository", "branch", "label")
_OF_PARENT: Final = (
    "(parent_session_id = ? OR parent_session_id IN "
    "(SELECT session_id FROM sessions WHERE same_as <> '' AND same_as = ? AND current = 1))"
)
_UNIDENTIFIED: Final = f"""SELECT other.session_id, other.source FROM sessions AS other JOIN sessions AS own
    ON own.session_id = ? AND own.current = 1 AND own.same_as = '' AND other.agent = own.agent
    AND other.project = own.project
    WHERE other.current = 1 AND other.same_as = '' AND other.key <> own.key AND other.parent_session_id IS NULL
    AND other.source IN ({", ".join(f"'{source}'" for source in RANKS if source != "demo")})
    AND other.source <> own.source AND other.started_at <= own.last_at AND own.started_at <= other.last_at
    AND NOT (EXISTS (SELECT 1 FROM call_ids WHERE session = own.key)
        AND EXISTS (SELECT 1 FROM call_ids WHERE session = other.key))
    ORDER BY other.key LIMIT 1"""  # noqa: S608  # our names
_CURRENT_KEY: Final = "SELECT key FROM sessions WHERE session_id = ? AND +current = 1"


RED_SOON_TURNS: Final = 3.0
_IS_LIVE: Final = "(ended = 0 AND last_at >= ?)"
_IS_SILENT: Final = "(ended = 1 OR last_at IS NULL OR last_at < ?)"
_REDNESS: Final = f"""CASE WHEN zone IN ('red', 'overflow') THEN 2
    WHEN turns_until_red > 0 AND turns_until_red <= {RED_SOON_TURNS} THEN 1 ELSE 0 END"""
_FIRES: Final = """(SELECT max(CASE severity WHEN 'critical' THEN 2 WHEN 'warning' THEN 1 ELSE 0 END) FROM alerts
    WHERE session = sessions.key AND resolved_turn IS NULL)"""
_ATTENTION: Final[dict[Attention, str]] = {
    "critical": f"{_FIRES} = 2",
    "warning": f"{_FIRES} = 1",
    "red": f"{_REDNESS} = 2",
    "red soon": f"{_REDNESS} = 1",
}
_RANKED: Final = f"""
SELECT zone, cost_dollars, input_tokens, cache_read_tokens, worst_zone, estimated_outputs,
    {_IS_LIVE} AS live,
    {_REDNESS} AS redness, CASE WHEN {_IS_LIVE} THEN {_FIRES} ELSE 0 END AS fires
FROM sessions WHERE current = 1 AND """  # noqa: S608  # our conditions
_REACHED_RED: Final = "worst_zone IN ('red', 'overflow')"
_TOTALS: Final = """
SELECT zone, count(*), sum(cost_dollars),
    sum(CAST(input_tokens AS DOUBLE PRECISION)), sum(CAST(cache_read_tokens AS DOUBLE PRECISION)),
    count(*) FILTER (WHERE {}),
    count(*) FILTER (WHERE live), count(*) FILTER (WHERE live AND (fires >= 1 OR redness >= 1)),
    count(*) FILTER (WHERE live AND fires = 2), count(*) FILTER (WHERE live AND fires = 1),
    count(*) FILTER (WHERE live AND redness = 2), count(*) FILTER (WHERE live AND redness = 1),
    sum(estimated_outputs)
FROM ({}) AS ranked GROUP BY zone"""


def listed(connection: Database, query: SessionFilter) -> list[SessionRow]:
    """Return the current revisions that match, in the order of *query*."""
    if query.live_first_since is None:
        return _page(connection, query, _conditions(connection, query), query.limit, query.offset)
    live, silent = _conditions(connection, query), _conditions(connection, query)
    live.add(_IS_LIVE, query.live_first_since)
    silent.add(_IS_SILENT, query.live_first_since)
    first = _page(connection, query, live, query.offset + query.limit, 0)
    remaining = query.offset + query.limit - len(first)
    if not remaining:
        return first[query.offset :]
    skipped = max(0, query.offset - len(first))
    return first[query.offset :] + _page(connection, query, silent, min(remaining, query.limit), skipped)


def totals(connection: Database, query: SessionFilter, live_since: float) -> FleetTotals:
    """Return the sums over all current revisions that match."""
    conditions = _conditions(connection, query)
    sql = _TOTALS.format(_REACHED_RED, _RANKED + conditions.clause)
    rows = connection.execute(sql, (live_since, live_since, *conditions.values)).fetchall()
    costs = [row[2] for row in rows if row[2] is not None]
    sums = [
        int(sum(row[column] or 0 for row in rows)) for column in range(3, 13)
    ]  # floats do not overflow in SQL
    return FleetTotals({row[0]: row[1] for row in rows}, sum(costs) if costs else None, *sums)


def _page(
    connection: Database, query: SessionFilter, conditions: Conditions, limit: int, offset: int
) -> list[SessionRow]:
    current = "current = 1" if query.parent_session_id is None else "+current = 1"  # found by another index
    sql = f"{current} AND {conditions.clause} ORDER BY {FLEET_ORDERS[query.order]} LIMIT ? OFFSET ?"
    return _rows(connection, sql, (*conditions.values, limit, offset), query.projects)


def _conditions(connection: Database, query: SessionFilter) -> Conditions:
    conditions, contains = Conditions([LISTED]), connection.dialect.contains
    for column, value in (
        ("agent", query.agent),
        ("model", query.model),
        ("source", query.source),
        ("zone", query.zone),
        ("worst_severity", query.severity),
        ("same_as", query.same_as),
        ("project", query.project),
    ):
        if value is not None:
            conditions.add(f"{column} = ?", value)
    if query.parent_session_id is not None:
        conditions.add(_OF_PARENT, query.parent_session_id, query.parent_session_id)
    conditions.among("project", query.projects)
    for column, part in (
        ("folder", query.folder),
        ("repository", query.repository),
        ("branch", query.branch),
        ("label", query.label),
    ):
        if part:
            conditions.add(contains(f"lower({column})"), part.lower())
    if query.live_since is not None:
        conditions.add(_IS_LIVE, query.live_since)
    if query.reached_red:
        conditions.add(_REACHED_RED)
    if query.attention is not None:
        conditions.add(_ATTENTION[query.attention])
    if query.at_from is not None:
        conditions.add("last_at >= ?", query.at_from)
    if query.at_to is not None:
        conditions.add("started_at < ?", query.at_to)
    if query.text:
        in_a_column = " OR ".join(contains(f"lower({column})") for column in _TEXT_COLUMNS)
        conditions.add(f"({in_a_column})", *[query.text.lower()] * len(_TEXT_COLUMNS))
    return conditions


def find(connection: Database, prefix: str, projects: Sequence[str] | None) -> list[SessionRow]:
    """Return the sessions of *projects* whose id starts with *prefix*, at most 20."""
    prefix = stored_id(prefix)
    conditions = Conditions(
        ["+current = 1", "session_id >= ?", "session_id < ?"], [prefix, prefix + "\U0010ffff"]
    )
    conditions.among("project", projects)
    sql = f"{conditions.clause} ORDER BY sessions.session_id LIMIT {MAXIMUM_FOUND_SESSIONS}"
    return _rows(connection, sql, conditions.values, projects)


def read(connection: Database, session_id: str, projects: Sequence[str] | None) -> SessionRow | None:
    """Return the current revision of a session, or None; None also where it is not of *projects*."""
    conditions = Conditions(["+current = 1", "session_id = ?"], [stored_id(session_id)])
    conditions.among("project", projects)
    return next(iter(_rows(connection, conditions.clause, conditions.values, projects)), None)


def current_keys(connection: Database, session_ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield those of the ids that are stored, with the row number of the session's current revision."""
    for ids in in_lists(session_ids, IDS_PER_STATEMENT):
        sql = f"SELECT session_id, key FROM sessions WHERE +current = 1 AND session_id IN ({placeholders(ids)})"  # noqa: S608
        yield from connection.execute(sql, ids).fetchall()


def current_key(connection: Database, session_id: str) -> int:
    """Return the row number of a session's current revision; 0, which no row has, for an unknown session."""
    row = connection.execute(_CURRENT_KEY, (stored_id(session_id),)).fetchone()
    return 0 if row is None else int(row[0])


def facets(connection: Database, projects: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Return the distinct agents, models, sources and event types, for filters.

    Of *projects*, every type of an event: whether a session of theirs has one is not counted anywhere.
    """
    conditions = Conditions([LISTED])
    conditions.among("project", projects)
    rows = connection.execute(
        f"SELECT DISTINCT agent, model, source FROM sessions WHERE current = 1 AND {conditions.clause}",  # noqa: S608
        conditions.values,
    ).fetchall()
    distinct = {
        name: tuple(sorted({row[column] for row in rows if row[column]}))
        for column, name in enumerate(("agents", "models", "sources"))
    }
    if projects is not None:
        return {**distinct, "types": tuple(sorted(PAYLOADS))}
    types = connection.execute("SELECT name FROM event_types WHERE events > 0 ORDER BY name")
    return {**distinct, "types": tuple(name for (name,) in types)}


def project_names(connection: Database) -> list[str]:
    """Return the projects that sessions belong to, by name."""
    rows = connection.execute(
        "SELECT DISTINCT project FROM sessions WHERE current = 1 AND project <> '' ORDER BY 1"
    )
    return [name for (name,) in rows]


def stated_project(connection: Database, session_id: str) -> str | None:
    """Return the project that the session's own stream names first; None for an unknown session."""
    key = current_key(connection, session_id)
    if not key:
        return None
    for (body,) in connection.execute(_DESCRIBED, (key, SessionDescribed.type)):
        try:
            event = decode(body)
        except EventFormatError:
            continue
        is_assigned = event.context.stream_id.startswith(ASSIGNED)
        if isinstance(event.data, SessionDescribed) and event.data.project and not is_assigned:
            return event.data.project
    return ""


def _rows(
    connection: Database, sql: str, values: Sequence[Value], projects: Sequence[str] | None
) -> list[SessionRow]:
    """Return the rows of a condition, with the parent and the sub-agents that readers of *projects* see."""
    visible = Conditions()
    visible.among("child.project", projects)
    computed = _COMPUTED if projects is None else {**_COMPUTED, "parent_session_id": _PARENT}
    columns = ", ".join(computed.get(name, name) for name in _ROW_FIELDS)
    bound = columns.count("{visible}") * visible.values
    columns = columns.replace("{visible}", visible.clause)
    select = f"SELECT {columns} FROM sessions WHERE {sql}"  # noqa: S608  # values are bound
    return [_row(row) for row in connection.execute(select, (*bound, *values))]


def _row(row: Sequence[Any]) -> SessionRow:
    values = dict(zip(_ROW_FIELDS, row, strict=True))
    values["ended"], values["incomplete"] = bool(values["ended"]), bool(values["incomplete"])
    return SessionRow(**values)


def unidentified(connection: Database, session_id: str) -> tuple[str, str] | None:
    """Return the id and source of a session that may be the same, if no id in one of them could show it.

    It has the same agent and took place at the same time.
    """
    row = connection.execute(_UNIDENTIFIED, (session_id,)).fetchone()
    return None if row is None else (row[0], row[1])
