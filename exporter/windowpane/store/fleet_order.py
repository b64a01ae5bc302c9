"""The orders of the fleet.

The default is by pressure: sessions in the worst zone first, and by utilization within a zone. The writer stores
that rank with the session, so that a page of the list is read from an index.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.vocabulary import ZONES, Zone
from windowpane.store.interface import FleetOrder

FLEET_ORDERS: Final[dict[FleetOrder, str]] = {
    "pressure": "pressure DESC, last_at DESC NULLS LAST, key DESC",
    "recent": "last_at DESC NULLS LAST, key DESC",
    "cost": "cost_dollars DESC NULLS LAST, key DESC",
    "regret": "regrets DESC, last_at DESC NULLS LAST, key DESC",
}
"""Columns that each order sorts by."""


def pressure_rank(zone: Zone | None, utilization: float | None) -> float:
    """Return the rank the fleet is ordered by: the zone, then utilization; -1 for a session without a zone."""
    if zone is None:
        return -1.0
    return ZONES.index(zone) * 10 + min(utilization or 0.0, 9.0)
