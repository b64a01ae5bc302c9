"""What the exporter knows about itself: the only numbers that are not a fold over events.

Recorded where things happen (a hook, the writer, a notifier) and read by a scrape; one short lock guards both.
Nothing here can fail or grow: names are bounded like every other label.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from windowpane.core.protocols import Clock
from windowpane.metrics import catalog
from windowpane.metrics.families import Family, HistogramPoint, Point
from windowpane.metrics.series import Row, SeriesTable, Tally


class Drop(NamedTuple):
    """Where and why an event can be dropped."""

    sink: str
    reason: str


KNOWN_DROPS: Final = (
    Drop("queue", "full"),
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

    *last_event_at* and *queue_events* are asked when read; None means there is none.
    """

    def __init__(
        self,
        *,
        version: str,
        clock: Clock,
        last_event_at: Callable[[], float | None] | None = None,
        queue_events: Callable[[], int | None] | None = None,
        drops: Iterable[Drop] = KNOWN_DROPS,
    ) -> None:
        self._clock = clock
        self._last_event_at = last_event_at
        self._queue_events = queue_events
        self._identity = (version, platform.python_version())
        self._lock = threading.RLock()  # a signal handler may interrupt and count too
        self._table = SeriesTable()
        self._row: Row = []
        self._hooks = Tally(self._table, catalog.HOOK_SECONDS)
        self._writes = Tally(self._table, catalog.STORE_WRITE_SECONDS)
        self._drops = Tally(self._table, catalog.DROPPED_EVENTS)
        self._notifications = Tally(self._table, catalog.NOTIFICATIONS)
        self._writes.touch(self._row)
        for drop in drops:
            self._drops.touch(self._row, drop)

    def hook(self, name: str, seconds: float) -> None:
        """A hook kept the agent waiting for *seconds*."""
        with self._lock:
            self._hooks.observe(self._row, seconds, (name,))

    def store_write(self, seconds: float) -> None:
        """The store took *seconds* for a batch."""
        with self._lock:
            self._writes.observe(self._row, seconds)

    def dropped(self, sink: str, reason: str, *, events: int = 1) -> None:
        """*events* did not reach *sink*."""
        with self._lock:
            self._drops.add(self._row, events, (sink, reason))

    def notified(self, channel: str, outcome: str) -> None:
        """A message went out by *channel*, or failed to; *outcome* is `delivered` or `failed`."""
        with self._lock:
            self._notifications.add(self._row, 1, (channel, outcome))

    def dropped_events(self) -> int:
        """Events dropped so far, everywhere."""
        return sum(
            int(point.value)
            for family in self._recorded()
            if family.metric is catalog.DROPPED_EVENTS
            for point in family.points
        )

    def collect(self) -> list[Family]:
        """Every metric about the exporter that has a value."""
        families = self._recorded()
        queued = self._queue_events() if self._queue_events is not None else None
        if queued is not None:
            families.append(Family(catalog.QUEUE_EVENTS, [Point((), queued)], []))
        newest = self._last_event_at() if self._last_event_at is not None else None
        if newest is not None:
            age = max(0.0, self._clock() - newest)
            families.append(Family(catalog.LAST_EVENT_AGE, [Point((), age)], []))
        families.append(Family(catalog.BUILD_INFO, [Point(self._identity, 1)], []))
        return families

    def _recorded(self) -> list[Family]:
        with self._lock:
            row, columns = self._row.copy(), tuple(self._table.columns)
        found: dict[str, Family] = {}
        for metric, labels, start, width in columns:
            if start >= len(row) or (value := row[start]) is None:
                continue
            family = found.setdefault(metric.name, Family(metric, [], []))
            if metric.kind == "histogram":
                *counts, total = row[start : start + width]
                family.histograms.append(HistogramPoint(labels, tuple(counts), total))  # type: ignore[arg-type]
            else:
                family.points.append(Point(labels, value))
        return list(found.values())
