"""Storing a recorded session: nothing when it is there, the rest when it grew, a revision when its past changed.

The stored bytes are compared with the recording's, in order, before the write lock is taken; then everything that
is new goes into one transaction, so a recording is never stored by half.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, islice
from typing import Final

import msgspec

from windowpane.core.codec import encode
from windowpane.core.events import Event
from windowpane.exceptions import StoreError
from windowpane.store import heads
from windowpane.store.contents import ContentCapture
from windowpane.store.records import ImportOutcome
from windowpane.store.session_state import SessionState
from windowpane.store.writes import Writer

EventFactory = Callable[[], Iterable[Event]]

CHUNK_EVENTS: Final = 1_000
SPOOLED_EVENTS: Final = 10_000
"""Made before the write lock is taken, so that most recordings hold it only while they are written."""

_SESSION: Final = "SELECT key, revision, head_seq FROM sessions WHERE session_id = ? AND current = 1"
_BODIES: Final = "SELECT body FROM events WHERE session = ? ORDER BY seq"
_EARLIER: Final = "SELECT key FROM sessions WHERE session_id = ? AND current = 0 ORDER BY revision DESC LIMIT 4"
_LATER: Final = "SELECT body FROM events WHERE session = ? AND seq > ? ORDER BY seq"


class _Stream(msgspec.Struct):
    stream_id: str


_stream_decoder: Final = msgspec.json.Decoder(_Stream)


class Found(Enum):
    """How a recording compares with what is stored of its session."""

    SAME = "same"
    LONGER = "longer"
    DIFFERENT = "different"


@dataclass(slots=True)
class Comparison:
    """What comparing found, and the events that are new."""

    found: Found
    session_id: str = ""
    stream_id: str = ""
    key: int | None = None
    """The stored session; None where there is none."""
    revision: int = 0
    head_seq: int = 0
    matched: int = 0
    rest: Iterator[Event] = field(default_factory=lambda: iter(()))


def compare(
    connection: sqlite3.Connection, events: Iterator[Event], capture: ContentCapture | None
) -> Comparison:
    """Play *events* beside the stored ones; what others stored in between, such as deliveries, is skipped."""
    first = next(events, None)
    if first is None:
        return Comparison(Found.SAME)
    context = first.context
    result = Comparison(Found.SAME, context.session_id, context.stream_id)
    row = connection.execute(_SESSION, (context.session_id,)).fetchone()
    if row is None:
        result.found, result.rest = Found.LONGER, chain((first,), events)
        return result
    result.key, result.revision, result.head_seq = row
    stored = connection.execute(_BODIES, (result.key,))
    for event in chain((first,), events):
        body = encode(event)
        for (known,) in stored:
            if known == body:
                break
            if not result.matched or not _foreign(known, result.stream_id):
                result.found = Found.DIFFERENT
                return result
        else:
            result.found, result.rest = Found.LONGER, chain((event,), events)
            return result
        result.matched += 1
        if capture is not None:
            capture.collect(event)
    return result


def superseded(connection: sqlite3.Connection, comparison: Comparison, factory: EventFactory) -> bool:
    """Whether the recording is one that an earlier revision holds already, so that a copy changes nothing."""
    earlier = connection.execute(_EARLIER, (comparison.session_id,)).fetchall()
    for (key,) in earlier:
        stored = connection.execute(_BODIES, (key,))
        if all(_holds(stored, encode(event), comparison.stream_id) for event in factory()):
            return True
    return False


def _holds(stored: Iterable[tuple[bytes]], body: bytes, stream_id: str) -> bool:
    """Whether *body* is the next of the stored events, passing over those that others stored in between."""
    for (known,) in stored:
        if known == body:
            return True
        if not _foreign(known, stream_id):
            return False
    return False


def store(writer: Writer, comparison: Comparison, factory: EventFactory) -> ImportOutcome:
    """Write what *comparison* found to be new, inside the caller's transaction."""
    current = writer.state(comparison.session_id)
    _check_unmoved(writer.connection, comparison, current)
    if comparison.found is Found.DIFFERENT:
        assert current is not None
        state = _revise(writer, current, comparison.matched)
        events: Iterator[Event] = iter(factory())
    elif current is None:
        state = writer.begin_session(comparison.session_id)
        state.counted_from = writer.next_seq() + heads.pruned_events(writer.connection, state.session_id)
        events = comparison.rest
    else:
        state, events = current, comparison.rest
    appended = 0
    while chunk := list(islice(events, CHUNK_EVENTS)):
        stray = next((e for e in chunk if e.context.session_id != state.session_id), None)
        if stray is not None:
            raise StoreError(
                f"a recorded session must be whole: {state.session_id} goes on as {stray.context.session_id}"
            )
        appended += writer.append(chunk, into=state)
    revised = comparison.found is Found.DIFFERENT
    return ImportOutcome(
        session_id=state.session_id,
        revision=state.revision,
        appended=appended - (comparison.matched if revised else 0),
        unchanged=comparison.matched,
        revised=revised,
    )


def spool(comparison: Comparison) -> None:
    """Make the first of the new events now, before the write lock is taken."""
    made = list(islice(comparison.rest, SPOOLED_EVENTS))
    comparison.rest = chain(made, comparison.rest)


def _foreign(body: bytes, stream_id: str) -> bool:
    return _stream_decoder.decode(body).stream_id != stream_id


def _check_unmoved(connection: sqlite3.Connection, seen: Comparison, current: SessionState | None) -> None:
    """Refuse when another process stored more of the same recording since it was compared."""
    moved = (None if current is None else current.key) != seen.key
    if not moved and current is not None and current.head_seq != seen.head_seq:
        later = connection.execute(_LATER, (current.key, seen.head_seq))
        moved = any(not _foreign(body, seen.stream_id) for (body,) in later)
    if moved:
        raise StoreError(
            f"session {seen.session_id} was changed by another process while it was imported; "
            "nothing was stored, import it again"
        )


def _revise(writer: Writer, old: SessionState, common: int) -> SessionState:
    """Close the old revision with a tombstone and begin the next; the common prefix was counted already."""
    connection = writer.connection
    writer.add_head("revised", old)
    connection.execute("UPDATE sessions SET current = 0 WHERE key = ?", (old.key,))
    for statement in FORGET_PROJECTIONS:
        connection.execute(statement, (old.key,))
    state = writer.begin_session(old.session_id, revision=old.revision + 1)
    state.counted_from = writer.next_seq() + common
    return state


FORGET_PROJECTIONS: Final = (
    "DELETE FROM turns WHERE session = ?",
    "DELETE FROM blocks WHERE session = ?",
    "DELETE FROM alerts WHERE session = ?",
    "DELETE FROM late_events WHERE session = ?",
)
