"""Counters and histograms of all label sets as rows of plain numbers, and their persisted form.

A *column* is one series of one metric without agent and model. A histogram takes one value per bucket, one for
values above the last bound and one for the sum. A *row* belongs to one (agent, model). An increment is a
dictionary lookup and a list item; a copy for a scrape is one list copy per row.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from windowpane.exceptions import StoreError
from windowpane.metrics.catalog import BY_NAME, Metric
from windowpane.metrics.labels import LABELS, value_limiter

Row = list[float | None]
"""One value per column; None where the label set does not have the series."""

FORMAT: Final = 1
"""Version of the persisted form."""
_CACHED_LABELS: Final = 1_000
"""Raw label values cached per instrument; further ones are resolved at each use."""


class LabeledRow(NamedTuple):
    """A row and the labels it belongs to."""

    agent: str
    model: str
    row: Row


class Column(NamedTuple):
    """One series and its position in every row."""

    metric: Metric
    labels: tuple[str, ...]
    """Values of the metric's labels after agent and model."""
    start: int
    width: int


class SeriesTable:
    """The columns of all series; label values are bounded by their declaration."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.width = 0
        self._by_key: dict[tuple[str, tuple[str, ...]], Column] = {}
        self._limiters: dict[str, Callable[[str], str]] = {
            name: value_limiter(label) for name, label in LABELS.items()
        }
        self._template: Row = []

    def column(self, metric: Metric, labels: Iterable[str]) -> Column:
        """Return the column of a series, created at its first use; *labels* are bounded first."""
        limited = zip(metric.own_labels, labels, strict=True)
        values = tuple(self._limiters[name](value) for name, value in limited)
        column = self._by_key.get((metric.name, values))
        if column is None:
            width = len(metric.buckets) + 2 if metric.kind == "histogram" else 1
            column = Column(metric, values, self.width, width)
            self.width += width
            self.columns.append(column)
            self._by_key[metric.name, values] = column
        return column

    def start_at_zero(self, metric: Metric, labels: Iterable[str]) -> None:
        """Give every new row this series at zero, so that `increase()` sees the first event."""
        self.touch(self._template, self.column(metric, labels))

    def new_row(self) -> Row:
        """Return a row for a label set seen for the first time."""
        return self._template.copy()

    def touch(self, row: Row, column: Column) -> None:
        """Add the series to *row* at zero, unless it is there."""
        if len(row) < self.width:
            row.extend([None] * (self.width - len(row)))
        if row[column.start] is None:
            row[column.start : column.start + column.width] = [0] * column.width


class Instrument:
    """Records one metric into rows; its columns are cached by raw label values."""

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
        """Add the series to *row* at zero, unless it is there."""
        self._table.touch(row, self._column(labels))

    def add(self, row: Row, amount: float, labels: tuple[str, ...] = ()) -> None:
        """Increase a counter; a negative *amount* is ignored."""
        if amount < 0:
            return
        column = self._columns.get(labels) or self._column(labels)
        start = column.start
        if start >= len(row) or row[start] is None:
            self._table.touch(row, column)
        row[start] += amount  # type: ignore[operator]  # touched above

    def observe(self, row: Row, value: float, labels: tuple[str, ...] = ()) -> None:
        """Count a value in its bucket of a histogram and add it to the sum."""
        column = self._columns.get(labels) or self._column(labels)
        start = column.start
        if start >= len(row) or row[start] is None:
            self._table.touch(row, column)
        row[start + bisect_left(self._bounds, value)] += 1  # type: ignore[operator]
        row[start + column.width - 1] += value  # type: ignore[operator]


def dump(table: SeriesTable, rows: Iterable[LabeledRow]) -> bytes:
    """Serialize every series as JSON, each histogram with the bounds of its buckets."""
    return json.dumps(
        {
            "format": FORMAT,
            "rows": [
                {"agent": agent, "model": model, "series": list(_series(table.columns, row))}
                for agent, model, row in rows
            ],
        },
        separators=(",", ":"),
        sort_keys=True,
    ).encode()


def _series(columns: list[Column], row: Row) -> Iterable[dict[str, Any]]:
    for metric, labels, start, width in columns:
        if start >= len(row) or row[start] is None:
            continue
        entry: dict[str, Any] = {"metric": metric.name, "labels": labels}
        if metric.kind == "histogram":
            *counts, total = row[start : start + width]
            entry |= {"bounds": metric.buckets, "counts": counts, "sum": total}
        else:
            entry["value"] = row[start]
        yield entry


def restore(raw: bytes, table: SeriesTable, row_of: Callable[[str, str], Row]) -> None:
    """Add the persisted values in *raw* to the rows that *row_of* returns for (agent, model).

    Series unknown to this release are skipped. Raises `StoreError` where *raw* is damaged; values added before
    the damage stay, so callers restore into a fresh table first.
    """
    try:
        document = json.loads(raw)
        if document["format"] != FORMAT:
            raise StoreError(f"persisted counters: expected format {FORMAT}, got {document['format']!r}")
        for entry in document["rows"]:
            row = row_of(str(entry["agent"]), str(entry["model"]))
            for series in entry["series"]:
                metric = BY_NAME.get(series["metric"])
                if metric is not None and len(series["labels"]) == len(metric.own_labels):
                    _restore_series(table, row, metric, series)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"persisted counters: damaged ({type(error).__name__}: {error})") from error


def _restore_series(table: SeriesTable, row: Row, metric: Metric, series: dict[str, Any]) -> None:
    column = table.column(metric, series["labels"])
    table.touch(row, column)
    if metric.kind != "histogram":
        row[column.start] += _amount(series["value"])  # type: ignore[operator]  # touched above
        return
    # The bounds may differ between releases: each count is added to the bucket that contains its upper bound.
    for upper, count in zip((*series["bounds"], float("inf")), series["counts"], strict=True):
        row[column.start + bisect_left(metric.buckets, upper)] += _amount(count)  # type: ignore[operator]
    row[column.start + column.width - 1] += _amount(series["sum"])  # type: ignore[operator]


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"expected a number of 0 or more, got {value!r}")
    return value
