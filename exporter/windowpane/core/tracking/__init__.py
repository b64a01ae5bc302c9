"""The session tracker: derives events (pressure, zones, forecasts, regrets) from the facts of one session."""

from __future__ import annotations

from windowpane.core.tracking.tracker import SessionTracker
from windowpane.core.tracking.turns import SessionInfo

__all__ = ["SessionInfo", "SessionTracker"]
