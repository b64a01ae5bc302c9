"""The session tracker: derives events (pressure, zones, forecasts, regrets) from the facts of one session."""

from __future__ import annotations

from windowpane.core.tracking.emitter import SessionInfo
from windowpane.core.tracking.tracker import SessionTracker

__all__ = ["SessionInfo", "SessionTracker"]
