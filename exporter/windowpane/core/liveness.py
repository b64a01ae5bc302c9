"""Liveness: a session is live until it ends or has been silent for fifteen minutes."""

from __future__ import annotations

TYPE_CHECKING = False  # the status line of a coding agent, which uses this, must not wait for typing
if TYPE_CHECKING:
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


LIVE_SECONDS: Final = 15 * 60.0


def live_since(now: float) -> float:
    """Return the earliest time of a last event that still makes a session live at *now*."""
    return now - LIVE_SECONDS


def is_live(session: Observed, now: float) -> bool:
    """Return True if *session* has not ended and its last event is at most 15 minutes old."""
    return not session.ended and session.last_at is not None and session.last_at >= live_since(now)
