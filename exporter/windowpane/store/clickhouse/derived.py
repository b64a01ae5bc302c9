"""Statements that derive rows inside ClickHouse: sums by day, and the removal of rows of earlier revisions.

Both state absolute values, so that repeating them changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice
from typing import Final

from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.rows import day_of, version_of
from windowpane.store.clickhouse.tables import ALERTS, BY_DAY, SESSION_DAYS, TOOL_USE, TURNS, CopyTable
from windowpane.store.records import SessionRow
from windowpane.store.tables import DAILY_SUMS

NAMED_SESSIONS: Final = 500
"""Sessions that one statement names: their ids are part of the address of its request."""

_DAY_SUMS: Final = ", ".join(f"sumIf({name}, NOT removed)" for name in DAILY_SUMS)
_TOOL_SUMS: Final = (
    "sumIf(blocks, NOT removed), sumIf(tokens, NOT removed), sumIf(carried_tokens, NOT removed), "
    "sumIf(dollars, NOT removed), uniqExactIf(session_id, NOT removed), {version:UInt64}"
)
_OF_DAYS: Final = "FINAL WHERE day IN {days:Array(Date32)}"
"""Compared as they are: a function of the days would have every row of the table read."""
SUM_DAYS: Final = (
    f"INSERT INTO daily (day, agent, model, release, {', '.join(DAILY_SUMS)}, version) "  # noqa: S608  # our columns
    f"SELECT day, agent, model, release, {_DAY_SUMS}, {{version:UInt64}} "
    f"FROM session_days {_OF_DAYS} GROUP BY day, agent, model, release {BY_DAY}"
)
SUM_TOOLS: Final = (
    "INSERT INTO tool_days "  # noqa: S608  # our columns
    "(day, tool, target, blocks, tokens, carried_tokens, dollars, sessions, version) "
    f"SELECT day, tool, target, {_TOOL_SUMS} FROM tool_use {_OF_DAYS} GROUP BY day, tool, target {BY_DAY}"
)
_PROJECT_KEYS: Final = "project, day, agent, model, release"
_PROJECT_SUMS: Final = f"{_PROJECT_KEYS}, {', '.join(DAILY_SUMS)}"
SUM_PROJECT_DAYS: Final = f"""
    INSERT INTO project_days ({_PROJECT_SUMS}, version)
    SELECT {_PROJECT_KEYS}, {_DAY_SUMS}, {{version:UInt64}}
    FROM (
        SELECT {_PROJECT_SUMS}, removed FROM session_days {_OF_DAYS}
        UNION ALL SELECT {_PROJECT_SUMS}, true AS removed FROM project_days {_OF_DAYS}
    ) GROUP BY {_PROJECT_KEYS} {BY_DAY}"""  # noqa: S608  # our columns
"""With the sums that are there, so that those of a project without its sessions become 0: sessions move."""
_USES: Final = "project, day, tool, target, blocks, tokens, carried_tokens, dollars"
SUM_PROJECT_TOOLS: Final = f"""
    INSERT INTO project_tool_days ({_USES}, sessions, version)
    SELECT project, day, tool, target, {_TOOL_SUMS}
    FROM (
        SELECT {_USES}, session_id, removed FROM tool_use {_OF_DAYS}
        UNION ALL SELECT {_USES}, '' AS session_id, true AS removed FROM project_tool_days {_OF_DAYS}
    ) GROUP BY project, day, tool, target {BY_DAY}"""  # noqa: S608  # our columns
_EARLIER_REVISION: Final = "revision < transform(session_id, {ids:Array(String)}, {revisions:Array(Int64)}, 0)"
_UNTIMED: Final = "day = toDate32(0)"


@dataclass(slots=True)
class UpdatedDays:
    """Days since the epoch whose sums are to be computed again."""

    trends: set[int] = field(default_factory=set)
    tools: set[int] = field(default_factory=set)

    def add(self, table: CopyTable, days: Iterable[int]) -> None:
        """Add the days of rows of *table*, if it is one that is summed."""
        if table is SESSION_DAYS:
            self.trends.update(days)
        elif table is TOOL_USE:
            self.tools.update(days)


def sum_days(clickhouse: ClickHouse, days: UpdatedDays, *, version: int) -> None:
    """Compute the sums of the days again; *version* is greater than that of any earlier sum."""
    for summed, statements in (
        (days.trends, (SUM_DAYS, SUM_PROJECT_DAYS)),
        (days.tools, (SUM_TOOLS, SUM_PROJECT_TOOLS)),
    ):
        dates = [date_of(day) for day in sorted(summed)]
        for statement in statements if summed else ():
            clickhouse.execute(statement, {"days": dates, "version": version})


def date_of(day: int) -> date:
    """Return the date that is so many days after the epoch."""
    return date(1970, 1, 1) + timedelta(day)


def remove_superseded(clickhouse: ClickHouse, sessions: Sequence[SessionRow], days: UpdatedDays) -> None:
    """Remove the rows that do not count, and add the days they were on to *days*.

    These are the rows of earlier revisions, and all of a session that another one counts for. Their events stay,
    as they do in the store.
    """
    revised = [session for session in sessions if session.revision > 1 or session.same_as]
    for table in (TURNS, ALERTS, SESSION_DAYS, TOOL_USE):
        _remove(clickhouse, table, revised, _EARLIER_REVISION, days)
    # A session without times had its tools on no day until its first event with one.
    timed = [session for session in sessions if day_of(session.started_at)]
    _remove(clickhouse, TOOL_USE, timed, _UNTIMED, days)


def _remove(
    clickhouse: ClickHouse, table: CopyTable, sessions: Sequence[SessionRow], condition: str, days: UpdatedDays
) -> None:
    where = f"{table.name} FINAL WHERE session_id IN {{ids:Array(String)}} AND {condition}"
    for chunk in _chunks(sessions):
        values = {
            "ids": [session.session_id for session in chunk],
            "revisions": [session.revision + bool(session.same_as) for session in chunk],
            "versions": [version_of(session) + bool(session.same_as) for session in chunk],
        }
        # Those that an interrupted batch has removed already, too: their days may not be summed yet.
        rows = clickhouse.query(f"SELECT DISTINCT toInt32(day) FROM {where}", values)  # noqa: S608  # bound
        if not rows:
            continue
        days.add(table, (day for (day,) in rows))
        clickhouse.execute(
            f"INSERT INTO {table.name} SELECT * REPLACE (true AS removed, "  # noqa: S608  # values are bound
            "transform(session_id, {ids:Array(String)}, {versions:Array(UInt64)}, toUInt64(0)) AS version) "
            f"FROM (SELECT * FROM {where} AND NOT removed)",
            values,
        )


def _chunks(sessions: Sequence[SessionRow]) -> Iterator[list[SessionRow]]:
    remaining = iter(sessions)
    while chunk := list(islice(remaining, NAMED_SESSIONS)):
        yield chunk
