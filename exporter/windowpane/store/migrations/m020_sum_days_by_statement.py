"""Triggers of PostgreSQL that add all days which a statement changes to the sums at once, and not row by row.

In SQLite triggers run for each row.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from windowpane.store.database import Database
from windowpane.store.migrations.m009_add_trends_and_tool_use import SUMS

_DAILY: Final = (*SUMS, "sessions", "peaks", "peak_sum_millis", "red_sessions")
_KEY: Final = "day, agent, model, release"
_PARTS: Final = (
    *SUMS, "1", "CAST(peak_millis >= 0 AS integer)", "greatest(peak_millis, 0)",
    "CAST(peak_millis >= 900 AS integer)",
)  # fmt: skip
"""The part of a row of `session_days` in each sum."""


def _changes(rows: str, factor: str) -> str:
    parts = ", ".join(f"{factor} * ({part}) AS {name}" for part, name in zip(_PARTS, _DAILY, strict=True))
    return f"SELECT {_KEY}, {parts} FROM {rows}"  # noqa: S608  # our columns


_ADDED: Final = _changes("added", "1")
_REMOVED: Final = _changes("removed", "-1")


def _trigger(operation: str, tables: str, changes: str) -> tuple[str, str]:
    """Return the statements that create a trigger and its function."""
    name = f"session_days_{operation.lower()}"
    function = f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO daily ({_KEY}, pruned, {", ".join(_DAILY)})
            SELECT {_KEY}, 0, {", ".join(f"sum({name})" for name in _DAILY)}
            FROM ({changes}) AS changes GROUP BY {_KEY}
            ON CONFLICT ({_KEY}, pruned) DO UPDATE SET
            {", ".join(f"{name} = daily.{name} + excluded.{name}" for name in _DAILY)};
            RETURN NULL;
        END $$"""  # noqa: S608  # our columns
    trigger = (
        f"CREATE TRIGGER {name} AFTER {operation} ON session_days REFERENCING {tables} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
    )
    return function, trigger


STATEMENTS: Final = (
    "DROP TRIGGER session_days_changed ON session_days",
    "DROP FUNCTION add_session_day()",
    *_trigger("INSERT", "NEW TABLE AS added", _ADDED),
    *_trigger("UPDATE", "OLD TABLE AS removed NEW TABLE AS added", f"{_ADDED} UNION ALL {_REMOVED}"),
    *_trigger("DELETE", "OLD TABLE AS removed", _REMOVED),
)


def apply(connection: Database) -> None:
    """Replace the trigger in PostgreSQL."""
    if not isinstance(connection, sqlite3.Connection):
        for statement in STATEMENTS:
            connection.execute(statement)
