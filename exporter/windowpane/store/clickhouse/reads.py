"""Reads of the copy: trends, the tools that cost most, and events, as a store's reader returns them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.tables import BY_DAY
from windowpane.store.events import event_or_damage
from windowpane.store.filters import EventFilter
from windowpane.store.projections.trends import trend_row
from windowpane.store.reads.export import BATCH, ExportRow
from windowpane.store.reads.fleet import LISTED
from windowpane.store.reads.tool_use import COMPARED_SESSIONS
from windowpane.store.records import DamagedEvent, StoredEvent, ToolUse, TrendRow
from windowpane.store.search.events import MAXIMUM_HITS, words_of
from windowpane.store.tables import DAILY_SUMS

_IN_DAYS: Final = "day >= toDate32({first:Int32}) AND day <= toDate32({last:Int32}) AND sessions > 0"
_IN_PROJECTS: Final = "project IN {projects:Array(String)}"
_TRENDS: Final = (
    f"SELECT toInt32(day), agent, model, release, {', '.join(DAILY_SUMS)} FROM daily FINAL "  # noqa: S608  # ours
    f"WHERE {_IN_DAYS} ORDER BY day, agent, model, release"
)
_TRENDS_OF_PROJECTS: Final = (
    f"SELECT toInt32(day), agent, model, release, {', '.join(f'sum(d.{name})' for name in DAILY_SUMS)} "  # noqa: S608
    f"FROM project_days AS d FINAL WHERE {_IN_DAYS} AND {_IN_PROJECTS} "
    "GROUP BY day, agent, model, release ORDER BY day, agent, model, release"
)
_NEWEST_DAY: Final = "SELECT toInt32(max(day)), count() FROM daily"
_NEWEST_DAY_OF_PROJECTS: Final = (
    f"SELECT toInt32(max(day)), count() FROM project_days FINAL WHERE sessions > 0 AND {_IN_PROJECTS}"  # noqa: S608
)
_USE: Final = "sum(blocks), sum(tokens), sum(carried_tokens) AS carried, sum(dollars) AS cost"
_MOST_EXPENSIVE: Final = "ORDER BY cost DESC, carried DESC, tool, target LIMIT {limit:Int64}"
_TOOLS_OF_DAYS: Final = (
    f"SELECT tool, target, {_USE}, sum(sessions) FROM tool_days FINAL WHERE {_IN_DAYS} "  # noqa: S608
    f"GROUP BY tool, target {_MOST_EXPENSIVE} {BY_DAY}"
)
_TOOLS_OF_PROJECTS: Final = (
    f"SELECT tool, target, {_USE}, sum(sessions) FROM project_tool_days FINAL "  # noqa: S608  # our columns
    f"WHERE {_IN_DAYS} AND {_IN_PROJECTS} "
    f"GROUP BY tool, target {_MOST_EXPENSIVE} {BY_DAY}"
)
_TOOLS_OF_LATEST: Final = (
    f"SELECT tool, target, {_USE}, uniqExact(session_id) "  # noqa: S608
    "FROM (SELECT * FROM tool_use FINAL WHERE NOT removed AND session_id IN ("
    f"SELECT session_id FROM sessions FINAL ORDER BY last_at DESC LIMIT {COMPARED_SESSIONS})) "
    f"GROUP BY tool, target {_MOST_EXPENSIVE}"
)
_EVENT_COLUMNS: Final = "seq, revision, counted, hash, body, session_id, turn, type, at"
_EXPORT_COLUMNS: Final = "seq, session_id, revision, turn, type, at, hash, body"
_CURRENT: Final = (
    "session_id = {session:String} "
    "AND revision = (SELECT max(revision) FROM events WHERE session_id = {session:String})"
)
_OF_PROJECTS: Final = (
    "session_id IN (SELECT session_id FROM sessions FINAL WHERE project IN {projects:Array(String)})"
)


class ClickHouseReader:
    """Reads the copy of one store. Safe to share between threads; raises `ClickHouseError`."""

    def __init__(self, clickhouse: ClickHouse) -> None:
        self._clickhouse = clickhouse

    def position(self, store: str) -> int | None:
        """Return the number of the last copied event of the store with this identity; None without its copy."""
        rows = self._clickhouse.query(
            "SELECT max(seq), count() FROM positions WHERE store = {store:String}", {"store": store}
        )
        ((seq, positions),) = rows
        return int(seq) if positions else None

    def trends(
        self, *, days: int, until: int | None = None, projects: tuple[str, ...] | None = None
    ) -> list[TrendRow]:
        """Return the sums by day, agent, model and release of the *days* up to *until* (days since the epoch)."""
        last = self._newest_day(projects) if until is None else until
        if last is None:
            return []
        values = {"first": max(0, last - days + 1), "last": last, **_parameter(projects)}
        statement = _TRENDS if projects is None else _TRENDS_OF_PROJECTS
        return [trend_row(row) for row in self._clickhouse.query(statement, values)]

    def tool_leaderboard(
        self,
        *,
        limit: int = 10,
        days: int | None = None,
        projects: tuple[str, ...] | None = None,
    ) -> list[ToolUse]:
        """Return the tools with their files and commands that cost most.

        Of the sessions that started in the latest *days*, of *projects*; by default of the latest 200 sessions.
        """
        values: dict[str, Any] = {"limit": limit}
        if days is None:
            return [_tool_use(row) for row in self._clickhouse.query(_TOOLS_OF_LATEST, values)]
        last = self._newest_day(projects)
        if last is None:
            return []
        values |= {"first": max(0, last - days + 1), "last": last, **_parameter(projects)}
        statement = _TOOLS_OF_DAYS if projects is None else _TOOLS_OF_PROJECTS
        return [_tool_use(row) for row in self._clickhouse.query(statement, values)]

    def facets(self) -> dict[str, tuple[str, ...]]:
        """Return the distinct agents, models, sources and event types, for filters."""
        columns = {"agents": "agent", "models": "model", "sources": "source"}
        distinct = {name: self._distinct(column, "sessions FINAL", LISTED) for name, column in columns.items()}
        return {**distinct, "types": self._distinct("type", "events", "TRUE")}

    def events_or_damage(self, query: EventFilter) -> list[StoredEvent | DamagedEvent]:
        """Return the events that match, by `seq`, with a `DamagedEvent` for each that cannot be read."""
        return [event_or_damage(row) for row in self._find(query, _EVENT_COLUMNS)]

    def count_events(self, query: EventFilter) -> int:
        """Return the number of events that match, whatever the limit; of a search at most `MAXIMUM_HITS`."""
        conditions = _conditions(query)
        if conditions is None:
            return 0
        limit = f" LIMIT {MAXIMUM_HITS}" if query.text else ""
        rows = self._clickhouse.query(
            f"SELECT count() FROM (SELECT seq FROM events FINAL WHERE {conditions.clause}{limit})",  # noqa: S608
            conditions.values,
        )
        return int(rows[0][0])

    def export_batches(self, query: EventFilter) -> Iterator[list[ExportRow]]:
        """Yield every event that matches, whatever the limit, in batches by `seq`; for exports."""
        while batch := [
            ExportRow(*row)
            for row in self._find(replace(query, limit=BATCH, newest_first=False), _EXPORT_COLUMNS)
        ]:
            yield batch
            query = replace(query, after_seq=batch[-1].seq)

    def _find(self, query: EventFilter, columns: str) -> Sequence[Sequence[Any]]:
        conditions = _conditions(query)
        if conditions is None:
            return []
        direction = "DESC" if query.newest_first else "ASC"
        return self._clickhouse.query(
            f"SELECT {columns} FROM events FINAL WHERE {conditions.clause} "  # noqa: S608  # values are bound
            f"ORDER BY seq {direction} LIMIT {{limit:Int64}}",
            {**conditions.values, "limit": query.limit},
        )

    def _newest_day(self, projects: tuple[str, ...] | None) -> int | None:
        statement = _NEWEST_DAY if projects is None else _NEWEST_DAY_OF_PROJECTS
        ((day, rows),) = self._clickhouse.query(statement, _parameter(projects))
        return int(day) if rows else None

    def _distinct(self, column: str, table: str, condition: str) -> tuple[str, ...]:
        rows = self._clickhouse.query(
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} != '' AND {condition} ORDER BY 1"  # noqa: S608  # ours
        )
        return tuple(value for (value,) in rows)


@dataclass(slots=True)
class _Conditions:
    """Conditions joined by AND, and the values of their parameters."""

    parts: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, condition: str, **values: Any) -> None:
        self.parts.append(condition)
        self.values |= values

    @property
    def clause(self) -> str:
        return " AND ".join(self.parts) or "1"


def _conditions(query: EventFilter) -> _Conditions | None:
    """Return the conditions of a filter; None where it can match nothing."""
    conditions = _Conditions()
    if query.session_id is not None:
        conditions.add(_CURRENT, session=query.session_id)
    if query.projects is not None:
        conditions.add(_OF_PROJECTS, projects=list(query.projects))
    if query.types:
        conditions.add("type IN {types:Array(String)}", types=list(query.types))
    for condition, name, value in (
        ("turn >= {turn_from:Int64}", "turn_from", query.turn_from),
        ("turn <= {turn_to:Int64}", "turn_to", query.turn_to),
        ("seq > {after:Int64}", "after", query.after_seq or None),
        ("seq < {before:Int64}", "before", query.before_seq),
        ("at >= {at_from:Float64}", "at_from", query.at_from),
        ("at < {at_to:Float64}", "at_to", query.at_to),
    ):
        if value is not None:
            conditions.add(condition, **{name: value})
    if query.text:
        *whole, prefix = words_of(query.text) or [""]
        if not prefix:
            return None
        patterns = [f"% {_escaped(word)} %" for word in whole] + [f"% {_escaped(prefix)}%"]
        for number, pattern in enumerate(patterns):
            conditions.add(f"search_text LIKE {{word{number}:String}}", **{f"word{number}": pattern})
    return conditions


def _parameter(projects: tuple[str, ...] | None) -> dict[str, Any]:
    return {} if projects is None else {"projects": list(projects)}


def _escaped(word: str) -> str:
    """Return a word for LIKE, in which an underscore is any character."""
    return word.replace("_", r"\_")


def _tool_use(row: Sequence[Any]) -> ToolUse:
    tool, target, blocks, tokens, carried, dollars, sessions = row
    return ToolUse(tool, target, blocks, tokens, carried, dollars or None, sessions)
