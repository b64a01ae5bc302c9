"""The partitions of `events`, one per month in which events were stored.

A partition is a range of event numbers, so that an event is found by its number in one partition and a session's
events are in the few partitions of the months it was written in. The first batch of a month continues with the
first number of the next range. A month whose last session retention has deleted is dropped whole.
"""

from __future__ import annotations

from typing import Final

from windowpane.store.database import Database
from windowpane.store.tables import table

EVENT_MONTHS: Final = table(
    "event_months", "month text, first_seq integer, end_seq integer", key="month", unique="first_seq"
)
SPAN: Final = 2**36
"""Event numbers of one month: 26,000 a second."""

_NOW: Final = "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM')"
_LATEST: Final = "SELECT month, end_seq FROM event_months ORDER BY first_seq DESC LIMIT 1"
_CLOSED: Final = "SELECT month, first_seq, end_seq FROM event_months ORDER BY first_seq"


def current_month(database: Database) -> str:
    """Return the month by the server's clock, such as `2026-11`; the clocks of agents may differ."""
    return str(database.execute(_NOW).fetchone()[0])


def open_month(database: Database, month: str) -> None:
    """Let the following events go to the partition of *month*, created here unless there is one as late.

    Inside the caller's transaction, which excludes other writers.
    """
    latest = database.execute(_LATEST).fetchone()
    if latest is not None and latest[0] >= month:
        return
    first = 1 if latest is None else latest[1]
    _attach(database, month, first, (first // SPAN + 1) * SPAN)
    database.execute("UPDATE store SET next_seq = ?", (first,))


def make_room(database: Database, last_seq: int) -> None:
    """Let events up to this number be stored, which were numbered elsewhere; inside the caller's transaction."""
    month, end = database.execute(_LATEST).fetchone()
    if last_seq >= end:
        _attach(database, f"{month}a", end, (last_seq // SPAN + 1) * SPAN)


def _attach(database: Database, month: str, first: int, end: int) -> None:
    partition = _partition(month)
    # Attached, and not created in place: reads of the other months need not end before.
    database.execute(f"CREATE TABLE {partition} (LIKE events INCLUDING ALL)")
    start = "MINVALUE" if first == 1 else first
    database.execute(f"ALTER TABLE events ATTACH PARTITION {partition} FOR VALUES FROM ({start}) TO ({end})")
    database.execute("INSERT INTO event_months (month, first_seq, end_seq) VALUES (?, ?, ?)", (month, first, end))


def drop_empty(database: Database) -> list[str]:
    """Drop the partitions of earlier months that hold no event; return their months.

    Inside the caller's transaction, which excludes other writers. Waits for running reads of events.
    """
    months = database.execute(_CLOSED).fetchall()
    empty = [month for month, first, end in months[:-1] if not _has_events(database, first, end)]
    for month in empty:
        database.execute(f"DROP TABLE {_partition(month)}")
        database.execute("DELETE FROM event_months WHERE month = ?", (month,))
    return empty


def _has_events(database: Database, first: int, end: int) -> bool:
    query = "SELECT 1 FROM events WHERE seq >= ? AND seq < ? LIMIT 1"
    return database.execute(query, (first, end)).fetchone() is not None


def _partition(month: str) -> str:
    return f"events_{month.replace('-', '_')}"
