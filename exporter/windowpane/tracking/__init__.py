"""One session's window and everything that follows from its facts."""

from __future__ import annotations

from windowpane.tracking.emitter import SessionInfo
from windowpane.tracking.tracker import SessionTracker

__all__ = ["SessionInfo", "SessionTracker"]
