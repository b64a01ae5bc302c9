"""The same recording, derived again by another release.

Derived events, and their number, may differ between releases. The recording is the same where the texts and model
calls in it are those that are stored, in order. Then nothing is stored again: a `session.rederived` states the
release, and the events of what was recorded since follow it.

The ids of blocks are part of the window. Where a release counts blocks differently and the recording has grown,
its events cannot follow those of the earlier one, so the recording becomes a new revision.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from typing import Final

import msgspec

from windowpane.core.codec import decode, encode
from windowpane.core.decoders import json_decoder
from windowpane.core.events import (
    ANNOTATIONS,
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ChangeUnidentified,
    CompactionMeasured,
    ContentCompressed,
    ContentRegretted,
    Event,
    Fact,
    FidelityEvaluated,
    LimitChanged,
    RulesFollowed,
    SessionRederived,
    SessionStarted,
    TurnEnded,
    UsageRejected,
)
from windowpane.store.database import Database

BODIES: Final = "SELECT body FROM events WHERE session = ? ORDER BY seq"
_FIRST: Final = f"{BODIES} LIMIT 1"
_LAST_STATEMENT: Final = """SELECT e.seq, e.body FROM events AS e JOIN event_types AS t ON t.id = e.type
    WHERE e.session = ? AND t.name = ? ORDER BY e.seq DESC LIMIT 1"""
_BEFORE: Final = "SELECT body FROM events WHERE session = ? AND seq < ? ORDER BY seq"
BODIES_AFTER: Final = "SELECT body FROM events WHERE session = ? AND seq > ? ORDER BY seq"

_BY_RELEASE: Final = (
    FidelityEvaluated, RulesFollowed, ChangeUnidentified, LimitChanged, UsageRejected, BlocksReferenced,
    SessionRederived,
)  # fmt: skip
"""Facts that depend on the release as well as on the recording."""
_STATED: Final = (
    frozenset(fact.type for fact in Fact.__args__) - {fact.type for fact in _BY_RELEASE} - frozenset(ANNOTATIONS)
)
"""Types of the events that state what was recorded."""
_CAUSES: Final = (ContentCompressed.type, BlocksEvicted.type)
"""Types of the events that others name by their id."""
_RELEASE: Final = re.compile(rb',?"derived_by":"(?:[^"\\]|\\.)*"')


class _Body(msgspec.Struct):
    """The part of an event's body that is read here."""

    stream_id: str
    n: int
    type: str
    event_id: str
    data: msgspec.Raw
    at: float | None = None


class _Block(msgspec.Struct):
    id: str
    content_type: str
    digest: str = ""
    replaces: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class _Call(msgspec.Struct):
    usage: _Usage | None = None
    response_id: str | None = None
    recorded_output_tokens: int | None = None


_decoder: Final = json_decoder(_Body)
_block_decoder: Final = json_decoder(_Block)
_call_decoder: Final = json_decoder(_Call)

RecordedFact = tuple[object, ...]
"""A text or a model call as the recording states it, whatever the release."""


class _ReadEvent(msgspec.Struct):
    """One event, and what it states of the recording."""

    body: _Body
    kind: str = ""
    """Type of an event that states what was recorded; empty for those that a release derives from it."""
    fact: RecordedFact | None = None
    block: _Block | None = None


def _read(body: bytes, stream_id: str) -> _ReadEvent:
    read = _ReadEvent(_decoder.decode(body))
    event = read.body
    if event.stream_id != stream_id or event.type not in _STATED:
        return read
    read.kind = event.type
    if event.type == BlockAdded.type:
        block = read.block = _block_decoder.decode(event.data)
        if block.content_type == "unattributed":
            read.kind = ""
        elif block.digest and block.replaces is None:
            read.fact = (block.digest,)
    elif event.type == TurnEnded.type:
        call = _call_decoder.decode(event.data)
        sent, recorded = call.usage, call.recorded_output_tokens
        read.fact = (
            event.at,
            call.response_id,
            sent and sent.input_tokens + sent.cache_read_tokens + sent.cache_write_tokens,
            (sent and sent.output_tokens) if recorded is None else recorded,
        )
    return read


