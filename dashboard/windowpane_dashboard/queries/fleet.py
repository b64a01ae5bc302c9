"""The sessions that the fleet page lists, the alerts that fire in them, and how long the store keeps them.

Their order is that of `windowpane.store.fleet_order`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from windowpane.config.loading import load_config
from windowpane.core.liveness import is_live
from windowpane.core.vocabulary import SEVERITIES, ZONES, Severity
from windowpane.store.interface import EventReader
from windowpane.store.records import AlertRow, SessionRow, StoreSize
from windowpane.text.forecasts import next_event
from windowpane.text.formats import UNKNOWN, ago, count, size
from windowpane.text.labels import MARK_OF
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.filters import FleetFilters, SessionAddress

FLEET_ROWS: Final = 500
"""Sessions the fleet page lists at most."""
FIRINGS: Final = 2_000
"""Unresolved alerts looked through, the latest ones."""
BESIDE = ("", "-wal", "-shm")
"""The database file and those SQLite keeps beside it."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Matching sessions, in the order of the store."""

    rows: tuple[SessionRow, ...]
    more: bool
    """True where more sessions match than are listed."""
    fired: dict[str, Counter[Severity]]
    """Alerts that fire now, counted by severity, for each session with any."""

    @property
    def firing(self) -> dict[str, Severity]:
        """The worst severity that fires now, by session."""
        return {session_id: worst_severity(counts) for session_id, counts in self.fired.items()}

    @property
    def zone_counts(self) -> dict[str, int]:
        """Sessions in each zone, worst zone first; those without a known limit under `–`."""
        counts = {zone_label(zone): 0 for zone in reversed(ZONES)}
        for row in self.rows:
            label = zone_label(row.zone)
            counts[label] = counts.get(label, 0) + 1
        return counts

    @property
    def cost_dollars(self) -> float | None:
        """Cost of all sessions; None where no price is known."""
        costs = [row.cost_dollars for row in self.rows if row.cost_dollars is not None]
        return sum(costs) if costs else None

    @property
    def cache_ratio(self) -> float | None:
        """Share of all input tokens that came from a prompt cache, 0 to 1."""
        sent = sum(row.input_tokens for row in self.rows)
        return sum(row.cache_read_tokens for row in self.rows) / sent if sent else None


def read_fleet(reader: EventReader, filters: FleetFilters) -> Fleet:
    """Return the matching sessions, the one under most pressure first."""
    rows = reader.sessions(filters.to_store(limit=FLEET_ROWS + 1))
    return Fleet(
        tuple(rows[:FLEET_ROWS]), len(rows) > FLEET_ROWS, firing_now(reader.alerts(firing=True, limit=FIRINGS))
    )


def firing_now(alerts: Sequence[AlertRow]) -> dict[str, Counter[Severity]]:
    """Return the unresolved alerts of each session, counted by severity."""
    fired: defaultdict[str, Counter[Severity]] = defaultdict(Counter)
    for alert in alerts:
        if alert.resolved_turn is None:
            fired[alert.session_id][alert.severity] += 1
    return dict(fired)


def worst_severity(fired: Counter[Severity]) -> Severity:
    """Return the worst severity that fires."""
    return max(fired, key=SEVERITIES.index)


def firing_text(firing: int, fired: Counter[Severity] | None) -> str:
    """Return the number of *firing* alerts of the worst severity, and of the others: `1 critical +2`."""
    if not firing or not fired:
        return f"{firing} firing" if firing else ""
    worst = worst_severity(fired)
    others = firing - fired[worst]
    return f"{fired[worst]} {worst} +{others}" if others > 0 else f"{fired[worst]} {worst}"


def fleet_frame(listed: Fleet, now: float) -> pd.DataFrame:
    """Return one row per session, in the columns of the fleet's table."""
    records = [_fleet_record(row, now, listed.fired.get(row.session_id)) for row in listed.rows]
    return pd.DataFrame(records, columns=list(_FLEET_COLUMNS))


_FLEET_COLUMNS: Final = (
    "zone", "session", "agent", "model", "utilization over time", "now", "tokens", "worst", "next", "Δ/turn",
    "turns", "cost", "last event", "alerts", "estimated", "firing",
)  # fmt: skip


def _fleet_record(row: SessionRow, now: float, fired: Counter[Severity] | None) -> dict[str, Any]:
    letter = MARK_OF[row.last_event].letter if row.last_event in MARK_OF else ""
    return {
        "zone": zone_label(row.zone),
        "session": SessionAddress(row.session_id).url(),
        "agent": row.agent or UNKNOWN,
        "model": row.model or UNKNOWN,
        "utilization over time": list(row.sparkline),
        "now": None if row.utilization is None else 100 * row.utilization,
        "tokens": row.used_tokens,
        "worst": zone_label(row.worst_zone),
        "next": (next_event(row).text or UNKNOWN) if is_live(row, now) else "not live",
        "Δ/turn": row.velocity,
        "turns": row.turns,
        "cost": row.cost_dollars,
        "last event": f"{letter} {ago(row.last_at, now)}".strip(),
        "alerts": firing_text(row.firing, fired),
        "estimated": row.is_estimated,
        "firing": worst_severity(fired) if row.firing and fired else None,
    }


# -- what is stored, and for how long --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Retention:
    """The age and the size beyond which whole sessions are deleted."""

    days: float
    bytes: int
    configured: frozenset[str]
    """The names of those that are set; others are defaults."""


def configured_retention() -> Retention:
    """Return the limits that `windowpane serve` enforces with these settings. Raises `ConfigurationError`."""
    store = load_config().store
    field_of = {"retention_days": "days", "retention_bytes": "bytes"}
    configured = frozenset(field_of[name] for name in store.model_fields_set if name in field_of)
    return Retention(store.retention_days, store.retention_bytes, configured)


def retention_text(retention: Retention) -> str:
    """Return the limits: `after 30 days without an event (default) or beyond 2.0 GB (configured)`."""
    origin = {name: "configured" if name in retention.configured else "default" for name in ("days", "bytes")}
    number = int(retention.days)
    days = count(number, "day") if retention.days == number else f"{retention.days:g} days"
    return (
        f"after {days} without an event ({origin['days']}) or beyond {size(retention.bytes)} ({origin['bytes']})"
    )


def bytes_on_disk(path: Path) -> int:
    """Return the size of the database with its write-ahead log."""
    files = (path.with_name(path.name + suffix) for suffix in BESIDE)
    return sum(file.stat().st_size for file in files if file.exists())


def storage_text(stored: StoreSize, on_disk: int, now: float) -> str:
    """Return the size: `13.4 MB on disk (12.9 MB in use), 12,022 events of 15 sessions, no content`."""
    texts = count(stored.contents, "captured text") if stored.contents else "no content"
    used = "" if size(on_disk) == size(stored.bytes) else f" ({size(stored.bytes)} in use)"
    age = ago(stored.oldest_at, now)
    oldest = "" if stored.oldest_at is None else f"; the last event of the oldest session is from {age}"
    return (
        f"Store: {size(on_disk)} on disk{used}, {count(stored.events, 'event')} of "
        f"{count(stored.sessions, 'session')}, {texts}{oldest}."
    )
