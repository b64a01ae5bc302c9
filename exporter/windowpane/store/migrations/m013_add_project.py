"""The project of each session, and the trends of a project's sessions that retention deletes."""

from __future__ import annotations

import sqlite3
from typing import Final

_SUMS: Final = (
    "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_micros", "compactions",
    "fidelity_millis", "fidelities", "regrets", "cache_breaks", "cache_break_micros",
    "sessions", "peaks", "peak_sum_millis", "red_sessions",
)  # fmt: skip

STATEMENTS: Final = (
    "ALTER TABLE sessions ADD COLUMN project TEXT NOT NULL DEFAULT ''",
    f"""CREATE TABLE project_days (
        project TEXT NOT NULL, day BIGINT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
        release TEXT NOT NULL, {", ".join(f"{name} BIGINT NOT NULL" for name in _SUMS)},
        PRIMARY KEY (project, day, agent, model, release)
    )""",
)


def apply(connection: sqlite3.Connection) -> None:
    """Add the column and the table; no event so far names a project."""
    for statement in STATEMENTS:
        connection.execute(statement)
