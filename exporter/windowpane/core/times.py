"""Times of events as dates, and the liveness of a session.

A broken clock or recording can report a time that no calendar holds. The status line of a coding agent, which
uses this, must not wait for `typing`.
"""

from __future__ import annotations

from datetime import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Final, Protocol

    class Observed(Protocol):
        """A session as far as its liveness is concerned."""

        @property
        def ended(self) -> bool:
            """True once the session has ended."""
            ...

        @property
        def last_at(self) -> float | None:
            """Time of its last event in seconds since the epoch; None in recordings without times."""
            ...


EARLIEST: Final = -62_135_510_400.0
"""The second day of the year 1: every time zone can still show it."""
LATEST: Final = 253_402_128_000.0
"""The day before the last of the year 9999, likewise."""


def moment(at: float | None) -> datetime | None:
    """Return a time in seconds since the epoch as a date in UTC; None where unknown or outside the calendar."""
    return datetime.fromtimestamp(at, UTC) if at is not None and EARLIEST <= at <= LATEST else None


def midnight(now: float, zone: tzinfo | None = None) -> float:
    """Return the start of the day of *now* in *zone*, else in that of this machine."""
    return datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def within_calendar(at: float) -> datetime:
    """Return the nearest date that the calendar holds; the latest for NaN."""
    return datetime.fromtimestamp(max(EARLIEST, min(LATEST, at)), UTC)


IDLE_SECONDS: Final = 120.0
"""Seconds after the last event from which on a session waits, so its pace does not predict its next turns."""
LIVE_SECONDS: Final = 15 * 60.0


def live_since(now: float) -> float:
    """Return the earliest time of a last event that still makes a session live at *now*."""
    return now - LIVE_SECONDS


def is_live(session: Observed, now: float) -> bool:
    """Return True if *session* has not ended and its last event is at most 15 minutes old."""
    return is_live_since(session, live_since(now))


def is_live_since(session: Observed, since: float) -> bool:
    """Return True if *session* has not ended and had an event at *since* or later."""
    return not session.ended and session.last_at is not None and session.last_at >= since
