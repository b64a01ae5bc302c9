"""Times of events as dates: a broken clock or recording can state a time that no calendar holds."""

from __future__ import annotations

from datetime import UTC, datetime

TYPE_CHECKING = False  # as in text.formats
if TYPE_CHECKING:
    from typing import Final

EARLIEST: Final = -62_135_510_400.0
"""The second day of the year 1: every time zone can still show it."""
LATEST: Final = 253_402_128_000.0
"""The day before the last of the year 9999, likewise."""


def moment(at: float | None) -> datetime | None:
    """Return a time in seconds since the epoch as a date in UTC; None where unknown or outside the calendar."""
    return datetime.fromtimestamp(at, UTC) if at is not None and EARLIEST <= at <= LATEST else None


def within_calendar(at: float) -> datetime:
    """Return the nearest date that the calendar holds; the latest for NaN."""
    return datetime.fromtimestamp(max(EARLIEST, min(LATEST, at)), UTC)
