"""Trends: what each session did on each day, and the sums of all sessions by day, agent, model and release.

`session_days` is a fold of the events like every other projection. `daily` is its sum by project, which triggers
of the database update with every change of a row, so reading a trend costs the same whatever the number of
sessions, also of one project. All values are integers: sums are exact in any order. The part of a session that
retention deletes is kept in separate rows (`pruned = 1`), which no event explains any more.

A session with several rows in `session_days` counts on each of them. These rows are marked as `repeated`, and
kept in `pruned_days` when retention deletes the session: with them a reader counts each session once per period.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from windowpane.core.events import (
    CacheBroken,
    ContentCompressed,
    ContentRegretted,
    Event,
    FidelityEvaluated,
    PressureMeasured,
    TurnEnded,
)
from windowpane.store.database import Database, Engine
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.records import RepeatedDay, TrendRow
from windowpane.store.statements import Conditions, StatementBatch
from windowpane.store.tables import ADD_TO_SUMS, ADDED_COLUMNS, DAILY_SUMS, PEAK, SESSION_DAYS, SUMS, parts_of_day

DAY_SECONDS: Final = 86_400
LAST_DAY: Final = 73_048
"""The end of 2169: a time behind it is a fault of its clock and would be the last day of every trend."""
MICRO: Final = 1_000_000
MILLI: Final = 1_000
_LARGEST_AMOUNT: Final = 10**10
"""The most that one event adds: sums over hundreds of millions of them stay below 64 bits."""

_KEY: Final = SESSION_DAYS.key
_UPSERT: Final = (
    f"INSERT INTO session_days ({', '.join((*_KEY, 'project', *SUMS, PEAK))}) "  # noqa: S608  # our columns
    f"VALUES ({', '.join('?' * (len(_KEY) + len(SUMS) + 2))}) ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    f"{', '.join(f'{name} = session_days.{name} + excluded.{name}' for name in SUMS)}, {PEAK} = CASE "
    f"WHEN session_days.{PEAK} > excluded.{PEAK} THEN session_days.{PEAK} ELSE excluded.{PEAK} END"
)
_REMOVE: Final = "DELETE FROM session_days WHERE session = ?"
_MARK: Final = (
    "UPDATE session_days SET repeated = 1 WHERE session = ? AND repeated = 0 "
    "AND (SELECT count(*) FROM session_days AS d WHERE d.session = ?) > 1"
)
_MOVE: Final = "UPDATE session_days SET project = ? WHERE session = ? AND project <> ?"
_CORRECT: Final = (
    f"UPDATE session_days SET {PEAK} = ({PEAK} * ? * 2 + ?) / (? * 2) "  # noqa: S608  # our columns
    f"WHERE session = ? AND model = ? AND {PEAK} > 0"
)
_SUMMED_DAYS: Final = ", ".join(f"sum(CAST({name} AS DOUBLE PRECISION))" for name in DAILY_SUMS)
_READ: Final = (
    f"SELECT day, agent, model, release, {_SUMMED_DAYS} "  # noqa: S608  # our columns
    "FROM daily WHERE day >= ? AND day <= ? AND {projects} "
    "GROUP BY day, agent, model, release HAVING sum(sessions) > 0 ORDER BY day, agent, model, release"
)
_NEWEST_DAY: Final = "SELECT max(day) FROM daily WHERE {projects}"
_DAY_SUMS: Final = ", ".join(parts_of_day("d"))
"""The part of a row `d` of `session_days` in each sum."""
_KEEP: Final = (
    f"INSERT INTO daily ({ADDED_COLUMNS}) "  # noqa: S608  # our columns
    f"SELECT d.day, d.agent, d.model, d.release, d.project, 1, {_DAY_SUMS} FROM session_days AS d "
    f"WHERE session = ? {ADD_TO_SUMS}"
)
_DAY: Final = "day, agent, model, release"
_OF_SESSIONS: Final = (
    f"SELECT {_DAY}, {', '.join(f'sum({part})' for part in parts_of_day('d'))} FROM session_days AS d "  # noqa: S608
    f"WHERE day >= ? AND day <= ? AND {{sessions}} GROUP BY {_DAY} ORDER BY {_DAY}"
)
_KEEP_REPEATED: Final = (
    f"INSERT INTO pruned_days (number, {_DAY}, project, {PEAK}) "  # noqa: S608  # our columns
    f"SELECT (SELECT coalesce(max(number), 0) + 1 FROM pruned_days), {_DAY}, project, {PEAK} FROM session_days "
    "WHERE session = ? AND repeated = 1"
)
_REPEATED: Final = (
    f"SELECT session, {_DAY}, {PEAK} FROM session_days WHERE repeated = 1 "  # noqa: S608  # our columns
    "AND day >= ? AND day <= ? AND {projects} "
    f"UNION ALL SELECT -number, {_DAY}, {PEAK} FROM pruned_days WHERE day >= ? AND day <= ? AND {{projects}}"
)
_OF_SESSION: Final = (
    f"SELECT day, agent, model, release, {_DAY_SUMS} FROM session_days AS d "  # noqa: S608  # our columns
    "WHERE session = ? ORDER BY day, agent, model, release"
)
_PRUNED: Final = (
    f"SELECT project, day, agent, model, release, {', '.join(DAILY_SUMS)} FROM daily "  # noqa: S608  # our columns
    "WHERE pruned = 1 ORDER BY project, day, agent, model, release"
)
_STORED: Final = (
    f"SELECT day, agent, model, release, project, {', '.join(DAILY_SUMS)} FROM daily "  # noqa: S608
    "WHERE pruned = 0 AND sessions > 0"
)
_SUMMED: Final = (
    "SELECT day, agent, model, release, project, "  # noqa: S608  # our columns
    f"{', '.join(f'sum({part})' for part in parts_of_day('d'))} FROM session_days AS d "
    "GROUP BY day, agent, model, release, project"
)
_UNLIKE: Final = (
    f"SELECT day FROM ({_STORED} EXCEPT {_SUMMED}) AS stored UNION ALL "  # noqa: S608
    f"SELECT day FROM ({_SUMMED} EXCEPT {_STORED}) AS summed LIMIT 1"
)


class DayDrafts:
    """The days that a batch touches."""

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self._days: dict[tuple[int, int, str, str, str], dict[str, int]] = {}
        self._sessions: dict[int, SessionDraft] = {}
        self._moved: dict[int, SessionDraft] = {}
        self._repeated: set[int] = set()

    def count(self, session: SessionDraft, events: Sequence[Event]) -> None:
        """Count events of `COUNTED` on their days, all while the session has its present names."""
        if not session.same_as:
            for event in events:
                self._count(session, event)

    def _count(self, session: SessionDraft, event: Event) -> None:
        if event.at is None:  # of no day
            return
        counted = _COUNTS[type(event.data)](event.data)
        day = int(event.at // DAY_SECONDS)
        if not counted or not 0 <= day <= LAST_DAY:
            return
        release = session.label or session.agent_version
        row = (day, session.agent, session.model, release)
        if session.memory.day_row != row:
            if session.memory.day_row is not None:
                self._repeated.add(session.key)
            session.memory.day_row = row
        key = (session.key, *row)
        draft = self._days.get(key)
        if draft is None:
            self._sessions[session.key] = session
            draft = self._days[key] = {**dict.fromkeys(SUMS, 0), PEAK: -1}
        for name, stated in counted.items():
            amount = max(-_LARGEST_AMOUNT, min(_LARGEST_AMOUNT, stated))
            draft[name] = max(draft[PEAK], amount) if name == PEAK else draft[name] + amount

    def move(self, session: SessionDraft) -> None:
        """Move all days of a session to the project that it has when the batch ends."""
        self._moved[session.key] = session

    def correct(self, session: SessionDraft, before: int, limit_tokens: int) -> None:
        """Replace the limit *before* of the days with the session's model, which never was."""
        for key, draft in self._days.items():
            if key[0] == session.key and key[3] == session.model and draft[PEAK] > 0:
                draft[PEAK] = (draft[PEAK] * before * 2 + limit_tokens) // (limit_tokens * 2)
        row = (before, limit_tokens, limit_tokens, session.key, session.model)
        self._statements.add(_CORRECT, row)

    def remove(self, session: int) -> None:
        """Remove all days of a session, which another one counts."""
        for key in [key for key in self._days if key[0] == session]:
            del self._days[key]
        self._statements.add(_REMOVE, (session,))

    def save(self) -> None:
        """Add the counts to the rows, which belong to the project that the session has now."""
        for session in self._moved.values():
            self._statements.add(_MOVE, (session.project, session.key, session.project))
        for key, draft in self._days.items():
            self._statements.add(_UPSERT, (*key, self._sessions[key[0]].project, *draft.values()))
        for session_key in sorted(self._repeated):
            self._statements.add(_MARK, (session_key, session_key))
        self._days.clear()
        self._sessions.clear()
        self._moved.clear()
        self._repeated.clear()


