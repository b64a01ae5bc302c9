"""Import of a recorded session: unchanged, extended, or rewritten as a new revision.

A recording with another past and fewer turns, such as a rewind, never replaces a longer one, and none replaces a
session of the same id with which it has no call in common. One whose events another release derived is the same;
see `store.writes.rederivation`.

The recording's events are compared with the stored bytes, in order, before the write lock is taken; then all new
events are stored in one transaction, so a recording is never stored by half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, islice
from typing import Final

import msgspec

from windowpane.core.codec import decode, encode
from windowpane.core.decoders import json_decoder
from windowpane.core.events import Event, SessionRederived
from windowpane.core.same_session import RecordedCalls, rank
from windowpane.exceptions import OtherSessionError, StoreError
from windowpane.store.database import Database
from windowpane.store.projections import rebuild as projection_rebuild
from windowpane.store.projections import session_drafts
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.records import ImportOutcome
from windowpane.store.search import events as search
from windowpane.store.writes import additions, rederivation
from windowpane.store.writes.chain import pruned_events
from windowpane.store.writes.content_capture import ContentCapture
from windowpane.store.writes.write import Writer

EventFactory = Callable[[], Iterable[Event]]
"""Makes the whole event sequence of a recorded session, the same at every call."""

CHUNK_EVENTS: Final = 10_000
"""Events made before the write lock is taken, so that most recordings hold it only while they are written; and
events stored with one statement for each table."""

_SESSION: Final = (
    "SELECT key, revision, head_seq, turns, source FROM sessions WHERE session_id = ? AND +current = 1"
)
_FIRST: Final = "SELECT min(seq) FROM events WHERE session = ?"
_KEYS: Final = "SELECT key FROM sessions ORDER BY key"
_NUMBERED: Final = "SELECT seq, body FROM events WHERE session = ? ORDER BY seq"
_CORRECT: Final = "UPDATE sessions SET counted_from = ? WHERE key = ?"
_REVISION: Final = "SELECT key FROM sessions WHERE session_id = ? AND revision = ?"
_EARLIER: Final = "SELECT key FROM sessions WHERE session_id = ? AND current = 0 ORDER BY revision DESC LIMIT 4"


DISTINCT: Final = "~"
"""Character between the id of another session, which a recording states, and a digest of its first call."""


class _Stream(msgspec.Struct):
    stream_id: str


_stream_decoder: Final = json_decoder(_Stream)


class Change(Enum):
    """The difference of a recording from what is stored of its session."""

    NONE = "none"
    EXTENDED = "extended"
    REWRITTEN = "rewritten"


@dataclass(slots=True)
class ImportComparison:
    """The result of comparing a recording with the store, and its new events."""

    change: Change
    session_id: str = ""
    stream_id: str = ""
    key: int | None = None
    """Row number of the stored session; None for a new session."""
    revision: int = 0
    head_seq: int = 0
    turns: int = 0
    """Ended turns of the stored session."""
    matched: int = 0
    rest: Iterator[Event] = field(default_factory=lambda: iter(()))
    rank: int = 0
    """Above 0 where the recording is a more complete record of the session than the stored, below 0 a lesser."""
    release: str | None = None
    """Release that derived the recording's events."""
    is_shorter: bool = False
    """The recording has another past and fewer turns than the store, which keeps what it has."""

    def unchanged(self) -> ImportOutcome:
        """Return the outcome of an import that stores nothing."""
        return ImportOutcome(
            self.session_id, self.revision, 0, self.matched,
            revised=False, is_shorter=self.is_shorter, turns=self.turns,
        )  # fmt: skip


def compare(connection: Database, factory: EventFactory, capture: ContentCapture | None) -> ImportComparison:
    """Compare a recording with the store and make the first of its new events.

    *factory* is called once, and again only where the recording's past has changed.
    """
    comparison = _compare(connection, iter(factory()), capture)
    if comparison.key is not None and comparison.change is not Change.NONE:
        _compare_releases(connection, comparison, factory, capture)
    if comparison.change is Change.REWRITTEN:
        comparison.is_shorter |= comparison.rank < 0
        if comparison.rank == 0:  # records of one session by other sources may have no calls to compare
            _compare_calls(connection, comparison, RecordedCalls.of(factory()))
        if comparison.is_shorter or _is_superseded(connection, comparison, factory):
            comparison.change = Change.NONE
    comparison.rest = chain(list(islice(comparison.rest, CHUNK_EVENTS)), comparison.rest)
    return comparison


