"""Exports as a table in CSV, whose cells hold JSON where a value is not text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.json_document import DocumentLog, parse_embedded
from windowpane.sources.transcripts.reader import MAXIMUM_RECORD_BYTES

CSV: Final = ".csv"
_MAXIMUM_HEADER_BYTES: Final = 16_384
_NUMBERS: Final = ("cost", "tokens")
"""Ends of the names of columns with numbers."""


def columns_of(head: bytes) -> list[str]:
    """Return the names in the first line of a table."""
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:_MAXIMUM_HEADER_BYTES]
    try:
        return next(csv.reader([line.decode(errors="replace").rstrip("\r")]), [])
    except csv.Error:
        return []


def table_rows(path: Path, log: DocumentLog) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as objects. Raises `SourceError` when it cannot be read."""
    csv.field_size_limit(MAXIMUM_RECORD_BYTES)
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                yield {name: _value(name, cell) for name, cell in row.items() if name and isinstance(cell, str)}
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be read") from error
    except csv.Error as error:
        log.bad("", f"not a table: {error}; the rest of the file is not read")


def _value(name: str, cell: str) -> Any:
    """Return the value of a cell: JSON for objects, lists and numbers; None for an empty one."""
    is_json = cell.startswith(("{", "[")) or name.lower().endswith(_NUMBERS)
    parsed = parse_embedded(cell) if is_json else None
    return (cell or None) if parsed is None else parsed
