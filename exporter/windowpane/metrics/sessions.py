"""Gauges of the live sessions: one column a gauge, one slot a session, aggregated by label set when read.

Writing a measurement is one strided assignment; reading ten thousand sessions is a few vector operations over a
copy, so that a scrape never holds up the fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windowpane.events import PressureMeasured
from windowpane.metrics import catalog
from windowpane.metrics.catalog import LABELS
from windowpane.metrics.metric import Metric
from windowpane.vocabulary import COMPONENTS, ZONES

Floats = NDArray[np.float64]

FIRST_CAPACITY: Final = 64
RECLAIMED_SHARE: Final = 8
"""One in this many slots is freed at once when all are taken."""
UNKNOWN_ZONE: Final = len(ZONES)
_ZONE_INDEX: Final = {zone: index for index, zone in enumerate(ZONES)}


class GaugeColumn(NamedTuple):
    """One gauge of a session: a metric and the values of its own labels."""

    metric: Metric
    labels: tuple[str, ...]


def _columns() -> tuple[GaugeColumn, ...]:
    columns = [GaugeColumn(catalog.USED_TOKENS, (component,)) for component in COMPONENTS]
    columns += [GaugeColumn(catalog.BUDGET_UTILIZATION, (component,)) for component in COMPONENTS]
    columns += [GaugeColumn(catalog.TURNS_UNTIL_RED, (bound,)) for bound in LABELS["bound"].values]
    columns += [
        GaugeColumn(metric, ())
        for metric in (
            catalog.LIMIT_TOKENS,
            catalog.UTILIZATION,
            catalog.USABLE_UTILIZATION,
            catalog.VELOCITY,
            catalog.BURN_RATE,
            catalog.TURNS_UNTIL_EXHAUSTED,
            catalog.TOOL_RESULT,
            catalog.DUPLICATE,
            catalog.STALE,
            catalog.EVICTION_RATE,
            catalog.CACHE_HIT,
            catalog.SESSION_USED_TOKENS,
            catalog.ESTIMATE_ERROR,
            catalog.COMPRESSION_RATIO,
        )
    ]
    columns += [GaugeColumn(catalog.FIDELITY, (method,)) for method in LABELS["method"].values]
    return tuple(columns)


COLUMNS: Final = _columns()
_INDEX: Final = {(column.metric.name, column.labels): index for index, column in enumerate(COLUMNS)}
_ERROR: Final = _INDEX[catalog.ESTIMATE_ERROR.name, ()]
_MEASURED: Final = _ERROR
"""Columns before this one are written by every measurement; the later ones keep their last value."""
USED_COLUMN: Final = _INDEX[catalog.SESSION_USED_TOKENS.name, ()]
UTILIZATION_COLUMN: Final = _INDEX[catalog.UTILIZATION.name, ()]
RATIO_COLUMN: Final = _INDEX[catalog.COMPRESSION_RATIO.name, ()]
FIDELITY_COLUMNS: Final = {method: _INDEX[catalog.FIDELITY.name, (method,)] for method in LABELS["method"].values}


def _row(measured: PressureMeasured) -> list[float | None]:
    """The measured columns in order; numpy turns None into NaN, which is absent."""
    used, budget = measured.used_by_component.get, measured.budget_utilization.get
    return [
        *[used(component, 0) for component in COMPONENTS],
        *[budget(component) for component in COMPONENTS],
        measured.turns_until_red_p10,
        measured.turns_until_red,
        measured.turns_until_red_p90,
        measured.limit_tokens,
        measured.utilization,
        measured.usable_utilization,
        measured.velocity,
        measured.burn_rate,
        measured.turns_until_exhausted,
        measured.tool_result_ratio,
        measured.duplicate_ratio,
        measured.stale_ratio,
        measured.eviction_rate,
        measured.cache_hit_ratio,
        measured.used_tokens,
    ]


class SessionsCopy(NamedTuple):
    """The slots at one moment."""

    values: Floats
    """Gauge by slot; NaN is absent."""
    group: NDArray[np.int64]
    """Label set of each slot; -1 is free."""
    zone: NDArray[np.int64]
    last_at: Floats
    """Time of the last event; NaN where the recording has no times."""
    firing: dict[tuple[str, str], NDArray[np.bool_]]
    """(alert, severity) to whether it fires."""
    ids: tuple[str, ...]


class SessionGauges:
    """Slots for the sessions that have not ended; at most *capacity*, then the longest silent make room."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self._maximum = capacity
        size = min(FIRST_CAPACITY, capacity)
        self._values = np.full((len(COLUMNS), size), math.nan)
        self._group = np.full(size, -1, dtype=np.int64)
        self._zone = np.full(size, UNKNOWN_ZONE, dtype=np.int64)
        self._last_at = np.full(size, math.nan)
        self._firing: dict[tuple[str, str], NDArray[np.bool_]] = {}
        self._ids: list[str] = [""] * size
        self._free = list(range(size - 1, -1, -1))
        self._slots: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, session_id: str) -> int | None:
        """Where the session is, or None when it has not begun or has ended."""
        return self._slots.get(session_id)

    def open(self, session_id: str, group: int) -> int:
        """A slot for the session: the one it has, or an empty one."""
        slot = self._slots.get(session_id)
        if slot is None:
            if not self._free:
                self._make_room()
            slot = self._free.pop()
            self._slots[session_id] = slot
            self._ids[slot] = session_id
        self._group[slot] = group
        return slot

    def move(self, slot: int, group: int) -> None:
        """The session now belongs to another label set."""
        self._group[slot] = group

    def close_slot(self, slot: int) -> None:
        """Free a slot; its session's gauges are gone."""
        del self._slots[self._ids[slot]]
        self._values[:, slot] = math.nan
        self._group[slot] = -1
        self._zone[slot] = UNKNOWN_ZONE
        self._last_at[slot] = math.nan
        self._ids[slot] = ""
        for flags in self._firing.values():
            flags[slot] = False
        self._free.append(slot)

    def touch(self, slot: int, at: float) -> None:
        """An event of the session happened *at*."""
        self._last_at[slot] = at

    def measure(self, slot: int, measured: PressureMeasured) -> None:
        """Take the newest measurement; the estimate's error is known only at the end of a turn and stays."""
        self._values[:_MEASURED, slot] = _row(measured)
        if measured.phase == "final" and measured.estimate_error is not None:
            self._values[_ERROR, slot] = measured.estimate_error
        self._zone[slot] = UNKNOWN_ZONE if measured.zone is None else _ZONE_INDEX[measured.zone]

    def set(self, slot: int, column: int, value: float) -> None:
        """Set one gauge that comes in an event of its own."""
        self._values[column, slot] = value

    def fire(self, slot: int, alert: tuple[str, str], *, firing: bool) -> None:
        """Note whether an (alert, severity) fires in the session."""
        flags = self._firing.get(alert)
        if flags is None:
            flags = self._firing[alert] = np.zeros(len(self._ids), dtype=np.bool_)
        flags[slot] = firing

    def copy(self) -> SessionsCopy:
        """Everything a scrape needs, detached."""
        return SessionsCopy(
            self._values.copy(),
            self._group.copy(),
            self._zone.copy(),
            self._last_at.copy(),
            {alert: flags.copy() for alert, flags in self._firing.items()},
            tuple(self._ids),
        )

    def _make_room(self) -> None:
        size = len(self._ids)
        if size < self._maximum:
            self._grow(min(size * 2, self._maximum) - size)
            return
        # Sessions whose process died never end: the longest silent go, those without times first.
        age = np.where(np.isnan(self._last_at), -math.inf, self._last_at)
        count = max(1, size // RECLAIMED_SHARE)
        for slot in np.argpartition(age, count - 1)[:count].tolist():
            self.close_slot(slot)

    def _grow(self, more: int) -> None:
        size = len(self._ids)
        self._values = np.concatenate([self._values, np.full((len(COLUMNS), more), math.nan)], axis=1)
        self._group = np.concatenate([self._group, np.full(more, -1, dtype=np.int64)])
        self._zone = np.concatenate([self._zone, np.full(more, UNKNOWN_ZONE, dtype=np.int64)])
        self._last_at = np.concatenate([self._last_at, np.full(more, math.nan)])
        for alert, flags in self._firing.items():
            self._firing[alert] = np.concatenate([flags, np.zeros(more, dtype=np.bool_)])
        self._ids += [""] * more
        self._free += range(size + more - 1, size - 1, -1)


def live_slots(copy: SessionsCopy, *, since: float | None) -> NDArray[np.int64]:
    """Slots of live sessions, by label set; *since* None takes every session that has not ended."""
    taken = copy.group >= 0
    live = taken if since is None else taken & (copy.last_at >= since)
    slots = np.flatnonzero(live)
    return slots[np.argsort(copy.group[slots], kind="stable")]


class Aggregated(NamedTuple):
    """The gauges of every label set that has a live session."""

    groups: NDArray[np.int64]
    """Label sets, ascending."""
    values: Floats
    """Gauge by label set, NaN where no live session has one."""
    zones: NDArray[np.int64]
    """Label set by zone: live sessions."""
    firing: dict[tuple[str, str], NDArray[np.int64]]
    """(alert, severity) to live sessions in which it fires, by label set."""


def aggregate(copy: SessionsCopy, slots: NDArray[np.int64]) -> Aggregated:
    """Fold the sessions in *slots*, which are ordered by label set, as the catalogue says."""
    groups, starts, inverse = np.unique(copy.group[slots], return_index=True, return_inverse=True)
    values = copy.values[:, slots]
    result = np.full((len(COLUMNS), len(groups)), math.nan)
    zones = np.zeros((len(groups), UNKNOWN_ZONE + 1), dtype=np.int64)
    if len(groups):
        weights = np.fmax(values[USED_COLUMN], 1.0)
        for how, columns in _BY_AGGREGATE.items():
            result[columns] = _reduce(how, values[columns], weights, starts)
        np.add.at(zones, (inverse, copy.zone[slots]), 1)
    firing = {
        alert: np.add.reduceat(flags[slots].astype(np.int64), starts) if len(groups) else starts
        for alert, flags in copy.firing.items()
    }
    return Aggregated(groups, result, zones, firing)


def _by_aggregate() -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for index, column in enumerate(COLUMNS):
        grouped.setdefault(column.metric.aggregate or "max", []).append(index)
    return grouped


_BY_AGGREGATE: Final = _by_aggregate()


def _reduce(how: str, values: Floats, weights: Floats, starts: Sequence[int] | NDArray[np.int64]) -> Floats:
    """One value a label set for each row of *values*; NaN counts as no value."""
    if how == "max":
        return np.fmax.reduceat(values, starts, axis=1)
    if how == "min":
        return np.fmin.reduceat(values, starts, axis=1)
    if how == "max_abs":
        high, low = np.fmax.reduceat(values, starts, axis=1), np.fmin.reduceat(values, starts, axis=1)
        return np.where(np.abs(high) >= np.abs(low), high, low)
    known = ~np.isnan(values)
    present = np.add.reduceat(known, starts, axis=1) > 0
    if how == "sum":
        total = np.add.reduceat(np.where(known, values, 0.0), starts, axis=1)
        return np.where(present, total, math.nan)
    weighted = np.add.reduceat(np.where(known, values * weights, 0.0), starts, axis=1)
    weight = np.add.reduceat(np.where(known, weights, 0.0), starts, axis=1)
    return np.where(present, weighted / np.where(present, weight, 1.0), math.nan)
