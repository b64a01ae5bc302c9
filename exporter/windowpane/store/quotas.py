"""The used quota of plans: one row per whole percent and window, which imports and the status line record.

Loads only the standard library, as a status line must. Providers state the end of a window some seconds apart, so
it is rounded to a minute.
"""

from __future__ import annotations

import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windowpane.store.database import Database

RETAINED_SECONDS = 30 * 86_400
"""Age from which rows are deleted: four times the longest window of a plan."""
MAXIMUM_ROWS = 2_000
LOCKED_SECONDS = 0.2
"""The longest wait of a status line for another process."""
_MINUTE = 60

RECORD = """INSERT INTO quotas (agent, minutes, resets_at, percent, at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (agent, minutes, resets_at, percent) DO UPDATE
    SET at = excluded.at WHERE excluded.at < quotas.at"""
EXPIRE = "DELETE FROM quotas WHERE at < ?"
_IS_RECORDED = "SELECT 1 FROM quotas WHERE agent = ? AND minutes = ? AND resets_at = ? AND percent = ?"
_UNEXPIRED = "SELECT agent, minutes, resets_at, percent, at FROM quotas WHERE resets_at > ? ORDER BY at LIMIT ?"


def row(
    agent: str, minutes: int, resets_at: float, used_ratio: float, at: float
) -> tuple[str, int, int, int, float]:
    """Return the values of `RECORD`."""
    return agent, minutes, round(resets_at / _MINUTE) * _MINUTE, round(used_ratio * 100), at


def unexpired(connection: Database, now: float) -> list[tuple[str, int, int, int, float]]:
    """Return the rows of the windows that end after *now*, in order of time."""
    return connection.execute(_UNEXPIRED, (now, MAXIMUM_ROWS)).fetchall()


def record(store_file: str, rows: Iterable[Sequence[object]]) -> None:
    """Record rows in an SQLite store, those that it does not hold; nothing where it is locked or unreadable."""
    path = store_file.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=LOCKED_SECONDS)
        try:
            new = [one for one in rows if connection.execute(_IS_RECORDED, tuple(one[:4])).fetchone() is None]
            if new:
                with connection:
                    connection.executemany(RECORD, new)
        finally:
            connection.close()
    except sqlite3.Error:
        return
