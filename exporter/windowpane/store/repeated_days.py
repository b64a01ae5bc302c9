"""The sessions that the trends count on several rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepeatedDay:
    """A session on one of the several rows of the trends that count it: of its days, models and releases."""

    session: int
    """A number that all rows of the session have, and no other session."""
    day: int
    agent: str
    model: str
    release: str
    peak: float | None
    """Highest utilization of the session on the day."""
