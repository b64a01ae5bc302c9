"""One session's window and everything that follows from its facts."""

from __future__ import annotations

from windowpane.tracking.tracker import SessionInfo, SessionTracker

__all__ = ["SessionInfo", "SessionTracker"]
