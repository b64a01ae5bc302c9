"""Filtered events as files: JSON Lines as they are stored, CSV as they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec
import pandas as pd

from windowpane.codec import to_document
from windowpane.store.base import EventFilter, EventReader, StoredEvent
from windowpane_dashboard.queries import events_frame

EXPORT_ROWS: Final = 50_000
"""Rows of one download; more are exported by `windowpane audit export`."""
BATCH: Final = 1_000
_SPREADSHEET_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def matching(reader: EventReader, query: EventFilter) -> Iterator[StoredEvent]:
    """All events that match, batch by batch, up to the download's size."""
    after, left = query.after_seq, EXPORT_ROWS
    while left > 0:
        batch = reader.events(replace(query, after_seq=after, limit=min(BATCH, left), newest_first=False))
        yield from batch
        if len(batch) < min(BATCH, left):
            return
        after, left = batch[-1].seq, left - len(batch)


def json_lines(reader: EventReader, query: EventFilter) -> bytes:
    """One JSON object a line: the event's document with `seq`, `revision` and `hash`."""
    encoder = msgspec.json.Encoder()
    lines = [
        encoder.encode(
            {"seq": stored.seq, "revision": stored.revision, "hash": stored.hash, **to_document(stored.event)}
        )
        for stored in matching(reader, query)
    ]
    return b"\n".join(lines) + (b"\n" if lines else b"")


def csv(reader: EventReader, query: EventFilter) -> bytes:
    """The rows of the audit page; a cell that a spreadsheet would run as a formula gets a leading quote."""
    frame = events_frame(list(matching(reader, query)))
    for name in ("session", "event", "what"):
        frame[name] = [_inert(cell) for cell in frame[name]]
    frame["at"] = frame["at"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return pd.DataFrame(frame).to_csv(index=False).encode()


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_SPREADSHEET_FORMULA) else cell
