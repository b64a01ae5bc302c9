"""Counters and histograms of all label sets, as rows of plain numbers.

A *column* is one series of one metric without agent and model (a histogram takes one column for each bucket, one
for what is above the last bound, one for the sum). A *row* belongs to one (agent, model). Incrementing is a
dictionary look-up and a list item; copying everything for a scrape is one list copy a row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from windowpane.metrics.catalog import LABELS
from windowpane.metrics.labels import bound
from windowpane.metrics.metric import Metric

Row = list[float | None]
"""None where the label set has no such series."""

_CACHED_LABELS: Final = 1_000
"""Raw label values remembered at most; more are resolved each time."""


class Column(NamedTuple):
    """Where one series begins in every row."""

    metric: Metric
    labels: tuple[str, ...]
    """Of the metric's own labels."""
    start: int
    width: int


class SeriesTable:
    """Gives out columns and keeps every label within its declaration."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.width = 0
        self._by_key: dict[tuple[str, tuple[str, ...]], Column] = {}
        self._bounds: dict[str, Callable[[str], str]] = {name: bound(label) for name, label in LABELS.items()}
        self._template: Row = []

    def column(self, metric: Metric, labels: Iterable[str]) -> Column:
        """The column of a series, made at its first use; *labels* are bounded first."""
        names = metric.own_labels
        values = tuple(self._bounds[name](value) for name, value in zip(names, labels, strict=True))
        found = self._by_key.get((metric.name, values))
        if found is None:
            width = len(metric.buckets) + 2 if metric.kind == "histogram" else 1
            found = Column(metric, values, self.width, width)
            self.width += width
            self.columns.append(found)
            self._by_key[metric.name, values] = found
        return found

    def start_at_zero(self, metric: Metric, labels: Iterable[str]) -> None:
        """Every new row has this series from its beginning, so that the first increase is seen as one."""
        self.touch(self._template, self.column(metric, labels))

    def row(self) -> Row:
        """A row for a label set seen for the first time."""
        return self._template.copy()

    def touch(self, row: Row, column: Column) -> None:
        """Give *row* the series, at zero."""
        if len(row) < self.width:
            row.extend([None] * (self.width - len(row)))
        if row[column.start] is None:
            row[column.start : column.start + column.width] = [0] * column.width


class Tally:
    """One metric's columns by raw label values: what the fold increments."""

    def __init__(self, table: SeriesTable, metric: Metric) -> None:
        self._table = table
        self._metric = metric
        self._bounds = metric.buckets
        self._columns: dict[tuple[str, ...], Column] = {}

    def _column(self, labels: tuple[str, ...]) -> Column:
        column = self._columns.get(labels)
        if column is None:
            column = self._table.column(self._metric, labels)
            if len(self._columns) < _CACHED_LABELS:
                self._columns[labels] = column
        return column

    def touch(self, row: Row, labels: tuple[str, ...] = ()) -> None:
        """Make sure that *row* has the series."""
        self._table.touch(row, self._column(labels))

    def add(self, row: Row, amount: float, labels: tuple[str, ...] = ()) -> None:
        """Increase a counter; a decrease is not possible and is left out."""
        if amount < 0:
            return
        column = self._columns.get(labels) or self._column(labels)
        start = column.start
        if start >= len(row) or row[start] is None:
            self._table.touch(row, column)
        row[start] += amount  # type: ignore[operator]  # touched above

    def observe(self, row: Row, value: float, labels: tuple[str, ...] = ()) -> None:
        """Count a value in its bucket and add it to the sum."""
        column = self._columns.get(labels) or self._column(labels)
        start = column.start
        if start >= len(row) or row[start] is None:
            self._table.touch(row, column)
        row[start + bisect_left(self._bounds, value)] += 1  # type: ignore[operator]
        row[start + column.width - 1] += value  # type: ignore[operator]
