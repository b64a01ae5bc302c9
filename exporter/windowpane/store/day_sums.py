"""The sums of a day: columns of `session_days` and `daily`, and the SQL of triggers that add one to the other."""

from __future__ import annotations

from typing import Final

SUMS: Final = (
    "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_micros", "compactions",
    "fidelity_millis", "fidelities", "regrets", "cache_breaks", "cache_break_micros",
)  # fmt: skip
"""Sums of a session on a day."""
PEAK: Final = "peak_millis"
"""Highest utilization of the session on the day, in thousandths; -1 while it is unknown."""
RED_MILLIS: Final = 900
DAILY_SUMS: Final = (*SUMS, "sessions", "peaks", "peak_sum_millis", "red_sessions")
DAILY_KEY: Final = ("day", "agent", "model", "release", "project")

ADDED_COLUMNS: Final = f"{', '.join(DAILY_KEY)}, pruned, {', '.join(DAILY_SUMS)}"
ADD_TO_SUMS: Final = f"ON CONFLICT ({', '.join(DAILY_KEY)}, pruned) DO UPDATE SET " + ", ".join(
    f"{name} = daily.{name} + excluded.{name}" for name in DAILY_SUMS
)
"""The end of an INSERT into `daily` of `ADDED_COLUMNS`."""


def parts_of_day(row: str) -> tuple[str, ...]:
    """Return the part of a row of `session_days` in each of `DAILY_SUMS`; *row* names it."""
    peak = f"{row}.{PEAK}"
    return (
        *(f"{row}.{name}" for name in SUMS),
        "1",
        f"CASE WHEN {peak} >= 0 THEN 1 ELSE 0 END",
        f"CASE WHEN {peak} > 0 THEN {peak} ELSE 0 END",
        f"CASE WHEN {peak} >= {RED_MILLIS} THEN 1 ELSE 0 END",
    )
