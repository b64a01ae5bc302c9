"""Filtered events as files that are written while they are read: JSON Lines, CSV and Parquet.

Each writer is an iterator of bytes that holds one batch of the record at a time, however much matches. JSON Lines
and Parquet have the shape that `windowpane audit export` gives, with the exact bytes that were hashed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from windowpane.core.codec import decode
from windowpane.exceptions import EventFormatError
from windowpane.store.export import ExportRow, json_line, parquet_writer
from windowpane.text.events import describe, describe_damage
from windowpane_dashboard.queries.sessions import moments

Batches = Iterator[list[ExportRow]]

CSV_COLUMNS: Final = ("seq", "at", "session", "revision", "turn", "event", "what", "hash")
_SPREADSHEET_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Form(NamedTuple):
    """One kind of file."""

    label: str
    media_type: str
    write: Callable[[Batches], Iterator[bytes]]


def json_lines(batches: Batches) -> Iterator[bytes]:
    """One JSON object a line: `seq`, `revision`, `hash` and the exact `event`."""
    for batch in batches:
        yield b"".join(map(json_line, batch))


def csv_lines(batches: Batches) -> Iterator[bytes]:
    """The rows of the audit page with their whole hash; no cell is anything that a spreadsheet would run."""
    yield _csv([CSV_COLUMNS])
    for batch in batches:
        at = moments([row.at for row in batch]).dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").fillna("")
        yield _csv(
            [row.seq, when, _inert(row.session_id), row.revision, row.turn, row.type, _said(row), row.hash.hex()]
            for row, when in zip(batch, at, strict=True)
        )


def _csv(rows: Iterator[list[object]] | list[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="replace")


def _said(row: ExportRow) -> str:
    try:
        return _inert(describe(decode(row.body)))
    except EventFormatError as error:
        return _inert(describe_damage(error))


def _inert(cell: str) -> str:
    """A cell that a spreadsheet would take for a formula gets a leading quote."""
    return f"'{cell}" if cell.startswith(_SPREADSHEET_FORMULA) else cell


def parquet(batches: Batches) -> Iterator[bytes]:
    """The record's columns and the body as text. Raises `StoreError` where pyarrow is missing."""
    passed = _Passing()
    with parquet_writer(passed) as write:
        for batch in batches:
            write(batch)
            yield passed.taken()
    yield passed.taken()


class _Passing(io.BytesIO):
    """A file that is only written, and gives up what was written."""

    def taken(self) -> bytes:
        written = self.getvalue()
        self.seek(0)
        self.truncate()
        return written

    def close(self) -> None:
        """Stays open: its last bytes are taken after the writer has closed."""


FORMS: Final[dict[str, Form]] = {
    "jsonl": Form("JSON Lines", "application/jsonl", json_lines),
    "csv": Form("CSV", "text/csv; charset=utf-8", csv_lines),
    "parquet": Form("Parquet", "application/vnd.apache.parquet", parquet),
}
