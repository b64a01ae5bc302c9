"""Sessions to choose from: the recent ones and the ones in the address, by their titles."""

from __future__ import annotations

from typing import Final

from windowpane.store.records import SessionRow
from windowpane_dashboard.page import store_access
from windowpane_dashboard.page.store_access import StoreSnapshot

OFFERED: Final = 200
"""Sessions in a picker; any other is chosen by its address."""


def offered_sessions(snapshot: StoreSnapshot, *requested: str | None) -> dict[str, SessionRow]:
    """Return the most recent sessions and the stored ones of *requested*, by id."""
    rows = {row.session_id: row for row in store_access.recent_sessions(snapshot, OFFERED)}
    for session_id in requested:
        if session_id and session_id not in rows and (older := snapshot.store.session(session_id)):
            rows[session_id] = older
    return rows
