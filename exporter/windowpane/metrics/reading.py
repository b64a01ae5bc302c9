"""From copies of rows and slots to families: the one account of the metrics that every exporter gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from windowpane.metrics import catalog, sessions
from windowpane.metrics.catalog import LABELS
from windowpane.metrics.families import Family, HistogramPoint, Point
from windowpane.metrics.persisted import LabelSet
from windowpane.metrics.series import Column
from windowpane.metrics.sessions import Aggregated, LiveSessions

SESSION_ID_CHARACTERS: Final = 128


def families(
    live: LiveSessions, rows: Sequence[LabelSet], columns: Sequence[Column], *, top_sessions: int = 0
) -> list[Family]:
    """Every metric that has a value, in the catalog's order."""
    gauges = sessions.aggregate(live)
    found = {metric.name: Family(metric, [], []) for metric in catalog.SESSION_METRICS}
    _add_gauges(found, gauges, rows)
    _add_zones(found[catalog.SESSIONS.name], gauges, rows)
    _add_firing(found[catalog.ALERTS_FIRING.name], gauges, rows, columns)
    if top_sessions > 0:
        _add_sessions(found, live, rows, top_sessions)
    for column in columns:
        _add_series(found[column.metric.name], column, rows)
    return [family for family in found.values() if family.points or family.histograms]


def _add_gauges(found: dict[str, Family], gauges: Aggregated, rows: Sequence[LabelSet]) -> None:
    groups = gauges.groups.tolist()
    for (metric, labels), values in zip(sessions.COLUMNS, gauges.values.tolist(), strict=True):
        if metric.opt_in:
            continue
        points = found[metric.name].points
        for group, value in zip(groups, values, strict=True):
            if value == value:  # noqa: PLR0124  # NaN, the absent value, is the only one unlike itself
                agent, model, _ = rows[group]
                points.append(Point((agent, model, *labels), value))


def _add_zones(family: Family, gauges: Aggregated, rows: Sequence[LabelSet]) -> None:
    zones = LABELS["zone"].values
    for group, counts in zip(gauges.groups.tolist(), gauges.zones.tolist(), strict=True):
        agent, model, _ = rows[group]
        family.points.extend(
            Point((agent, model, zone), count) for zone, count in zip(zones, counts, strict=True)
        )


def _add_firing(family: Family, gauges: Aggregated, rows: Sequence[LabelSet], columns: Sequence[Column]) -> None:
    """One series for each alert the label set knows, at 0 while it does not fire."""
    none: NDArray[np.int64] = np.zeros(len(gauges.groups), dtype=np.int64)
    for column in columns:
        if column.metric is not catalog.ALERT_TRANSITIONS or column.labels[2] != "firing":
            continue
        alert, severity, _ = column.labels
        counts = gauges.firing.get((alert, severity), none)
        for group, count in zip(gauges.groups.tolist(), counts.tolist(), strict=True):
            agent, model, row = rows[group]
            # A session may bring a firing alert along from another model.
            if count or (column.start < len(row) and row[column.start] is not None):
                family.points.append(Point((agent, model, alert, severity), count))


def _add_sessions(found: dict[str, Family], live: LiveSessions, rows: Sequence[LabelSet], top: int) -> None:
    """The fullest live sessions one by one; where the limit is unknown, the largest come after."""
    utilization = live.values[sessions.UTILIZATION_COLUMN]
    used = live.values[sessions.USED_COLUMN]
    order = np.lexsort((-np.nan_to_num(used), -np.nan_to_num(utilization, nan=-1.0)))
    for place in order[:top].tolist():
        agent, model, _ = rows[int(live.group[place])]
        labels = (agent, model, session_label(live.ids[place]))
        for metric, value in (
            (catalog.SESSION_UTILIZATION, float(utilization[place])),
            (catalog.SESSION_USED_TOKENS, float(used[place])),
        ):
            if not math.isnan(value):
                found[metric.name].points.append(Point(labels, value))


def session_label(session_id: str) -> str:
    """The id as a label: itself where it can be one, else what can be shown of it and a digest.

    An id comes from outside: one that is no Unicode text would fail every scrape.
    """
    shown = "".join(sign if sign.isprintable() else "?" for sign in session_id[:SESSION_ID_CHARACTERS])
    if shown == session_id:
        return shown
    digest = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{shown[: SESSION_ID_CHARACTERS - len(digest) - 1]}~{digest}"


def _add_series(family: Family, column: Column, rows: Sequence[LabelSet]) -> None:
    metric, labels, start, width = column
    for agent, model, row in rows:
        if start >= len(row) or (value := row[start]) is None:
            continue
        series = (agent, model, *labels)
        if metric.kind == "histogram":
            *counts, total = row[start : start + width]
            family.histograms.append(HistogramPoint(series, tuple(counts), total))  # type: ignore[arg-type]
        else:
            family.points.append(Point(series, value))
