"""Sums by day, the tool and the calls of each block, and the cache breaks of each session.

Triggers keep `daily` the sum of `session_days`. The rows of sessions that are stored already are folded from
their events once, by `projection.rebuild_stale`.
"""

from __future__ import annotations

import sqlite3
from typing import Final

SUMS: Final = (
    "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_micros", "compactions",
    "fidelity_millis", "fidelities", "regrets", "cache_breaks", "cache_break_micros",
)  # fmt: skip
_DAILY: Final = (*SUMS, "sessions", "peaks", "peak_sum_millis", "red_sessions")
_KEY: Final = "day, agent, model, release"


def _parts(row: str) -> tuple[str, ...]:
    """Return the part of a row of `session_days` in each sum."""
    peak = f"{row}.peak_millis"
    return (*(f"{row}.{name}" for name in SUMS), "1", f"({peak} >= 0)", f"max({peak}, 0)", f"({peak} >= 900)")


def _add(row: str, factor: str) -> str:
    values = ", ".join(f"{factor}{part}" for part in _parts(row))
    updates = ", ".join(f"{name} = {name} + excluded.{name}" for name in _DAILY)
    key = ", ".join(f"{row}.{name}" for name in _KEY.split(", "))
    return (
        f"INSERT INTO daily ({_KEY}, pruned, {', '.join(_DAILY)}) VALUES ({key}, 0, {values}) "  # noqa: S608
        f"ON CONFLICT ({_KEY}, pruned) DO UPDATE SET {updates};"
    )


_CHANGE: Final = f"BEGIN {_add('OLD', '-')} {_add('NEW', '')} END"

STATEMENTS: Final = (
    f"""CREATE TABLE session_days (
        session INTEGER NOT NULL, day INTEGER NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
        release TEXT NOT NULL, {", ".join(f"{name} INTEGER NOT NULL" for name in SUMS)},
        peak_millis INTEGER NOT NULL, PRIMARY KEY (session, day, agent, model, release)
    ) WITHOUT ROWID""",
    f"""CREATE TABLE daily (
        day INTEGER NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, release TEXT NOT NULL,
        pruned INTEGER NOT NULL, {", ".join(f"{name} INTEGER NOT NULL" for name in _DAILY)},
        PRIMARY KEY (day, agent, model, release, pruned)
    ) WITHOUT ROWID""",
    f"CREATE TRIGGER session_days_added AFTER INSERT ON session_days BEGIN {_add('NEW', '')} END",
    f"CREATE TRIGGER session_days_removed AFTER DELETE ON session_days BEGIN {_add('OLD', '-')} END",
    f"CREATE TRIGGER session_days_changed AFTER UPDATE ON session_days {_CHANGE}",
    "ALTER TABLE blocks ADD COLUMN tool TEXT",
    "ALTER TABLE blocks ADD COLUMN target TEXT",
    "ALTER TABLE blocks ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE blocks ADD COLUMN calls_in INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE blocks ADD COLUMN price_in INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE blocks ADD COLUMN calls_out INTEGER",
    "ALTER TABLE blocks ADD COLUMN price_out INTEGER",
    "ALTER TABLE sessions ADD COLUMN cache_breaks INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN cache_break_tokens INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN cache_break_dollars REAL",
    "ALTER TABLE sessions ADD COLUMN carried_price INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE stale_sessions (session INTEGER PRIMARY KEY)",
    "INSERT INTO stale_sessions SELECT key FROM sessions",
)


def apply(connection: sqlite3.Connection) -> None:
    """Create tables, triggers and columns; every stored session waits to be folded again."""
    for statement in STATEMENTS:
        connection.execute(statement)
