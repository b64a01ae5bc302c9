"""Counters and histograms as bytes: the base that outlives the sessions it was counted from."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from windowpane.exceptions import StoreError
from windowpane.metrics.catalog import BY_NAME
from windowpane.metrics.metric import Metric
from windowpane.metrics.series import Column, Row, SeriesTable

FORMAT: Final = 1


class LabelSet(NamedTuple):
    """A row and whose it is."""

    agent: str
    model: str
    row: Row


def dump(table: SeriesTable, rows: Iterable[LabelSet]) -> bytes:
    """Every series as JSON, with the bounds its buckets had."""
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
            entry |= {
                "bounds": metric.buckets,
                "counts": row[start : start + width - 1],
                "sum": row[start + width - 1],
            }
        else:
            entry["value"] = row[start]
        yield entry


def restore(raw: bytes, table: SeriesTable, row_of: Callable[[str, str], Row]) -> None:
    """Add what *raw* holds to the rows that *row_of* gives for (agent, model).

    Series this release does not know are left out. Raises `StoreError` where *raw* is damaged; whatever was
    added before the damage stays, so callers restore into a fresh state.
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
                    _add(table, row, metric, series)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"persisted counters: damaged ({type(error).__name__}: {error})") from error


def _add(table: SeriesTable, row: Row, metric: Metric, series: dict[str, Any]) -> None:
    column = table.column(metric, series["labels"])
    table.touch(row, column)
    if metric.kind != "histogram":
        row[column.start] += _amount(series["value"])  # type: ignore[operator]  # touched above
        return
    # Bounds may have changed between releases: a bucket's count goes where its upper bound belongs.
    for upper, count in zip((*series["bounds"], float("inf")), series["counts"], strict=True):
        row[column.start + bisect_left(metric.buckets, upper)] += _amount(count)  # type: ignore[operator]
    row[column.start + column.width - 1] += _amount(series["sum"])  # type: ignore[operator]


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"expected a number of 0 or more, got {value!r}")
    return value
