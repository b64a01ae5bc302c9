"""Metrics about the exporter: the only values that are not folded from events.

Recorded where things happen (a hook, the writer, a notifier) and read by a scrape; one short lock guards both.
Nothing here can fail or grow: names are bounded like every other label.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from windowpane.core.protocols import Clock
from windowpane.metrics import catalog
from windowpane.metrics.counters import Instrument, Row, SeriesTable
from windowpane.metrics.families import Family, Point, add_series

CountDrops = Callable[[str, str, int], None]
"""Counts dropped events by sink (or `queue`) and reason, as `InternalMetrics.record_drop` does."""


class Drop(NamedTuple):
    """A sink and a reason for which it can miss events."""

    sink: str
    reason: str


KNOWN_DROPS: Final = (
    Drop("observer", "full"),
    Drop("queue", "full"),
    Drop("queue", "invalid"),
    Drop("store", "error"),
    Drop("store", "unavailable"),
    Drop("metrics", "error"),
    Drop("alerts", "error"),
    Drop("otlp", "error"),
    Drop("otlp", "full"),
)
"""Drops whose counters exist, at zero, from the start."""


class InternalMetrics:
    """Records the `windowpane_*` metrics. Thread-safe; a `FamilySource`.

    *last_event_at* and the values below it are called at each collection; None means: absent.
    """

    def __init__(
        self,
        *,
        version: str,
        clock: Clock,
        last_event_at: Callable[[], float | None] | None = None,
        queue_events: Callable[[], int | None] | None = None,
        store_available: Callable[[], bool | None] | None = None,
        clickhouse_lag_events: Callable[[], int | None] | None = None,
    ) -> None:
        self._clock = clock
        self._last_event_at = last_event_at
        self._queue_events = queue_events
        self._store_available = store_available
        self._clickhouse_lag_events = clickhouse_lag_events
        self._identity = (version, platform.python_version())
        self.reset()

    def reset(self) -> None:
        """Start over at zero, as a forked child does; a lock held by the parent's threads is replaced."""
        self._lock = threading.RLock()  # reentrant: a signal handler may interrupt and count too
        self._table = SeriesTable()
        self._row: Row = []
        self._hooks = Instrument(self._table, catalog.HOOK_SECONDS)
        self._writes = Instrument(self._table, catalog.STORE_WRITE_SECONDS)
        self._drops = Instrument(self._table, catalog.DROPPED_EVENTS)
        self._notifications = Instrument(self._table, catalog.NOTIFICATIONS)
        self._writes.touch(self._row)
        for drop in KNOWN_DROPS:
            self._drops.touch(self._row, drop)

    def record_hook(self, hook: str, seconds: float) -> None:
        """Record how long *hook* kept the agent waiting."""
        with self._lock:
            self._hooks.observe(self._row, seconds, (hook,))

    def record_store_write(self, seconds: float) -> None:
        """Record how long the store took for one batch."""
        with self._lock:
            self._writes.observe(self._row, seconds)

    def record_drop(self, sink: str, reason: str, events: int = 1) -> None:
        """Count *events* that did not reach *sink*."""
        with self._lock:
            self._drops.add(self._row, events, (sink, reason))

    def record_notification(self, channel: str, outcome: str) -> None:
        """Count a notification sent by *channel*; *outcome* is `delivered`, `retried` or `failed`."""
        with self._lock:
            self._notifications.add(self._row, 1, (channel, outcome))

    def dropped_events(self) -> int:
        """Return the number of events dropped so far, over all sinks."""
        return sum(
            int(point.value)
            for family in self._recorded()
            if family.metric is catalog.DROPPED_EVENTS
            for point in family.points
        )

    def collect(self) -> list[Family]:
        """Return every metric about the exporter with a value."""
        families = self._recorded()
        queued = self._queue_events() if self._queue_events is not None else None
        if queued is not None:
            families.append(Family(catalog.QUEUE_EVENTS, [Point((), queued)], []))
        available = self._store_available() if self._store_available is not None else None
        if available is not None:
            families.append(Family(catalog.STORE_AVAILABLE, [Point((), int(available))], []))
        lag = self._clickhouse_lag_events() if self._clickhouse_lag_events is not None else None
        if lag is not None:
            families.append(Family(catalog.CLICKHOUSE_LAG, [Point((), lag)], []))
        newest = self._last_event_at() if self._last_event_at is not None else None
        if newest is not None:
            age = max(0.0, self._clock() - newest)
            families.append(Family(catalog.LAST_EVENT_AGE, [Point((), age)], []))
        families.append(Family(catalog.BUILD_INFO, [Point(self._identity, 1)], []))
        return families

    def _recorded(self) -> list[Family]:
        with self._lock:
            row, columns = self._row.copy(), tuple(self._table.columns)
        families: dict[str, Family] = {}
        for column in columns:
            family = families.setdefault(column.metric.name, Family(column.metric, [], []))
            add_series(family, column, [((), row)])
        return [family for family in families.values() if family.points or family.histograms]
