"""Events that agents on other hosts send: each is stored once, however often it arrives.

A sender repeats what was not acknowledged, and so may send what is stored already. The table `received_streams`
holds the numbers that are stored of each stream of a session, so finding repetitions does not cost more as a
session grows; of a stream with thousands of gaps, what comes late is compared with the stored events. Batches of
many senders share one transaction; when the store cannot hold one of their events, they are stored one by one,
then divided, until only the faulty events are refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from windowpane.core.events import Event
from windowpane.exceptions import EventFormatError, EventsRefusedError, SessionRefusedError
from windowpane.store.captured_content import CapturedText
from windowpane.store.statements import in_lists, placeholders
from windowpane.store.writes.project_sessions import ProjectSessions
from windowpane.store.writes.write import Writer

MAXIMUM_RANGES: Final = 1_000
"""Ranges of one stream that are remembered; beyond them the lowest become one, with the numbers between them."""
_BLURRED: Final = "~"
"""Starts the text of ranges of which the lowest has numbers that it may not hold."""


class NumberRanges:
    """A set of numbers, written as text such as `0-41,43-90`; in `~0-41,43-90` some up to 41 may be missing."""

    def __init__(self, text: str = "") -> None:
        self._is_blurred = text.startswith(_BLURRED)
        self._starts: list[int] = []
        self._ends: list[int] = []
        for part in filter(None, text.removeprefix(_BLURRED).split(",")):
            start, _, end = part.partition("-")
            self._starts.append(int(start))
            self._ends.append(int(end or start))

    def __str__(self) -> str:
        """Return the text, of a bounded length."""
        excess = len(self._starts) - MAXIMUM_RANGES
        if excess > 0:
            del self._starts[1 : excess + 1], self._ends[:excess]
            self._is_blurred = True
        pairs = zip(self._starts, self._ends, strict=True)
        ranges = ",".join(str(start) if start == end else f"{start}-{end}" for start, end in pairs)
        return f"{_BLURRED if self._is_blurred else ''}{ranges}"

    def is_unknown(self, number: int) -> bool:
        """Return whether only the stored events can show if the set holds a number."""
        return self._is_blurred and self._starts[0] < number < self._ends[0]

    def add(self, number: int) -> bool:
        """Add a number, which must not be negative; return False if the set holds it already."""
        starts, ends = self._starts, self._ends
        after = bisect_right(starts, number)  # the first range that starts behind it
        if after and number <= ends[after - 1]:
            return False
        extends = bool(after) and number == ends[after - 1] + 1
        reaches = after < len(starts) and number + 1 == starts[after]
        if extends and reaches:
            ends[after - 1] = ends[after]
            del starts[after], ends[after]
        elif extends:
            ends[after - 1] = number
        elif reaches:
            starts[after] = number
        else:
            starts.insert(after, number)
            ends.insert(after, number)
        return True


Writing = Callable[[], AbstractContextManager[Writer]]
"""Lends the writer inside a transaction."""

BAD_DATA: Final = (ValueError, TypeError, OverflowError, LookupError, EventsRefusedError)
"""Errors about the events; after any other one the same events may be stored later."""
STREAMS_PER_QUERY: Final = 256

_NUMBERS: Final = "SELECT session_id, stream_id, numbers FROM received_streams WHERE stream_id IN"
_SAVE: Final = (
    "INSERT INTO received_streams (session_id, stream_id, numbers) VALUES (?, ?, ?) "
    "ON CONFLICT (stream_id, session_id) DO UPDATE SET numbers = excluded.numbers"
)
_FORGET: Final = "DELETE FROM received_streams WHERE session_id = ?"


class ReceivedBatch(NamedTuple):
    """The events and captured texts that one sender has sent at once."""

    events: Sequence[Event]
    texts: Sequence[CapturedText] = ()
    project: str = ""
    """The project of the sender's token; empty where it may send for all."""


class RefusedEvent(NamedTuple):
    """An event that the store cannot hold, by its position in the batch."""

    position: int
    problem: str


class Receipt(NamedTuple):
    """The result of one batch."""

    stored: int
    """Events that are new; the others that are not refused were stored before."""
    refused: tuple[RefusedEvent, ...] = ()


class _Part(NamedTuple):
    """Events of one batch, by their index in it."""

    batch: int
    indexes: Sequence[int]


