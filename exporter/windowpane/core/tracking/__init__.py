"""The session tracker: records the facts of one session and derives its events from them."""

from __future__ import annotations

from windowpane.core.tracking.emitter import SessionInfo
from windowpane.core.tracking.tracker import SessionTracker

__all__ = ["SessionInfo", "SessionTracker"]
