"""The statements behind each read: which rows, by which index, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.vocabulary import Severity
from windowpane.store.interface import EventFilter, SessionFilter
from windowpane.store.operations import Value

_ORDERS: Final = {
    "pressure": "pressure DESC, last_at DESC, key DESC",
    "recent": "last_at DESC, key DESC",
    "cost": "cost_dollars DESC, key DESC",
    "regret": "regrets DESC, last_at DESC, key DESC",
}


@dataclass(slots=True)
class Statement:
    """SQL under construction: conditions joined by AND, and their values in order."""

    conditions: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def where(self, condition: str, *values: Value) -> None:
        """Narrow."""
        self.conditions.append(condition)
        self.values += values

    @property
    def clause(self) -> str:
        """The WHERE clause."""
        return " AND ".join(self.conditions) or "1"


def session_query(query: SessionFilter, columns: str) -> tuple[str, list[Value]]:
    """Current revisions that match, in the asked order."""
    statement = Statement()
    statement.where("current = 1")
    named = (
        ("agent", query.agent), ("model", query.model), ("source", query.source), ("zone", query.zone),
        ("worst_severity", query.severity),
    )  # fmt: skip
    for column, value in named:
        if value is not None:
            statement.where(f"{column} = ?", value)
    if query.parent_session_id is not None:
        statement.where("parent_session_id = ?", query.parent_session_id)
    if query.live_since is not None:
        statement.where("ended = 0 AND last_at >= ?", query.live_since)
    if query.text:
        statement.where("(instr(lower(session_id), ?) OR instr(lower(agent), ?))", *[query.text.lower()] * 2)
    sql = (
        f"SELECT {columns} FROM sessions WHERE {statement.clause} "  # noqa: S608  # values are bound
        f"ORDER BY {_ORDERS[query.order]} LIMIT ? OFFSET ?"
    )
    return sql, [*statement.values, query.limit, query.offset]


def alert_query(
    *,
    session: int | None,
    alert: str | None,
    severity: Severity | None,
    firing: bool | None,
    columns: str,
    limit: int,
) -> tuple[str, list[Value]]:
    """Firings that match, the latest first; *session* is a row number."""
    statement = Statement()
    for column, value in (("session", session), ("alert", alert), ("severity", severity)):
        if value is not None:
            statement.where(f"a.{column} = ?", value)
    if firing is not None:
        statement.where(f"a.resolved_turn IS {'NULL' if firing else 'NOT NULL'}")
    sql = (
        f"SELECT {columns} FROM alerts AS a JOIN sessions AS s ON s.key = a.session "  # noqa: S608  # values are bound
        f"WHERE {statement.clause} ORDER BY a.fired_seq DESC LIMIT ?"
    )
    return sql, [*statement.values, limit]


@dataclass(frozen=True, slots=True)
class EventScope:
    """What an event filter means in this database."""

    session: int | None
    """Row number of the session; None for all."""
    turns: tuple[int, int, int, int] | None
    """First and last turn, and the numbers of the first event in and after them; None for all turns."""
    types: Mapping[int, int]
    """Ids of the wanted types, and how many events each has; empty for all."""
    total: int
    """Events in the session, else in the store."""


def event_query(query: EventFilter, scope: EventScope, columns: str) -> tuple[str, list[Value]]:
    """Events that match, by number; each plan touches an index range no larger than what it may show."""
    statement = _event_conditions(query, scope)
    direction = "DESC" if query.newest_first else "ASC"
    sql = (
        f"SELECT {columns} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # values are bound
        f"WHERE e.seq IN (SELECT seq FROM events AS e{_hint(query, scope)} WHERE {statement.clause} "
        f"ORDER BY seq {direction} LIMIT ?) "
        f"ORDER BY e.seq {direction}"
    )
    return sql, [*statement.values, query.limit]


def event_count(query: EventFilter, scope: EventScope) -> tuple[str, list[Value]]:
    """How many match."""
    statement = _event_conditions(query, scope, counting=True)
    hint = _hint(query, scope, counting=True)
    return f"SELECT count(*) FROM events AS e{hint} WHERE {statement.clause}", statement.values  # noqa: S608


def _hint(query: EventFilter, scope: EventScope, *, counting: bool = False) -> str:
    """Without statistics SQLite would walk the whole session for a handful of events of one type."""
    if scope.session is None or scope.turns is not None or not scope.types:
        return ""
    return " INDEXED BY events_type" if counting or _rare(query, scope) else ""


def _event_conditions(query: EventFilter, scope: EventScope, *, counting: bool = False) -> Statement:
    """The conditions, with a `+` before what must not choose the index."""
    statement = Statement()
    by_type = bool(scope.types) and (counting or _rare(query, scope))
    if scope.types:
        marks = ", ".join("?" * len(scope.types))
        statement.where(f"{'' if by_type else '+'}e.type IN ({marks})", *scope.types)
    if scope.session is not None:
        statement.where("e.session = ?", scope.session)
    if scope.turns is not None:
        first, last, begin, end = scope.turns
        statement.where("e.turn BETWEEN ? AND ?", first, last)
        if scope.session is not None:
            statement.where(
                "e.seq IN (SELECT seq FROM events WHERE session = ? AND seq >= ? AND seq < ? "
                "UNION ALL SELECT seq FROM late_events WHERE session = ? AND turn BETWEEN ? AND ?)",
                scope.session, begin, end, scope.session, first, last,
            )  # fmt: skip
    if query.after_seq:
        statement.where(f"{'+' if by_type else ''}e.seq > ?", query.after_seq)
    return statement


def _rare(query: EventFilter, scope: EventScope) -> bool:
    """Whether collecting and sorting the types' events is less work than walking until enough were met."""
    wanted = min(sum(scope.types.values()), scope.total)
    return wanted * wanted < query.limit * max(scope.total, 1)
