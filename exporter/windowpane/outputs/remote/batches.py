"""Batches of events as they are sent: lines of JSON, compressed with gzip.

A line is an event as the codec writes it, or a captured text with its digest, redacted by its sender. One line
that cannot be read does not affect the others: the response names it by its number, from 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict

from windowpane.core.codec import encode
from windowpane.core.decoders import json_decoder
from windowpane.core.event_limits import check_name, foreign_event, read_document
from windowpane.core.events import Event, EventContext
from windowpane.exceptions import EventFormatError
from windowpane.store.captured_content import CapturedText

PATH: Final = "/ingest/v1/events"
CONTENT_TYPE: Final = "application/x-ndjson"
MAXIMUM_RECORDS: Final = 10_000
"""Lines of one batch that a server reads."""
GZIP_LEVEL: Final = 1
"""The fastest level: repeated field names already compress eightfold."""
_STARTS_OF_TEXT: Final = (b'{"digest"', b'{"text"')
"""Starts of a line with a captured text: no event has these fields."""


_text_decoder: Final = json_decoder(CapturedText)


class Record(NamedTuple):
    """One line of a batch; *event* is None for a captured text."""

    line: bytes
    event: Event | None


class RefusedRecord(BaseModel):
    """A record that the server does not take, now or later."""

    model_config = ConfigDict(frozen=True, strict=True)

    record: int
    """Its number in the batch, from 1."""
    problem: str


class Outcome(BaseModel):
    """The server's answer to a batch."""

    model_config = ConfigDict(frozen=True, strict=True)

    stored: int
    """Events that were new."""
    repeated: int
    """Events that had been stored before."""
    refused: tuple[RefusedRecord, ...] = ()


class ReadBatch(NamedTuple):
    """The records of a batch that can be read."""

    events: list[Event]
    records: list[int]
    """The number of each event's record."""
    texts: list[CapturedText]
    refused: list[RefusedRecord]
    size: int
    """Bytes of its body."""


def event_records(events: Iterable[Event]) -> Iterator[Record]:
    """Yield a record for each event."""
    return (Record(encode(event), event) for event in events)


def text_records(texts: Iterable[CapturedText]) -> Iterator[Record]:
    """Yield a record for each captured text, which must be redacted."""
    for text in texts:
        clean = text.text.encode("utf-8", "replace").decode()
        yield Record(msgspec.json.encode(CapturedText(text.digest, clean)), None)


def compressed(records: Sequence[Record]) -> bytes:
    """Return the body of a request."""
    deflate = zlib.compressobj(GZIP_LEVEL, wbits=16 + zlib.MAX_WBITS)
    body = b"".join(record.line + b"\n" for record in records)
    return deflate.compress(body) + deflate.flush()


def read_batch(body: bytes) -> ReadBatch:
    """Return the records of a decompressed body."""
    read = ReadBatch([], [], [], [], len(body))
    context: EventContext | None = None
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            item = _read(line)
        except EventFormatError as error:
            read.refused.append(RefusedRecord(record=number, problem=str(error)))
            continue
        if isinstance(item, CapturedText):
            read.texts.append(item)
            continue
        if item.context == context:
            item = item._replace(context=context)  # one object per turn, which the store writes faster
        context = item.context
        read.events.append(item)
        read.records.append(number)
    return read


def _read(line: bytes) -> Event | CapturedText:
    if not line.lstrip().startswith(_STARTS_OF_TEXT):
        return foreign_event(read_document(line))
    try:
        text = _text_decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EventFormatError(f"not a captured text: {error}") from error
    check_name("digest", text.digest)
    return text