def store(writing: Writing, batches: Sequence[ReceivedBatch]) -> list[Receipt]:
    """Store the events that are not stored yet; refuse only those that the store cannot hold."""
    whole = [_Part(number, range(len(batch.events))) for number, batch in enumerate(batches) if batch.events]
    stored = [0] * len(batches)
    refused: list[list[RefusedEvent]] = [[] for _ in batches]
    waiting = [whole] if whole else []
    while waiting:
        parts = waiting.pop(0)
        try:
            with writing() as writer:
                receipts = _append_new(writer, batches, parts)
        except BAD_DATA as error:
            smaller = _divided(batches, parts, error)
            waiting[:0] = smaller
            if not smaller:
                number, indexes = parts[0]
                problem = f"the store cannot hold it: {error}"
                refused[number] += [RefusedEvent(index, problem) for index in indexes]
            continue
        for part, receipt in zip(parts, receipts, strict=True):
            stored[part.batch] += receipt.stored
            refused[part.batch] += receipt.refused
    return [Receipt(count, tuple(sorted(events))) for count, events in zip(stored, refused, strict=True)]


def forget(writer: Writer, session_id: str) -> None:
    """Delete what is remembered of a session's streams, with the session."""
    writer.connection.execute(_FORGET, (session_id,))


def _append_new(writer: Writer, batches: Sequence[ReceivedBatch], parts: Sequence[_Part]) -> list[Receipt]:
    """Append the new events of all parts; return a receipt for each part."""
    sessions = ProjectSessions(writer)
    owned = [_owned(sessions, batches, part) for part in parts]
    streams = {_stream(event): NumberRanges() for part in owned for event in part.events}
    for stream, numbers in _stored_numbers(writer, {stream_id for _, stream_id in streams}):
        if stream in streams:
            streams[stream] = NumberRanges(numbers)
    late = _late(writer, (event for part in owned for event in part.events), streams)
    changed = set[tuple[str, str]]()
    new: list[Event] = []
    receipts = []
    for part in owned:
        before = len(new)
        for event in part.events:
            stream = _stream(event)
            if (*stream, event.n) in late:
                late.remove((*stream, event.n))
                new.append(event)
            elif streams[stream].add(event.n):
                changed.add(stream)
                new.append(event)
        receipts.append(Receipt(len(new) - before, part.refused))
    if new:
        writer.append(new)
        sessions.assign()
        writer.connection.executemany(_SAVE, [(*stream, str(streams[stream])) for stream in sorted(changed)])
    return receipts


def _late(
    writer: Writer, events: Iterable[Event], streams: Mapping[tuple[str, str], NumberRanges]
) -> set[tuple[str, str, int]]:
    """Return the events that are not stored, of those that only a look at the stored events can decide."""
    unknown: dict[str, list[Event]] = {}
    for event in events:
        session_id, stream_id = event.context.session_id, event.context.stream_id
        if streams[session_id, stream_id].is_unknown(event.n):
            unknown.setdefault(session_id, []).append(event)
    return {
        (session_id, event.context.stream_id, event.n)
        for session_id, some in unknown.items()
        for event in writer.missing(session_id, some)
    }


class _Owned(NamedTuple):
    """The events of a part under the ids of their project."""

    events: Sequence[Event]
    refused: tuple[RefusedEvent, ...]


def _owned(sessions: ProjectSessions, batches: Sequence[ReceivedBatch], part: _Part) -> _Owned:
    events, project = _events(batches, part), batches[part.batch].project
    if not project:
        return _Owned(events, ())
    owned, refused = list[Event](), list[RefusedEvent]()
    for position, event in zip(part.indexes, events, strict=True):
        try:
            owned.append(sessions.owned(event, project))
        except EventFormatError as error:
            refused.append(RefusedEvent(position, str(error)))
    return _Owned(owned, tuple(refused))


def _stream(event: Event) -> tuple[str, str]:
    return event.context.session_id, event.context.stream_id


def _stored_numbers(writer: Writer, stream_ids: Iterable[str]) -> Iterator[tuple[tuple[str, str], str]]:
    names = sorted(stream_ids)
    for some in in_lists(names, STREAMS_PER_QUERY):
        rows = writer.connection.execute(f"{_NUMBERS} ({placeholders(some)})", some).fetchall()
        for session_id, stream_id, numbers in rows:
            yield (session_id, stream_id), numbers


def _events(batches: Sequence[ReceivedBatch], part: _Part) -> list[Event]:
    events = batches[part.batch].events
    return [events[index] for index in part.indexes]


def _divided(batches: Sequence[ReceivedBatch], parts: Sequence[_Part], error: Exception) -> list[list[_Part]]:
    """Return smaller transactions: one per batch, per session of a batch, or halves; none for what is refused."""
    if len(parts) > 1:
        return [[part] for part in parts]
    number, indexes = parts[0]
    sessions: dict[str, list[int]] = {}
    for index, event in zip(indexes, _events(batches, parts[0]), strict=True):
        sessions.setdefault(event.context.session_id, []).append(index)
    if len(sessions) > 1:
        return [[_Part(number, some)] for some in sessions.values()]
    if len(indexes) == 1 or isinstance(error, SessionRefusedError):
        return []
    middle = len(indexes) // 2
    return [[_Part(number, indexes[:middle])], [_Part(number, indexes[middle:])]]