def _turn_ended(data: TurnEnded) -> dict[str, int]:
    counted = {"calls": 1, "cost_micros": round((data.cost_dollars or 0.0) * MICRO)}
    if data.usage is not None:
        counted["input_tokens"] = data.usage.input_total
        counted["output_tokens"] = data.usage.output_tokens
        counted["cache_read_tokens"] = data.usage.cache_read_tokens
        counted["estimated_outputs"] = int(data.recorded_output_tokens is not None)
    return counted


def _measured(data: PressureMeasured) -> dict[str, int]:
    if data.phase != "final" or data.utilization is None:
        return {}
    return {PEAK: round(data.utilization * MILLI)}


def _compressed(data: ContentCompressed) -> dict[str, int]:
    cost = {} if data.cost_dollars is None else {"cost_micros": round(data.cost_dollars * MICRO)}
    return cost | ({"compactions": 1} if data.is_compaction else {})


def _evaluated(data: FidelityEvaluated) -> dict[str, int]:
    return {} if data.score is None else {"fidelities": 1, "fidelity_millis": round(data.score * MILLI)}


def _cache_broken(data: CacheBroken) -> dict[str, int]:
    return {"cache_breaks": 1, "cache_break_micros": round((data.dollars or 0.0) * MICRO)}


_COUNTS: Final[dict[type, Any]] = {
    TurnEnded: _turn_ended,
    PressureMeasured: _measured,
    ContentCompressed: _compressed,
    FidelityEvaluated: _evaluated,
    ContentRegretted: lambda _data: {"regrets": 1},
    CacheBroken: _cache_broken,
}
COUNTED: Final = frozenset(_COUNTS)
"""The payloads that are counted."""


