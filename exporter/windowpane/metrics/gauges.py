"""Gauges of the live sessions: one list of values per session, aggregated by label set when read.

A reader copies the lists and aggregates the copies, so a scrape never holds up the fold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, groupby
from operator import attrgetter, is_not
from typing import Final, NamedTuple

from windowpane.core.events import PressureMeasured
from windowpane.core.vocabulary import COMPONENTS, ZONES
from windowpane.metrics import catalog
from windowpane.metrics.catalog import Aggregate, Metric
from windowpane.metrics.labels import LABELS

Values = list[float | None]
"""One value per gauge; None is absent."""

RECLAIMED_SHARE: Final = 8
"""One in this many sessions is released at once when there is room for no other."""
UNKNOWN_ZONE: Final = len(ZONES)
_ZONE_INDEX: Final = {zone: index for index, zone in enumerate(ZONES)}


class GaugeColumn(NamedTuple):
    """One gauge of a session: a metric and the values of its labels after agent and model."""

    metric: Metric
    labels: tuple[str, ...]


def _columns() -> tuple[GaugeColumn, ...]:
    """Return every gauge of a session."""
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
        GaugeColumn(catalog.SUMMARY_FAULTS, ()),
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
FAULTS_COLUMN: Final = _INDEX[catalog.SUMMARY_FAULTS.name, ()]
FIDELITY_COLUMNS: Final = {method: _INDEX[catalog.FIDELITY.name, (method,)] for method in LABELS["method"].values}


_RETAINED: Final = slice(RATIO_COLUMN, UTILIZATION_COLUMN)
"""Columns that a measurement does not change: compression ratio and fidelity come in separate events."""


def _before(measured: PressureMeasured) -> Values:
    """Return the measured columns before the retained ones."""
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


def _after(measured: PressureMeasured) -> Values:
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


class SessionGauges:
    """The gauges of one session that has not ended."""

    __slots__ = ("firing", "group", "last_at", "session_id", "values", "zone")

    def __init__(self, session_id: str, group: int) -> None:
        self.session_id = session_id
        self.group = group
        """Index of its label set."""
        self.last_at = -math.inf
        """Time of its latest event."""
        self.clear()

    def clear(self) -> None:
        """Clear every gauge and alert."""
        self.values: Values = [None] * len(GAUGE_COLUMNS)
        self.zone = UNKNOWN_ZONE
        self.firing: set[tuple[str, str]] = set()
        """The alerts that fire, each with its severity."""

    def measure(self, measurements: Sequence[PressureMeasured]) -> None:
        """Store the newest of *measurements*; the estimate error changes only at the end of a turn."""
        if not measurements:
            return
        for measured in measurements:
            if measured.phase == "final" and measured.estimate_error is not None:
                self.set(_ESTIMATE_ERROR, measured.estimate_error)
        measured = measurements[-1]
        before, after = list(map(_number, _before(measured))), list(map(_number, _after(measured)))
        self.values[: _RETAINED.start] = before
        self.values[_RETAINED.stop : _ESTIMATE_ERROR] = after
        self.zone = UNKNOWN_ZONE if measured.zone is None else _ZONE_INDEX[measured.zone]

    def set(self, column: int, value: float) -> None:
        """Set one gauge that a separate event reports."""
        self.values[column] = _number(value)


def _number(value: float | None) -> float | None:
    """Return a value as a float; None for one that is not a number. Raises `TypeError`, `ValueError`."""
    number = math.nan if value is None else float(value)
    return None if math.isnan(number) else number


class LiveSession(NamedTuple):
    """A copy of the gauges of one live session."""

    session_id: str
    group: int
    values: Values
    zone: int
    firing: frozenset[tuple[str, str]]


class OpenSessions:
    """The gauges of the sessions that have not ended, of *capacity* at most."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self._capacity = capacity
        self._sessions: dict[str, SessionGauges] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: str) -> SessionGauges | None:
        """Return the gauges of a session; None before it has started and after it has ended."""
        return self._sessions.get(session_id)

    def open(self, session_id: str, group: int) -> SessionGauges:
        """Return the gauges of a session, empty ones if it has none."""
        session = self._sessions.get(session_id)
        if session is None:
            if len(self._sessions) >= self._capacity:
                self._make_room()
            session = self._sessions[session_id] = SessionGauges(session_id, group)
        return session

    def release(self, session: SessionGauges) -> None:
        """Remove a session."""
        self._sessions.pop(session.session_id, None)

    def live(self, *, since: float | None) -> list[LiveSession]:
        """Return the sessions with an event at or after *since* by label set; None selects all."""
        chosen = [one for one in self._sessions.values() if since is None or one.last_at >= since]
        chosen.sort(key=attrgetter("group"))
        return [
            LiveSession(one.session_id, one.group, one.values.copy(), one.zone, frozenset(one.firing))
            for one in chosen
        ]

    def _make_room(self) -> None:
        # Sessions whose process died never end: release the longest inactive ones, those without times first.
        count = max(1, self._capacity // RECLAIMED_SHARE)
        for session in nsmallest(count, self._sessions.values(), key=attrgetter("last_at")):
            self.release(session)


class GroupGauges(NamedTuple):
    """The gauges of one label set with a live session."""

    group: int
    values: Values
    zones: Counter[int]
    """Zone to its live sessions."""
    firing: Counter[tuple[str, str]]
    """Alert and severity to the live sessions in which it fires."""


def aggregate(live: Iterable[LiveSession]) -> list[GroupGauges]:
    """Aggregate live sessions, ordered by label set, each gauge by the aggregate that the catalog declares."""
    return [_aggregated(group, list(sessions)) for group, sessions in groupby(live, attrgetter("group"))]


def _aggregated(group: int, sessions: Sequence[LiveSession]) -> GroupGauges:
    columns = list(zip(*(session.values for session in sessions), strict=True))
    used = columns[USED_COLUMN]
    values: Values = []
    for how, column in zip(_AGGREGATES, columns, strict=True):
        if how is _weighted_mean:
            values.append(_weighted_mean(column, used))
        else:
            present = list(filter(_is_present, column))
            values.append(how(present) if present else None)
    firing = Counter(chain.from_iterable(session.firing for session in sessions))
    return GroupGauges(group, values, Counter(session.zone for session in sessions), firing)


_is_present: Final = partial(is_not, None)


def _furthest(values: Sequence[float]) -> float:
    """Return the value furthest from 0, of two the positive one."""
    high, low = max(values), min(values)
    return high if abs(high) >= abs(low) else low


def _weighted_mean(values: Sequence[float | None], used: Sequence[float | None]) -> float | None:
    """Return the mean of the values weighted by the used tokens of their sessions."""
    pairs = [
        (value, max(tokens or 0.0, 1.0)) for value, tokens in zip(values, used, strict=True) if value is not None
    ]
    total = math.fsum(weight for _, weight in pairs)
    return math.fsum(value * weight for value, weight in pairs) / total if total else None


_BY_NAME: Final[dict[Aggregate, Callable[..., float | None]]] = {
    "max": max,
    "min": min,
    "max_abs": _furthest,
    "sum": math.fsum,
    "weighted_mean": _weighted_mean,
}
_AGGREGATES: Final = tuple(_BY_NAME[column.metric.aggregate or "max"] for column in GAUGE_COLUMNS)