def _compare_calls(connection: Database, comparison: ImportComparison, own: RecordedCalls) -> None:
    """Raise `OtherSessionError` where the recording is of another session than the stored one with its id.

    The distinct id ends with a digest of its first call, so it is the same at each import.
    """
    stored = connection.execute(rederivation.BODIES, (comparison.key,))
    if own.continue_session(RecordedCalls.of(decode(body) for (body,) in stored)):
        comparison.is_shorter |= own.turns < comparison.turns
        return
    if own.first:
        raise OtherSessionError(comparison.session_id, f"{comparison.session_id}{DISTINCT}{own.first}")
    comparison.is_shorter = True


def _compare_releases(
    connection: Database, comparison: ImportComparison, factory: EventFactory, capture: ContentCapture | None
) -> None:
    """Compare the recording itself where another release derived the stored events.

    The events of another source, such as telemetry under the same id, were not derived from a recording.
    """
    key = comparison.key
    if key is None or comparison.rank or rederivation.is_by(connection, key, comparison.release):
        return
    collect = None if capture is None else capture.collect_one
    continuation = rederivation.continuation(connection, key, iter(factory()), collect)
    if continuation is None:
        comparison.change = Change.REWRITTEN
        return
    first = next(continuation.rest, None)
    comparison.change = Change.NONE if first is None else Change.EXTENDED
    comparison.rest = iter(()) if first is None else chain((first,), continuation.rest)
    comparison.matched = continuation.skipped + continuation.matched


def store(writer: Writer, comparison: ImportComparison, factory: EventFactory) -> ImportOutcome:
    """Store the new events of *comparison*, inside the caller's transaction. Raises `StoreError`."""
    current = writer.session(comparison.session_id)
    _check_unmoved(writer.connection, comparison, current)
    rewritten = comparison.change is Change.REWRITTEN
    events = iter(factory()) if rewritten else comparison.rest
    if current is None:
        session = writer.start_session(comparison.session_id)
        session.counted_from = _first_counted(writer.connection, session, writer.next_seq())
    else:
        session = _revise(writer, current) if rewritten else current
    appended, first_seq = 0, writer.next_seq()
    while chunk := list(islice(events, CHUNK_EVENTS)):
        stray = next((e for e in chunk if e.context.session_id != session.session_id), None)
        if stray is not None:
            raise StoreError(
                f"a recorded session must be whole: {session.session_id} continues as {stray.context.session_id}"
            )
        appended += writer.append(chunk, into=session)
        search.index(writer.connection, limit=CHUNK_EVENTS)  # here no other process waits for the same lock
    if rewritten and current is not None:
        session.counted_from = _first_counted(writer.connection, session, first_seq)
        session_drafts.save(writer.connection, [session])
        additions.copy_to(writer, current, session)
        if current.project and not session.project:
            additions.assign_project_to(writer, session, current.project)
    return ImportOutcome(
        session_id=session.session_id,
        revision=session.revision,
        appended=appended - (comparison.matched if rewritten else 0),
        unchanged=comparison.matched,
        revised=rewritten,
        turns=session.turns,
    )


def _compare(connection: Database, events: Iterator[Event], capture: ContentCapture | None) -> ImportComparison:
    """Compare event by event; events that others stored in between, such as deliveries, are skipped."""
    first = next(events, None)
    if first is None:
        return ImportComparison(Change.NONE)
    context = first.context
    result = ImportComparison(Change.NONE, context.session_id, context.stream_id)
    row = connection.execute(_SESSION, (context.session_id,)).fetchone()
    if row is None:
        result.change, result.rest = Change.EXTENDED, chain((first,), events)
        return result
    result.key, result.revision, result.head_seq, result.turns, stored_source = row
    result.rank = rank(context.source) - rank(stored_source)
    result.release = rederivation.release_of(first)
    stored = connection.execute(rederivation.BODIES, (result.key,))
    for event in chain((first,), events):
        body = encode(event)
        for (stored_body,) in stored:
            if _is_same(stored_body, body, result.matched):
                break
            if not result.matched or not _is_foreign(stored_body, result.stream_id):
                result.change = Change.REWRITTEN
                return result
        else:
            result.change, result.rest = Change.EXTENDED, chain((event,), events)
            return result
        result.matched += 1
        if capture is not None:
            capture.collect_one(event)
    return result


def counted_from(connection: Database, session: SessionDraft) -> int:
    """Return the number of the first event of a stored session that counts, by its events."""
    if session.counted_from == 0 and _revision_before(connection, session) is None:
        return 0  # recorded live, where every event counts
    (first_seq,) = connection.execute(_FIRST, (session.key,)).fetchone()
    return _first_counted(connection, session, first_seq or 0)