# -- reading and upkeep ---------------------------------------------------------------------------------------


class TrendReads:
    """The reads of the trends."""

    _engine: Engine

    def trends(
        self, *, days: int, until: int | None = None, projects: Sequence[str] | None = None
    ) -> list[TrendRow]:
        """Return the sums by day, agent, model and release of the *days* up to *until* (days since the epoch)."""
        with self._engine.lend() as connection:
            return read(connection, days=days, until=until, projects=projects)

    def trends_of(
        self, sessions: Sequence[int], *, days: int, until: int, projects: Sequence[str] | None = None
    ) -> list[TrendRow]:
        """Return the `trends` of the sessions with these row numbers, without what retention deleted."""
        conditions = Conditions()
        conditions.among("session", sessions)
        conditions.among("project", projects)
        with self._engine.lend() as connection:
            statement = _OF_SESSIONS.format(sessions=conditions.clause)
            rows = connection.execute(statement, (until - days + 1, until, *conditions.values))
            return [trend_row(row) for row in rows]

    def repeated_days(self, *, days: int, until: int, projects: Sequence[str] | None = None) -> list[RepeatedDay]:
        """Return the sessions that `trends` of the same *days* counts on several rows, with these rows."""
        with self._engine.lend() as connection:
            return read_repeated(connection, days=days, until=until, projects=projects)


