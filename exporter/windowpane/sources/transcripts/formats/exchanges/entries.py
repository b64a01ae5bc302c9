"""The objects of an export, whether it is a file by lines or one document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from windowpane.sources.transcripts.json_document import DocumentLog, JsonObject, load_document
from windowpane.sources.transcripts.json_lines import is_lines, read_rows


def line_objects(path: Path, log: DocumentLog) -> Iterator[JsonObject]:
    """Yield the objects of a file by lines; damaged lines are reported and skipped."""
    for row in read_rows(path, log):
        if row.value is not None:
            yield JsonObject(row.value, f"line {row.line}", log)


def entries_of(path: Path, log: DocumentLog, *, several: bool = False) -> Iterator[Any]:
    """Yield the objects of a file by lines, or what the list of a document holds, or the document itself.

    With *several* a file may hold documents one after the other.
    """
    if is_lines(path):
        yield from (one.value for one in line_objects(path, log))
        return
    document = load_document(path, log, several=several)
    yield from document if isinstance(document, list) else (document,)
