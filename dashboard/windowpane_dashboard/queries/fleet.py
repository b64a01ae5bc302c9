"""The sessions that the fleet page lists, the alerts that fire in them, and how long the store keeps them.

Their order is that of `windowpane.store.reads.fleet`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from windowpane.config.loading import load_config
from windowpane.core.files import SHARED_MEMORY, WAL
from windowpane.core.times import is_live
from windowpane.core.vocabulary import SEVERITIES, Severity
from windowpane.store.interface import AlertFilter, EventReader, SessionFilter
from windowpane.store.records import AlertRow, FleetTotals, SessionRow, StoreSize
from windowpane.text.forecasts import next_event
from windowpane.text.formats import UNKNOWN, ago, count, size
from windowpane.text.labels import MARK_OF
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.titles import project, titled_url

FLEET_ROWS: Final = 500
"""Sessions the fleet page lists at most."""
FIRINGS: Final = 2_000
"""Firing alerts of live sessions that are read, the latest ones."""
BESIDE = ("", WAL, SHARED_MEMORY)
"""The database file and those SQLite keeps next to it."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Matching sessions, live ones first, in the order of the store."""

    rows: tuple[SessionRow, ...]
    totals: FleetTotals
    """Over all sessions that match, not only those that are listed."""
    fired: dict[str, Counter[Severity]]
    """Alerts that fire now, counted by severity, for each live session with any."""

    @property
    def more(self) -> bool:
        """True where more sessions match than are listed."""
        return self.totals.sessions > len(self.rows)


def read_fleet(reader: EventReader, query: SessionFilter, live_since: float) -> Fleet:
    """Return the matching sessions in their order; those are live that had an event since *live_since*."""
    firing = reader.alerts(AlertFilter(firing=True, live_since=live_since, limit=FIRINGS))
    totals = reader.fleet_totals(query, live_since=live_since)
    return Fleet(below_parents(reader.sessions(query)), totals, severities_by_session(firing))


def below_parents(rows: Sequence[SessionRow]) -> tuple[SessionRow, ...]:
    """Return the rows with each sub-agent below its parent where both are listed; else in their order."""
    listed = {row.session_id for row in rows}
    children: defaultdict[str, list[SessionRow]] = defaultdict(list)
    for row in rows:
        if row.parent_session_id in listed and row.parent_session_id != row.session_id:
            children[str(row.parent_session_id)].append(row)
    nested = {child.session_id for below in children.values() for child in below}
    ordered: dict[str, SessionRow] = {}
    for start in (*(row for row in rows if row.session_id not in nested), *rows):  # rows in a circle come last
        waiting = [start]
        while waiting:
            row = waiting.pop()
            if row.session_id not in ordered:
                ordered[row.session_id] = row
                waiting += reversed(children[row.session_id])
    return tuple(ordered.values())


def severities_by_session(alerts: Sequence[AlertRow]) -> dict[str, Counter[Severity]]:
    """Return the alerts of each session, counted by severity."""
    fired: defaultdict[str, Counter[Severity]] = defaultdict(Counter)
    for alert in alerts:
        fired[alert.session_id][alert.severity] += 1
    return dict(fired)


def worst_severity(fired: Counter[Severity]) -> Severity:
    """Return the worst severity that fires."""
    return max(fired, key=SEVERITIES.index)


def firing_text(fired: Counter[Severity] | None) -> str:
    """Return the firing alerts of the worst severity, and the number of others: `1 critical +2`."""
    if not fired:
        return ""
    worst = worst_severity(fired)
    others = fired.total() - fired[worst]
    return f"{fired[worst]} {worst} +{others}" if others > 0 else f"{fired[worst]} {worst}"


def fleet_frame(listed: Fleet, now: float) -> pd.DataFrame:
    """Return one row per session, in the columns of the fleet's table."""
    records = [_fleet_record(row, now, listed.fired.get(row.session_id)) for row in listed.rows]
    return pd.DataFrame(records, columns=list(_FLEET_COLUMNS))


_FLEET_COLUMNS: Final = (
    "zone", "session", "repository", "utilization over time", "now", "next", "compactions", "cost", "alerts",
    "last event", "agent", "worst", "model", "turns", "Δ/turn", "tokens", "source", "estimated", "estimated cost",
    "firing",
)  # fmt: skip
STYLING: Final = ("estimated", "estimated cost", "firing")
"""Columns that only set the style of a row."""


def _fleet_record(row: SessionRow, now: float, fired: Counter[Severity] | None) -> dict[str, Any]:
    letter = MARK_OF[row.last_event].letter if row.last_event in MARK_OF else ""
    return {
        "zone": zone_label(row.zone),
        "session": titled_url(row),
        "repository": project(row),
        "agent": row.agent or UNKNOWN,
        "utilization over time": list(row.sparkline),
        "now": row.utilization,
        "worst": zone_label(row.worst_zone),
        "next": (next_event(row).text or UNKNOWN) if is_live(row, now) else "not live",
        "compactions": compactions_text(row),
        "cost": row.total_cost_dollars,
        "last event": f"{letter} {ago(row.last_at, now)}".strip(),
        "alerts": firing_text(fired),
        "model": row.model or UNKNOWN,
        "turns": row.turns,
        "Δ/turn": row.velocity,
        "tokens": row.used_tokens,
        "source": row.source,
        "estimated": row.is_estimated,
        "estimated cost": row.is_cost_estimated,
        "firing": worst_severity(fired) if fired else None,
    }


def compactions_text(row: SessionRow) -> str:
    """Return the number of compressions, marked where one hit in the middle of a task; empty without any."""
    if not row.compressions:
        return ""
    return f"{row.compressions:,}{' ◆' if row.compressions_in_task else ''}"


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
    content = count(stored.contents, "captured passage") if stored.contents else "no content"
    used = "" if size(on_disk) == size(stored.bytes) else f" ({size(stored.bytes)} in use)"
    age = ago(stored.oldest_at, now)
    oldest = "" if stored.oldest_at is None else f"; the last event of the oldest session is from {age}"
    return (
        f"Store: {size(on_disk)} on disk{used}, {count(stored.events, 'event')} of "
        f"{count(stored.sessions, 'session')}, {content}{oldest}."
    )