def read(
    connection: Database, *, days: int, until: int | None = None, projects: Sequence[str] | None = None
) -> list[TrendRow]:
    """Return the sums of the *days* up to the day *until*, by default the last one with an event."""
    conditions = Conditions()
    conditions.among("project", projects)
    if until is None:
        newest = connection.execute(_NEWEST_DAY.format(projects=conditions.clause), conditions.values)
        (until,) = newest.fetchone()
        if until is None:
            return []
    values = (until - days + 1, until, *conditions.values)
    return [trend_row(row) for row in connection.execute(_READ.format(projects=conditions.clause), values)]


def read_repeated(
    connection: Database, *, days: int, until: int, projects: Sequence[str] | None = None
) -> list[RepeatedDay]:
    """Return the rows of the sessions that have several in the *days* up to the day *until*."""
    conditions = Conditions()
    conditions.among("project", projects)
    values = (until - days + 1, until, *conditions.values)
    rows = connection.execute(_REPEATED.format(projects=conditions.clause), (*values, *values))
    return [
        RepeatedDay(session, day, agent, model, release, None if peak < 0 else peak / MILLI)
        for session, day, agent, model, release, peak in rows
    ]


def of_session(connection: Database, session: int) -> list[TrendRow]:
    """Return what the session with this row number adds to each day."""
    return [trend_row(row) for row in connection.execute(_OF_SESSION, (session,))]


def of_pruned(connection: Database) -> list[tuple[str, TrendRow]]:
    """Return the sums of the sessions that retention has deleted, each with its project."""
    return [(project, trend_row(row)) for project, *row in connection.execute(_PRUNED)]


def trend_row(row: Sequence[Any]) -> TrendRow:
    """Return the row of a day, agent, model, release and the values of `DAILY_SUMS`."""
    day, agent, model, release = row[:4]
    sums = dict(
        zip(DAILY_SUMS, map(int, row[4:]), strict=True)
    )  # floats, so that no sum overflows while it is read
    return TrendRow(
        day, agent, model, release,
        sessions=sums["sessions"],
        calls=sums["calls"],
        input_tokens=sums["input_tokens"],
        output_tokens=sums["output_tokens"],
        cache_read_tokens=sums["cache_read_tokens"],
        cost_dollars=sums["cost_micros"] / MICRO,
        compactions=sums["compactions"],
        fidelity_sum=sums["fidelity_millis"] / MILLI,
        fidelities=sums["fidelities"],
        regrets=sums["regrets"],
        cache_breaks=sums["cache_breaks"],
        cache_break_dollars=sums["cache_break_micros"] / MICRO,
        estimated_outputs=sums["estimated_outputs"],
        peak_sum=sums["peak_sum_millis"] / MILLI,
        peaks=sums["peaks"],
        red_sessions=sums["red_sessions"],
    )  # fmt: skip


def sums_of(row: TrendRow) -> dict[str, int]:
    """Return the sums of a row by `DAILY_SUMS`, as the integers that are stored."""
    return {
        "calls": row.calls,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cost_micros": round(row.cost_dollars * MICRO),
        "compactions": row.compactions,
        "fidelity_millis": round(row.fidelity_sum * MILLI),
        "fidelities": row.fidelities,
        "regrets": row.regrets,
        "cache_breaks": row.cache_breaks,
        "cache_break_micros": round(row.cache_break_dollars * MICRO),
        "estimated_outputs": row.estimated_outputs,
        "sessions": row.sessions,
        "peaks": row.peaks,
        "peak_sum_millis": round(row.peak_sum * MILLI),
        "red_sessions": row.red_sessions,
    }


def keep(connection: Database, session: int) -> None:
    """Keep the part of a session in the sums although retention deletes it."""
    connection.execute(_KEEP, (session,))
    connection.execute(_KEEP_REPEATED, (session,))


def problem(connection: Database) -> str | None:
    """Return a day whose sums are not those of its sessions, or None."""
    row = connection.execute(_UNLIKE).fetchone()
    return None if row is None else f"daily: the sums of day {row[0]} are not those of its sessions"
