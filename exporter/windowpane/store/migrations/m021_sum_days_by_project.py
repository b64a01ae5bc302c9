"""The project of each session in its days and in the sums of a day, which so far had only those that were pruned.

A trigger of the database keeps the sums: in SQLite for each row, in PostgreSQL for all rows of a statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from windowpane.store.migrations.m009_add_trends_and_tool_use import SUMS

_DAILY: Final = (*SUMS, "sessions", "peaks", "peak_sum_millis", "red_sessions")
_KEY: Final = ("day", "agent", "model", "release", "project")
_LIST: Final = ", ".join((*_KEY, "pruned", *_DAILY))
_TRIGGERS: Final = ("session_days_added", "session_days_removed", "session_days_changed")
"""Those of earlier releases; in PostgreSQL the last one does the work of all."""
_CONFLICT: Final = f"ON CONFLICT ({', '.join(_KEY)}, pruned) DO UPDATE SET " + ", ".join(
    f"{name} = daily.{name} + excluded.{name}" for name in _DAILY
)


def _parts(row: str = "") -> tuple[str, ...]:
    """Return the part of a row of `session_days` in each sum."""
    peak = f"{row}peak_millis"
    return (
        *(f"{row}{name}" for name in SUMS),
        "1",
        f"CASE WHEN {peak} >= 0 THEN 1 ELSE 0 END",
        f"CASE WHEN {peak} > 0 THEN {peak} ELSE 0 END",
        f"CASE WHEN {peak} >= 900 THEN 1 ELSE 0 END",
    )


def _create() -> str:
    key = ", ".join(f"{name} {'BIGINT' if name == 'day' else 'TEXT'} NOT NULL" for name in _KEY)
    sums = ", ".join(f"{name} BIGINT NOT NULL" for name in _DAILY)
    return f"CREATE TABLE daily ({key}, pruned BIGINT NOT NULL, {sums}, PRIMARY KEY ({', '.join(_KEY)}, pruned))"


_SUMMED: Final = (
    f"INSERT INTO daily ({_LIST}) SELECT {', '.join(_KEY)}, 0, "  # noqa: S608  # our columns
    f"{', '.join(f'sum({part})' for part in _parts())} FROM session_days GROUP BY {', '.join(_KEY)}"
)
_PRUNED: Final = (
    f"""INSERT INTO daily ({_LIST})
    SELECT day, agent, model, release, project, 1, {", ".join(_DAILY)} FROM project_days""",  # noqa: S608
    f"""INSERT INTO daily ({_LIST})
    SELECT e.day, e.agent, e.model, e.release, '', 1,
        {", ".join(f"max(e.{name}) - coalesce(sum(p.{name}), 0)" for name in _DAILY)}
    FROM earlier_daily AS e LEFT JOIN project_days AS p
        ON p.day = e.day AND p.agent = e.agent AND p.model = e.model AND p.release = e.release
    WHERE e.pruned = 1 GROUP BY e.day, e.agent, e.model, e.release
    HAVING max(e.sessions) > coalesce(sum(p.sessions), 0)""",  # noqa: S608  # our columns
)
"""The sums of deleted sessions: of each project, and the rest of those of all."""


def _sqlite_trigger(name: str, operation: str, *changes: tuple[str, str]) -> str:
    """Return a trigger that adds the parts of the named rows with their factor."""
    inserts = (
        f"INSERT INTO daily ({_LIST}) VALUES ({', '.join(f'{row}.{column}' for column in _KEY)}, 0, "  # noqa: S608
        f"{', '.join(f'{factor}({part})' for part in _parts(f'{row}.'))}) {_CONFLICT};"
        for row, factor in changes
    )
    return f"CREATE TRIGGER {name} AFTER {operation} ON session_days BEGIN {' '.join(inserts)} END"


def _postgres_trigger(name: str, operation: str, *changes: tuple[str, str]) -> Iterator[str]:
    """Yield a trigger that adds the parts of the named tables of rows with their factor, and its function."""
    parts = " UNION ALL ".join(
        f"SELECT {', '.join(_KEY)}, "  # noqa: S608  # our columns
        + ", ".join(f"{factor}({part}) AS {column}" for part, column in zip(_parts(), _DAILY, strict=True))
        + f" FROM {table}"
        for table, factor in changes
    )
    names = {"added": "NEW TABLE AS added", "removed": "OLD TABLE AS removed"}
    yield f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO daily ({_LIST})
            SELECT {", ".join(_KEY)}, 0, {", ".join(f"sum({column})" for column in _DAILY)}
            FROM ({parts}) AS changes GROUP BY {", ".join(_KEY)} {_CONFLICT};
            RETURN NULL;
        END $$"""  # noqa: S608  # our columns
    yield (
        f"CREATE TRIGGER {name} AFTER {operation} ON session_days "
        f"REFERENCING {' '.join(names[table] for table, _ in changes)} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
    )


def apply(connection: Any) -> None:
    """Add the project to the days and the sums, and put the triggers over both in place of the earlier ones."""
    is_sqlite = isinstance(connection, sqlite3.Connection)
    for statement in _statements(is_sqlite=is_sqlite):
        connection.execute(statement)


def _statements(*, is_sqlite: bool) -> Iterator[str]:
    for name in _TRIGGERS:
        yield f"DROP TRIGGER IF EXISTS {name}{'' if is_sqlite else ' ON session_days'}"
    if not is_sqlite:
        yield "DROP FUNCTION IF EXISTS add_session_day()"
    yield "ALTER TABLE session_days ADD COLUMN project TEXT NOT NULL DEFAULT ''"
    yield "UPDATE session_days SET project = (SELECT project FROM sessions WHERE key = session_days.session)"
    yield "ALTER TABLE daily RENAME TO earlier_daily"
    yield _create() + (" WITHOUT ROWID" if is_sqlite else "")
    yield from (_SUMMED, *_PRUNED, "DROP TABLE earlier_daily", "DROP TABLE project_days")
    if is_sqlite:
        yield _sqlite_trigger("session_days_added", "INSERT", ("NEW", "+"))
        yield _sqlite_trigger("session_days_removed", "DELETE", ("OLD", "-"))
        yield _sqlite_trigger("session_days_changed", "UPDATE", ("OLD", "-"), ("NEW", "+"))
    else:
        yield from _postgres_trigger("session_days_insert", "INSERT", ("added", "+"))
        yield from _postgres_trigger("session_days_delete", "DELETE", ("removed", "-"))
        yield from _postgres_trigger("session_days_update", "UPDATE", ("removed", "-"), ("added", "+"))
