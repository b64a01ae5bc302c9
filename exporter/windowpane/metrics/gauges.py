"""Gauges of the live sessions: one row per gauge, one slot per session, aggregated by label set when read.

Writing a measurement is one strided assignment; reading ten thousand sessions is a few vector operations over a
copy, so a scrape never holds up the fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windowpane.core.events import PressureMeasured
from windowpane.core.vocabulary import COMPONENTS, ZONES
from windowpane.metrics import catalog
from windowpane.metrics.catalog import Aggregate, Metric
from windowpane.metrics.labels import LABELS

Floats = NDArray[np.float64]

FIRST_CAPACITY: Final = 64
RECLAIMED_SHARE: Final = 8
"""One in this many slots is freed at once when all are in use."""
UNKNOWN_ZONE: Final = len(ZONES)
_ZONE_INDEX: Final = {zone: index for index, zone in enumerate(ZONES)}


class GaugeColumn(NamedTuple):
    """One gauge of a session: a metric and the values of its labels after agent and model."""

    metric: Metric
    labels: tuple[str, ...]


def _columns() -> tuple[GaugeColumn, ...]:
    """Return every gauge of a session; those with the same aggregate are adjacent, so that each is one slice."""
    columns = [
        *(GaugeColumn(catalog.USED_TOKENS, (component,)) for component in COMPONENTS),
        GaugeColumn(catalog.LIMIT_TOKENS, ()),
        *(GaugeColumn(catalog.BUDGET_UTILIZATION, (component,)) for component in COMPONENTS),
        GaugeColumn(catalog.CACHE_HIT, ()),
        *(GaugeColumn(catalog.TURNS_UNTIL_RED, (bound,)) for bound in LABELS["bound"].values),
        GaugeColumn(catalog.TURNS_UNTIL_EXHAUSTED, ()),
        *(GaugeColumn(catalog.TURNS_UNTIL_COMPACTION, (bound,)) for bound in LABELS["bound"].values),
        GaugeColumn(catalog.COMPACTION_TOKENS, ()),
        GaugeColumn(catalog.COMPRESSION_RATIO, ()),
        *(GaugeColumn(catalog.FIDELITY, (method,)) for method in LABELS["method"].values),
        GaugeColumn(catalog.FAITHFULNESS, ()),
    ]
    columns += [
        GaugeColumn(metric, ())
        for metric in (
            catalog.UTILIZATION,
            catalog.USABLE_UTILIZATION,
            catalog.VELOCITY,
            catalog.BURN_RATE,
            catalog.TOOL_RESULT,
            catalog.DUPLICATE,
            catalog.STALE,
            catalog.EVICTION_RATE,
            catalog.SESSION_USED_TOKENS,
            catalog.ESTIMATE_ERROR,
        )
    ]
    return tuple(columns)


GAUGE_COLUMNS: Final = _columns()
_INDEX: Final = {(column.metric.name, column.labels): index for index, column in enumerate(GAUGE_COLUMNS)}
_ESTIMATE_ERROR: Final = _INDEX[catalog.ESTIMATE_ERROR.name, ()]
USED_COLUMN: Final = _INDEX[catalog.SESSION_USED_TOKENS.name, ()]
UTILIZATION_COLUMN: Final = _INDEX[catalog.UTILIZATION.name, ()]
RATIO_COLUMN: Final = _INDEX[catalog.COMPRESSION_RATIO.name, ()]
FAITHFULNESS_COLUMN: Final = _INDEX[catalog.FAITHFULNESS.name, ()]
FIDELITY_COLUMNS: Final = {method: _INDEX[catalog.FIDELITY.name, (method,)] for method in LABELS["method"].values}


_RETAINED: Final = slice(RATIO_COLUMN, UTILIZATION_COLUMN)
"""Columns that a measurement does not change: compression ratio and fidelity come in separate events."""


def _before(measured: PressureMeasured) -> list[float | None]:
    """Return the measured columns before the retained ones; numpy turns None into NaN, which means absent."""
    used, budget = measured.used_by_component.get, measured.budget_utilization.get
    return [
        *[used(component, 0) for component in COMPONENTS],
        measured.limit_tokens,
        *[budget(component) for component in COMPONENTS],
        measured.cache_hit_ratio,
        measured.turns_until_red_p10,
        measured.turns_until_red,
        measured.turns_until_red_p90,
        measured.turns_until_exhausted,
        measured.turns_until_compaction_p10,
        measured.turns_until_compaction,
        measured.turns_until_compaction_p90,
        measured.compaction_tokens,
    ]


def _after(measured: PressureMeasured) -> list[float | None]:
    """Return the measured columns after the retained ones."""
    return [
        measured.utilization,
        measured.usable_utilization,
        measured.velocity,
        measured.burn_rate,
        measured.tool_result_ratio,
        measured.duplicate_ratio,
        measured.stale_ratio,
        measured.eviction_rate,
        measured.used_tokens,
    ]


class LiveSessions(NamedTuple):
    """The live sessions at one moment, detached, ordered by label set."""

    values: Floats
    """Gauge by session; NaN is absent."""
    group: NDArray[np.int64]
    """Label set of each session, ascending."""
    zone: NDArray[np.int64]
    firing: dict[tuple[str, str], NDArray[np.bool_]]
    """(alert, severity) to a flag per session: whether it fires."""
    ids: tuple[str, ...]
    """Filled only on request."""


class SessionGauges:
    """Slots for the sessions that have not ended; beyond *capacity* the longest inactive ones are released."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self._maximum = capacity
        size = min(FIRST_CAPACITY, capacity)
        self._values = np.full((len(GAUGE_COLUMNS), size), math.nan)
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
        """Return the slot of a session; None before it has started and after it has ended."""
        return self._slots.get(session_id)

    def open(self, session_id: str, group: int) -> int:
        """Return the slot of a session, a free one if it has none."""
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
        """Assign the session to another label set."""
        self._group[slot] = group

    def release(self, slot: int) -> None:
        """Release a slot and clear the gauges of its session."""
        del self._slots[self._ids[slot]]
        self.clear(slot)
        self._group[slot] = -1
        self._last_at[slot] = math.nan
        self._ids[slot] = ""
        self._free.append(slot)

    def clear(self, slot: int) -> None:
        """Clear every gauge and alert of a session; it keeps its slot."""
        self._values[:, slot] = math.nan
        self._zone[slot] = UNKNOWN_ZONE
        for flags in self._firing.values():
            flags[slot] = False

    def touch(self, slot: int, at: float) -> None:
        """Record the time of the session's latest event."""
        self._last_at[slot] = at

    def measure(self, slot: int, measurements: Sequence[PressureMeasured]) -> None:
        """Store the newest of *measurements*; the estimate error changes only at the end of a turn."""
        if not measurements:
            return
        for measured in measurements:
            if measured.phase == "final" and measured.estimate_error is not None:
                self._values[_ESTIMATE_ERROR, slot] = measured.estimate_error
        measured = measurements[-1]
        self._values[: _RETAINED.start, slot] = _before(measured)
        self._values[_RETAINED.stop : _ESTIMATE_ERROR, slot] = _after(measured)
        self._zone[slot] = UNKNOWN_ZONE if measured.zone is None else _ZONE_INDEX[measured.zone]

    def set(self, slot: int, column: int, value: float) -> None:
        """Set one gauge that a separate event reports."""
        self._values[column, slot] = value

    def set_firing(self, slot: int, alert: tuple[str, str], *, firing: bool) -> None:
        """Record whether an (alert, severity) fires in the session."""
        flags = self._firing.get(alert)
        if flags is None:
            flags = self._firing[alert] = np.zeros(len(self._ids), dtype=np.bool_)
        flags[slot] = firing

    def live(self, *, since: float | None, with_ids: bool = False) -> LiveSessions:
        """Return the sessions with an event at or after *since*; None selects all that have not ended."""
        in_use = self._group >= 0
        slots = np.flatnonzero(in_use if since is None else in_use & (self._last_at >= since))
        group = self._group[slots]
        if group.size and np.any(group[1:] < group[:-1]):
            order = np.argsort(group, kind="stable")
            slots, group = slots[order], group[order]
        return LiveSessions(
            self._values.take(slots, axis=1),
            group,
            self._zone[slots],
            {alert: flags[slots] for alert, flags in self._firing.items() if flags.any()},
            tuple(self._ids[slot] for slot in slots.tolist()) if with_ids else (),
        )

    def _make_room(self) -> None:
        size = len(self._ids)
        if size < self._maximum:
            self._grow(min(size * 2, self._maximum) - size)
            return
        # Sessions whose process died never end: release the longest inactive ones, those without times first.
        age = np.where(np.isnan(self._last_at), -math.inf, self._last_at)
        count = max(1, size // RECLAIMED_SHARE)
        for slot in np.argpartition(age, count - 1)[:count].tolist():
            self.release(slot)

    def _grow(self, more: int) -> None:
        size = len(self._ids)
        self._values = np.concatenate([self._values, np.full((len(GAUGE_COLUMNS), more), math.nan)], axis=1)
        self._group = np.concatenate([self._group, np.full(more, -1, dtype=np.int64)])
        self._zone = np.concatenate([self._zone, np.full(more, UNKNOWN_ZONE, dtype=np.int64)])
        self._last_at = np.concatenate([self._last_at, np.full(more, math.nan)])
        for alert, flags in self._firing.items():
            self._firing[alert] = np.concatenate([flags, np.zeros(more, dtype=np.bool_)])
        self._ids += [""] * more
        self._free += range(size + more - 1, size - 1, -1)


class AggregatedGauges(NamedTuple):
    """The gauges of every label set with a live session."""

    groups: NDArray[np.int64]
    """Label sets, ascending."""
    values: Floats
    """Gauge by label set, NaN where no live session has one."""
    zones: NDArray[np.int64]
    """Label set by zone: live sessions."""
    firing: dict[tuple[str, str], NDArray[np.int64]]
    """(alert, severity) to the number of live sessions in which it fires, by label set."""


def aggregate(live: LiveSessions) -> AggregatedGauges:
    """Aggregate the live sessions by label set, each gauge by the aggregate that the catalog declares."""
    values, group = live.values, live.group
    if not group.size:
        return AggregatedGauges(
            group, np.empty((len(GAUGE_COLUMNS), 0)), np.zeros((0, UNKNOWN_ZONE + 1), np.int64), {}
        )
    starts = np.concatenate([[0], np.flatnonzero(group[1:] != group[:-1]) + 1])
    groups = group[starts]
    result = np.empty((len(GAUGE_COLUMNS), len(groups)))
    for how, columns in _AGGREGATE_SLICES.items():
        result[columns] = _reduce(how, values[columns], values[USED_COLUMN], starts)
    position = np.repeat(np.arange(len(groups)), np.diff(starts, append=group.size))
    zones = np.bincount(position * (UNKNOWN_ZONE + 1) + live.zone, minlength=len(groups) * (UNKNOWN_ZONE + 1))
    firing = {alert: np.add.reduceat(flags, starts, dtype=np.int64) for alert, flags in live.firing.items()}
    return AggregatedGauges(groups, result, zones.reshape(len(groups), -1), firing)


def _aggregate_slices() -> dict[Aggregate, slice]:
    slices: dict[Aggregate, slice] = {}
    for index, column in enumerate(GAUGE_COLUMNS):
        how = column.metric.aggregate or "max"
        adjacent = slices.get(how, slice(index, index))
        assert adjacent.stop == index, f"columns with aggregate {how} must be adjacent"
        slices[how] = slice(adjacent.start, index + 1)
    return slices


_AGGREGATE_SLICES: Final = _aggregate_slices()


def _reduce(how: Aggregate, values: Floats, used: Floats, starts: NDArray[np.int64]) -> Floats:
    """Return one value per label set for each row of *values*; NaN means no value."""
    if how == "max":
        return np.fmax.reduceat(values, starts, axis=1)
    if how == "min":
        return np.fmin.reduceat(values, starts, axis=1)
    if how == "max_abs":
        high, low = np.fmax.reduceat(values, starts, axis=1), np.fmin.reduceat(values, starts, axis=1)
        return np.where(np.abs(high) >= np.abs(low), high, low)
    present = ~np.isnan(values)
    if how == "weighted_mean":
        weights = np.where(present, np.fmax(used, 1.0), 0.0)
        total = np.add.reduceat(weights, starts, axis=1)
        weighted = np.add.reduceat(np.where(present, values, 0.0) * weights, starts, axis=1)
        return np.divide(weighted, total, out=np.full_like(total, math.nan), where=total > 0)
    total = np.add.reduceat(np.where(present, values, 0.0), starts, axis=1)
    return np.where(np.logical_or.reduceat(present, starts, axis=1), total, math.nan)