@dataclass(slots=True)
class _Derivation:
    """The events that were derived from a recording, as far as they were read."""

    stream_id: str
    count: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    """The next number in each stream."""
    causes: list[str] = field(default_factory=list)
    """Ids of the events that others may name."""
    tail: Counter[str] = field(default_factory=Counter)
    """Number of events of each type since the last fact."""
    last: bytes = b""
    """The last event of the recording's stream."""
    _blocks: blake2b = field(default_factory=blake2b)

    def add(self, body: bytes, read: _ReadEvent) -> None:
        """Count one event."""
        event = read.body
        self.count += 1
        self.numbers[event.stream_id] = event.n + 1
        if event.stream_id != self.stream_id:
            return
        self.last = body
        if event.type in _CAUSES:
            self.causes.append(event.event_id)
        if read.block is not None:
            self._blocks.update(f"{read.block.id} {read.block.digest}\n".encode("utf-8", "replace"))
        if read.fact is not None:
            self.tail.clear()
        elif read.kind:
            self.tail[read.kind] += 1

    def facts(self, bodies: Iterable[bytes]) -> Iterator[RecordedFact]:
        """Count events, and yield the facts among them."""
        for body in bodies:
            read = _read(body, self.stream_id)
            self.add(body, read)
            if read.fact is not None:
                yield read.fact

    def has_blocks_of(self, other: _Derivation) -> bool:
        """Return whether both gave the same blocks the same ids."""
        return self._blocks.digest() == other._blocks.digest()


class _Numbering:
    """Numbers the events of a release after those of an earlier one, and renames the events that they name."""

    def __init__(self, stored: _Derivation, again: _Derivation) -> None:
        self._shifts = {
            stream: stored.numbers.get(stream, 0) - again.numbers.get(stream, 0)
            for stream in stored.numbers.keys() | again.numbers.keys()
        }
        self._shifts[stored.stream_id] += 1  # for the statement between them
        self._names: dict[str, str] = {}
        if len(stored.causes) == len(again.causes):
            self._names.update(zip(again.causes, stored.causes, strict=True))

    def number(self, event: Event) -> Event:
        """Return *event* as it is stored."""
        context, n, at, data = event
        if isinstance(data, FidelityEvaluated | CompactionMeasured | RulesFollowed) and data.of in self._names:
            data = replace(data, of=self._names[data.of])
        elif isinstance(data, ContentRegretted):
            data = replace(data, cause_event_id=self._names.get(data.cause_event_id, data.cause_event_id))
        numbered = Event(context, n + self._shifts.get(context.stream_id, 0), at, data)
        if data.type in _CAUSES:
            self._names[event.event_id] = numbered.event_id
        return numbered


@dataclass(slots=True)
class Continuation:
    """The events that a release adds to a stored recording."""

    skipped: int
    """Its events that were not compared one by one, since an earlier release derived others."""
    rest: Iterator[Event]
    """The events to store, numbered."""
    matched: int = 0
    """Its events after those, which are stored."""


def release_of(event: Event) -> str | None:
    """Return the release that derived a recording's events, by its first one; None where that states none."""
    return event.data.derived_by if isinstance(event.data, SessionStarted) else None


def without_release(body: bytes) -> bytes:
    """Return the body of an event without the release that derived it."""
    if b'"type":"session.started"' not in body:
        return body
    return _RELEASE.sub(b"", body, count=1).replace(b'"data":{,', b'"data":{', 1)


def is_by(connection: Database, key: int, release: str | None) -> bool:
    """Return whether *release* derived all events of a stored recording."""
    row = connection.execute(_FIRST, (key,)).fetchone()
    if row is None or connection.execute(_LAST_STATEMENT, (key, SessionRederived.type)).fetchone() is not None:
        return False
    first = decode(row[0])
    return not isinstance(first.data, SessionStarted) or release_of(first) == release


