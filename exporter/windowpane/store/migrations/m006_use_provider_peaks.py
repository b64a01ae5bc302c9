"""Peaks of a session are those of the provider's totals where there are any."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

_SESSIONS: Final = "SELECT key, memory, overflows FROM sessions"
_MEASURED: Final = """SELECT body FROM events
    WHERE session = ? AND type = (SELECT id FROM event_types WHERE name = 'pressure.measured')"""
_UPDATE: Final = "UPDATE sessions SET memory = ?, peak_used_tokens = ?, peak_utilization = ? WHERE key = ?"
_UPDATE_ZONE: Final = "UPDATE sessions SET worst_zone = ? WHERE key = ?"
_ZONES: Final = ("green", "yellow", "orange", "red", "overflow")


class _Measured(msgspec.Struct):
    phase: str
    count_source: str
    used_tokens: int
    utilization: float | None = None
    zone: str | None = None


class _Event(msgspec.Struct):
    data: _Measured


_decoder: Final = msgspec.json.Decoder(_Event)


def apply(connection: sqlite3.Connection) -> None:
    """Set the peaks from the measurements with a total; damaged events and rows are skipped."""
    for key, memory, overflows in connection.execute(_SESSIONS).fetchall():
        totals = _totals(connection, key)
        if not totals:
            continue
        try:
            values = msgspec.json.decode(memory)
        except (msgspec.DecodeError, TypeError):
            continue
        raw = msgspec.json.encode({**values, "has_totals": True})
        peak = max(total.used_tokens for total in totals)
        utilization = max((total.utilization for total in totals if total.utilization is not None), default=None)
        connection.execute(_UPDATE, (raw, peak, utilization, key))
        if not overflows:
            zones = [total.zone for total in totals if total.zone in _ZONES]
            connection.execute(_UPDATE_ZONE, (max(zones, key=_ZONES.index, default=None), key))


def _totals(connection: sqlite3.Connection, key: int) -> list[_Measured]:
    totals = []
    for (body,) in connection.execute(_MEASURED, (key,)):
        try:
            measured = _decoder.decode(body).data
        except (msgspec.MsgspecError, TypeError):
            continue
        if measured.phase == "final" and measured.count_source == "usage":
            totals.append(measured)
    return totals
