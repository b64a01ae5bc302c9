"""Families: metrics with their values at one moment, in the form that every exporter reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from heapq import nsmallest
from typing import Final, NamedTuple, Protocol

from windowpane.core.characters import plain
from windowpane.metrics import catalog, gauges
from windowpane.metrics.catalog import Metric
from windowpane.metrics.counters import Column, LabeledRow, Row
from windowpane.metrics.gauges import GroupGauges, LiveSession
from windowpane.metrics.labels import LABELS

SESSION_ID_CHARACTERS: Final = 128


class Point(NamedTuple):
    """One series of a gauge or counter."""

    labels: tuple[str, ...]
    """Values of the metric's labels, in its order."""
    value: float


class HistogramPoint(NamedTuple):
    """One series of a histogram."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    """Observations in each bucket, not cumulative; the last bucket is above every bound."""
    total: float
    """Sum of the observations."""


class Family(NamedTuple):
    """A metric and its series: *histograms* for a histogram, *points* for the other kinds."""

    metric: Metric
    points: list[Point]
    histograms: list[HistogramPoint]


class FamilySource(Protocol):
    """A provider of families."""

    def collect(self) -> list[Family]:
        """Return every metric with a value."""
        ...


def session_families(
    live: Sequence[LiveSession], rows: Sequence[LabeledRow], columns: Sequence[Column], *, top_sessions: int = 0
) -> list[Family]:
    """Return every session metric with a value, in the catalog's order."""
    aggregated = gauges.aggregate(live)
    families = {metric.name: Family(metric, [], []) for metric in catalog.SESSION_METRICS}
    _add_gauges(families, aggregated, rows)
    _add_zones(families[catalog.SESSIONS.name], aggregated, rows)
    _add_firing(families[catalog.ALERTS_FIRING.name], aggregated, rows, columns)
    if top_sessions > 0:
        _add_sessions(families, live, rows, top_sessions)
    labeled = [((agent, model), row) for agent, model, row in rows]
    for column in columns:
        add_series(families[column.metric.name], column, labeled)
    return [family for family in families.values() if family.points or family.histograms]


def add_series(family: Family, column: Column, rows: Iterable[tuple[tuple[str, ...], Row]]) -> None:
    """Append the series of *column* to *family*, one for each (labels, row) that has it."""
    metric, labels, start, width = column
    for identity, row in rows:
        if start >= len(row) or (value := row[start]) is None:
            continue
        if metric.kind == "histogram":
            *counts, total = row[start : start + width]
            family.histograms.append(HistogramPoint((*identity, *labels), tuple(counts), total))  # type: ignore[arg-type]
        else:
            family.points.append(Point((*identity, *labels), value))


def _add_gauges(
    families: dict[str, Family], aggregated: Sequence[GroupGauges], rows: Sequence[LabeledRow]
) -> None:
    for column, (metric, labels) in enumerate(gauges.GAUGE_COLUMNS):
        if metric.opt_in:
            continue
        points = families[metric.name].points
        for one in aggregated:
            if (value := one.values[column]) is not None:
                agent, model, _ = rows[one.group]
                points.append(Point((agent, model, *labels), value))


def _add_zones(family: Family, aggregated: Sequence[GroupGauges], rows: Sequence[LabeledRow]) -> None:
    for one in aggregated:
        agent, model, _ = rows[one.group]
        family.points.extend(
            Point((agent, model, zone), one.zones[index]) for index, zone in enumerate(LABELS["zone"].values)
        )


def _add_firing(
    family: Family, aggregated: Sequence[GroupGauges], rows: Sequence[LabeledRow], columns: Sequence[Column]
) -> None:
    """Append one series for each alert that the label set knows, at 0 while it does not fire."""
    for column in columns:
        if column.metric is not catalog.ALERT_TRANSITIONS or column.labels[2] != "firing":
            continue
        alert, severity, _ = column.labels
        for one in aggregated:
            agent, model, row = rows[one.group]
            count = one.firing[alert, severity]
            # A session that changes its model takes a firing alert along.
            if count or (column.start < len(row) and row[column.start] is not None):
                family.points.append(Point((agent, model, alert, severity), count))


def _add_sessions(
    families: dict[str, Family], live: Sequence[LiveSession], rows: Sequence[LabeledRow], top: int
) -> None:
    """Append the fullest live sessions one by one; sessions of unknown limit follow, largest first."""
    for session in nsmallest(top, live, key=_fullness):
        agent, model, _ = rows[session.group]
        labels = (agent, model, session_label(session.session_id))
        for metric, column in (
            (catalog.SESSION_UTILIZATION, gauges.UTILIZATION_COLUMN),
            (catalog.SESSION_USED_TOKENS, gauges.USED_COLUMN),
        ):
            if (value := session.values[column]) is not None:
                families[metric.name].points.append(Point(labels, value))


def _fullness(session: LiveSession) -> tuple[float, float]:
    utilization, used = session.values[gauges.UTILIZATION_COLUMN], session.values[gauges.USED_COLUMN]
    return 1.0 if utilization is None else -utilization, -(used or 0.0)


def session_label(session_id: str) -> str:
    """Return the id as a label: unchanged if it is short and printable, else its printable part and a digest.

    Ids come from outside, and one that is not valid Unicode would fail every scrape.
    """
    printable = plain(session_id[:SESSION_ID_CHARACTERS])
    if printable == session_id:
        return printable
    digest = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{printable[: SESSION_ID_CHARACTERS - len(digest) - 1]}~{digest}"
