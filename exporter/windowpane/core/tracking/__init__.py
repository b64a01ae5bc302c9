"""One session's window and everything that follows from its facts."""

from __future__ import annotations

from windowpane.core.tracking.emitter import SessionInfo
from windowpane.core.tracking.tracker import SessionTracker

__all__ = ["SessionInfo", "SessionTracker"]