def correct_counted_from(connection: Database) -> None:
    """Let every session count from the event that its events give, inside the caller's transaction."""
    for (key,) in connection.execute(_KEYS).fetchall():
        session = session_drafts.load_key(connection, key)
        assert session is not None
        first = counted_from(connection, session)
        if first != session.counted_from:
            connection.execute(_CORRECT, (first, key))


def _first_counted(connection: Database, session: SessionDraft, first_seq: int) -> int:
    """Return the number of the first event that counts of an imported session that starts at *first_seq*.

    A revision repeats events of the one before it, which were counted; a recording that is imported again, those
    that retention deleted.
    """
    before = _revision_before(connection, session)
    if before is None:
        return first_seq + pruned_events(connection, session.session_id)
    return _after_shared(connection, before, session.key, first_seq)


def _revision_before(connection: Database, session: SessionDraft) -> int | None:
    """Return the row number of the revision that this one replaced."""
    row = connection.execute(_REVISION, (session.session_id, session.revision - 1)).fetchone()
    return None if row is None else int(row[0])


def _after_shared(connection: Database, before: int, after: int, first_seq: int) -> int:
    """Return the number behind the last event that a revision shares with the one before it.

    Events of other streams, such as alerts and marks of copied calls, may be missing from either.
    """
    shared_until, stream, others = first_seq, "", set[bytes]()

    def following() -> bytes | None:
        body: bytes
        for (body,) in stored:
            if not _is_foreign(body, stream):
                return body
            others.add(body)
        return None

    stored = iter(connection.execute(rederivation.BODIES, (before,)))
    (expected,) = next(stored, (None,))
    for number, (seq, body) in enumerate(connection.execute(_NUMBERED, (after,))):
        stream = stream or _stream_decoder.decode(body).stream_id
        if body not in others:
            if _is_foreign(body, stream):
                continue
            if expected is None or not _is_same(expected, body, number):
                break
            expected = following()
        shared_until = seq + 1
    return shared_until


def _is_same(stored: bytes, body: bytes, number: int) -> bool:
    """Return whether two events are the same, apart from the release that the first one states."""
    if stored == body:
        return True
    return not number and rederivation.without_release(stored) == rederivation.without_release(body)


def _is_superseded(connection: Database, comparison: ImportComparison, factory: EventFactory) -> bool:
    """Return whether an earlier revision already holds the recording, so that a copy changes nothing."""
    earlier = connection.execute(_EARLIER, (comparison.session_id,)).fetchall()
    for (key,) in earlier:
        stored = connection.execute(rederivation.BODIES, (key,))
        if all(_is_next(stored, encode(event), comparison.stream_id) for event in factory()):
            return True
        if not rederivation.is_by(connection, key, comparison.release):
            copy = rederivation.continuation(connection, key, iter(factory()))
            if copy is not None and all(isinstance(event.data, SessionRederived) for event in copy.rest):
                return True
    return False


def _is_next(stored: Iterable[tuple[bytes]], body: bytes, stream_id: str) -> bool:
    """Return whether *body* is the next of the stored events, skipping those of other streams."""
    for (stored_body,) in stored:
        if stored_body == body:
            return True
        if not _is_foreign(stored_body, stream_id):
            return False
    return False


def _is_foreign(body: bytes, stream_id: str) -> bool:
    return _stream_decoder.decode(body).stream_id != stream_id


def _check_unmoved(connection: Database, compared: ImportComparison, current: SessionDraft | None) -> None:
    """Raise `StoreError` when another process stored more of the same recording since it was compared."""
    moved = (None if current is None else current.key) != compared.key
    if not moved and current is not None and current.head_seq != compared.head_seq:
        later = connection.execute(rederivation.BODIES_AFTER, (current.key, compared.head_seq))
        moved = any(not _is_foreign(body, compared.stream_id) for (body,) in later)
    if moved:
        raise StoreError(
            f"session {compared.session_id} was changed by another process while it was imported; "
            "nothing was stored, import it again"
        )


def _revise(writer: Writer, old: SessionDraft) -> SessionDraft:
    """Close the old revision with a tombstone and start the next."""
    connection = writer.connection
    writer.add_head("revised", old)
    connection.execute("UPDATE sessions SET current = 0 WHERE key = ?", (old.key,))
    projection_rebuild.remove_session(connection, old.key)
    return writer.start_session(old.session_id, revision=old.revision + 1)