def continuation(
    connection: Database, key: int, events: Iterator[Event], collect: Callable[[Event], None] | None = None
) -> Continuation | None:
    """Return what the stored recording with this row number lacks of *events*; None where it is another one.

    *collect* is called with each event that is not to be stored.
    """
    first = next(events, None)
    if first is None:
        return None
    events = chain((first,), events)
    last = connection.execute(_LAST_STATEMENT, (key, SessionRederived.type)).fetchone()
    statement = None if last is None else decode(last[1]).data
    release = release_of(first) or ""
    comparison = _Comparison(first.context.stream_id, collect or _ignore)
    if isinstance(statement, SessionRederived) and statement.release == release:
        before, after = (_bodies(connection, sql, key, last[0]) for sql in (_BEFORE, BODIES_AFTER))
        return comparison.resume(before, after, events, statement.skipped)
    earlier = statement.release if isinstance(statement, SessionRederived) else None
    if earlier is None:
        earlier = release_of(decode(connection.execute(_FIRST, (key,)).fetchone()[0])) or ""
    return comparison.compare(_bodies(connection, BODIES, key), events, SessionRederived(release, earlier, 0))


def _bodies(connection: Database, sql: str, *parameters: int) -> Iterator[bytes]:
    return (body for (body,) in connection.execute(sql, parameters))


def _ignore(_event: Event) -> None:
    pass


class _Comparison:
    """Compares the facts of a stored recording with those of the same recording derived again."""

    def __init__(self, stream_id: str, collect: Callable[[Event], None]) -> None:
        self._stored = _Derivation(stream_id)
        self._again = _Derivation(stream_id)
        self._collect = collect

    def compare(
        self, stored: Iterator[bytes], events: Iterator[Event], statement: SessionRederived
    ) -> Continuation | None:
        """Compare with the events of an earlier release; the statement that another follows is added."""
        matches = self._match(stored, events)
        if matches is not None and not matches:
            return Continuation(self._again.count, iter(()))
        if matches is None:
            return None
        following = self._skip_tail(events)
        if following is not None and not self._stored.has_blocks_of(self._again):
            return None
        last = decode(self._stored.last)
        number = self._stored.numbers[self._stored.stream_id]
        stated = Event(last.context, number, last.at, replace(statement, skipped=self._again.count))
        rest = iter(()) if following is None else chain((following,), events)
        numbering = _Numbering(self._stored, self._again)
        return Continuation(self._again.count, chain((stated,), map(numbering.number, rest)))

    def resume(
        self, before: Iterator[bytes], after: Iterator[bytes], events: Iterator[Event], skipped: int
    ) -> Continuation | None:
        """Compare with the events of earlier releases, and one by one with those of this release after them."""
        matches = self._match(before, events)
        if matches is not None and not matches:
            return Continuation(self._again.count, iter(()))
        if matches is None or self._again.count > skipped:
            return None
        while self._again.count < skipped:
            event = next(events, None)
            if event is None:
                return Continuation(self._again.count, iter(()))
            if self._add(event).fact is not None:
                return None
        return self._compare_after(after, events)

    def _compare_after(self, after: Iterator[bytes], events: Iterator[Event]) -> Continuation | None:
        numbering = _Numbering(self._stored, self._again)
        result = Continuation(self._again.count, iter(()))
        for event in events:
            numbered = numbering.number(event)
            body = encode(numbered)
            for stored in after:
                if stored == body:
                    break
                if _decoder.decode(stored).stream_id == self._stored.stream_id:
                    return None
            else:
                result.rest = chain((numbered,), map(numbering.number, events))
                return result
            result.matched += 1
            self._collect(event)
        return result

    def _match(self, stored: Iterator[bytes], events: Iterator[Event]) -> bool | None:
        """Return whether all stored facts come again, False where the events end before; None if they differ."""
        for fact in self._stored.facts(stored):
            own = next((read.fact for event in events if (read := self._add(event)).fact is not None), None)
            if own is None:
                return False
            if own != fact:
                return None
        return True

    def _skip_tail(self, events: Iterator[Event]) -> Event | None:
        """Skip what was derived from the stored part, and what is stored after its last fact; return the next."""
        stored = self._stored.tail.copy()
        for event in events:
            read = _read(encode(event), self._stored.stream_id)
            if read.fact is not None or (read.kind and not stored[read.kind]):
                return event
            stored[read.kind] -= 1
            self._add(event)
        return None

    def _add(self, event: Event) -> _ReadEvent:
        body = encode(event)
        read = _read(body, self._again.stream_id)
        self._again.add(body, read)
        self._collect(event)
        return read
