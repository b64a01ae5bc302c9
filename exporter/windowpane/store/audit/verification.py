"""Verification of a store: every stored byte against its hash, every head and every row against the events.

What detects what: a session's chain detects a changed byte, row or order, and a removed, added or moved event;
the store-wide chain detects a cut tail or a deleted session; exported heads detect that the store-wide chain was
cut as well, or that an older copy was restored. With a key none of this can be forged without the key; without
one it detects accidents, not intent. Where anything shows that a store has a key, what is not signed with a known
key is broken, except what its owner has accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final, NamedTuple

import msgspec

from windowpane.core.decoders import convert, json_decoder
from windowpane.core.events import BlockAdded
from windowpane.core.same_session import is_recording
from windowpane.store.audit import heads as audit_heads
from windowpane.store.audit.contents import ContentAudit
from windowpane.store.audit.heads import RecordedChain, SessionRevision, missing_key_problem
from windowpane.store.audit.projections import ProjectionAudit
from windowpane.store.database import Database
from windowpane.store.keys import UNKEYED, AuditKeys, Link
from windowpane.store.migrations import SCHEMA_VERSION
from windowpane.store.projections.projection import ROUTINE
from windowpane.store.records import BrokenLink, Verification
from windowpane.store.tables import TABLES
from windowpane.store.writes.chain import ACCEPT, Head, genesis, read_heads

_SESSIONS: Final = (
    "SELECT key, session_id, revision, current, keyed_by, head_seq, head_hash, events FROM sessions ORDER BY key"
)
_EVENTS: Final = "SELECT seq, turn, type, at, body, hash FROM events WHERE session = ? ORDER BY seq"
_STRAY: Final = "SELECT seq FROM events WHERE session NOT IN (SELECT key FROM sessions) ORDER BY seq LIMIT 1"
_TYPES: Final = "SELECT id, name, events FROM event_types"
_COUNTS: Final = "SELECT type, count(*) FROM events GROUP BY type"
_NEXT: Final = "SELECT next_seq, (SELECT max(seq) FROM events) FROM store"
_VERSIONS: Final = "SELECT version FROM schema_versions"
_RECEIVED: Final = "SELECT stream_id FROM received_streams WHERE session_id = ?"
_ENDLESS: Final = 2**62


class _Data(msgspec.Struct):
    """The range of events that were dropped, or the block that was added."""

    first_n: int = 0
    last_n: int = -1
    digest: str | None = None
    content_type: str | None = None
    tool_name: str | None = None


class _Envelope(msgspec.Struct):
    """The part of an event's body that its row repeats, and its number in its stream."""

    session_id: str
    turn: int
    source: str
    stream_id: str
    n: int
    type: str
    data: _Data
    at: float | None = None


_decoder: Final = json_decoder(_Envelope)


class _Session(NamedTuple):
    key: int
    session_id: str
    revision: int
    current: int
    keyed_by: str
    head_seq: int
    head_hash: bytes
    events: int

    def broken(self, seq: int | None, problem: str) -> BrokenLink:
        return BrokenLink(self.session_id, self.revision, seq, problem)


@dataclass(slots=True)
class _StreamNumbers:
    """The numbers missing from each stream, and those reported as dropped."""

    last: dict[str, int] = field(default_factory=dict)
    gaps: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Stream, first and last number missing, and the `seq` after them."""
    dropped: list[tuple[str, int, int]] = field(default_factory=list)

    def record(self, event: _Envelope, seq: int) -> None:
        last = self.last.get(event.stream_id)
        if last is not None and event.n > last + 1:
            self.gaps.append((event.stream_id, last + 1, event.n - 1, seq))
        self.last[event.stream_id] = event.n if last is None else max(last, event.n)
        if event.type == "telemetry.dropped":
            self.dropped.append((event.stream_id, event.data.first_n, event.data.last_n))

    def is_explained(self, stream: str, first: int, last: int) -> bool:
        """Return whether reports of this stream cover every number from *first* to *last*."""
        for _, start, end in sorted(item for item in self.dropped if item[0] == stream):
            if start <= first <= end:
                first = end + 1
        return first > last

    def unexplained(self) -> list[tuple[str, int, int, int]]:
        """Return the gaps that no report covers."""
        return [gap for gap in self.gaps if not self.is_explained(*gap[:3])]


def verify(
    connection: Database,
    *,
    keys: AuditKeys,
    session_id: str | None = None,
    exported: list[Head] | None = None,
    projections: bool = True,
    expect_key: bool | None = None,
) -> Verification:
    """Verify one session or all, reading one event at a time; *projections* compares the rows of pages, too.

    *expect_key* None: the store is expected to have a key where one is available.
    """
    changed = list(_changed_objects(connection))
    if any(link.problem.startswith(f"table {table.name}") for link in changed for table in TABLES):
        return Verification(keyed=keys.available, sessions=0, events=0, broken=tuple(changed))
    sessions, broken = _read_sessions(connection)
    broken = changed + broken
    is_expected = keys.available if expect_key is None else expect_key
    has_keyed = any(session.keyed_by != UNKEYED for session in sessions)
    if session_id is not None:
        sessions = [session for session in sessions if session.session_id == session_id]
    heads = audit_heads.verify(read_heads(connection), keys=keys, exported=exported or ())
    broken += heads.broken
    is_keyed = has_keyed or heads.signed
    texts = ContentAudit(connection) if projections else None
    walk = _SessionWalk(connection, keys.links(), has_accepted=heads.has_accepted, texts=texts)
    rows = ProjectionAudit(connection) if projections else None
    for session in sessions:
        link = walk.verify(session, heads.chains.get((session.session_id, session.revision), RecordedChain()))
        if link is None and rows is not None:
            problem = rows.problem(session.key)
            link = None if problem is None else session.broken(None, problem)
        if link is not None:
            broken.append(link)
    broken += _missing(heads.chains, sessions, session_id)
    if session_id is None:
        broken += _stray_events(connection)
        broken += [] if broken else _whole_store(connection, rows)
    if (is_keyed or is_expected) and not heads.has_accepted:
        broken += _unaccepted(walk.unkeyed_events, heads.unsigned)
    if texts is not None and session_id is None:
        broken += [BrokenLink("", 0, None, problem) for problem in texts.problems()]
    if rows is not None:
        rows.close()
        inconsistency = connection.dialect.inconsistency(connection)
        broken += [] if inconsistency is None else [BrokenLink("", 0, None, inconsistency)]
    return Verification(
        keyed=is_keyed,
        sessions=len(sessions),
        events=sum(session.events for session in sessions),
        broken=tuple(broken),
        explained_gaps=walk.explained_gaps,
        sender_gaps=walk.sender_gaps,
        unkeyed_events=walk.unkeyed_events if heads.has_accepted else 0,
        accepted=heads.accepted,
        exported_heads=None if exported is None else len(exported),
        projections=projections,
    )


def _unaccepted(events: int, heads: int) -> Iterator[BrokenLink]:
    """Yield the problem of a store that holds anything that is neither signed nor accepted."""
    if events or heads:
        problem = f"{events} events and {heads} heads without a signature were never accepted; {ACCEPT}"
        yield BrokenLink("", 0, None, problem)


def _changed_objects(connection: Database) -> Iterator[BrokenLink]:
    """Yield the tables, indexes, triggers and the like that are not those of a store.

    Only of a store that was made with this schema version: a migration writes other definitions.
    """
    if any(version > 0 and version != SCHEMA_VERSION for (version,) in connection.execute(_VERSIONS)):
        return
    stored, expected = connection.dialect.objects(connection), connection.dialect.expected_objects()
    for name in sorted(stored.keys() | expected.keys()):
        if name not in stored:
            yield BrokenLink("", 0, None, f"{name} is missing")
        elif name not in expected:
            yield BrokenLink("", 0, None, f"{name} does not belong to a store")
        elif stored[name] != expected[name]:
            yield BrokenLink("", 0, None, f"{name} is not defined as in a new store")


def _read_sessions(connection: Database) -> tuple[list[_Session], list[BrokenLink]]:
    """Return the rows of sessions, and those with a value of another type, which SQLite stores in any column."""
    sessions, broken = [], []
    for row in connection.execute(_SESSIONS):
        try:
            sessions.append(convert(row, _Session))
        except msgspec.ValidationError as error:
            broken.append(BrokenLink(str(row[1]), 0, None, f"the row of the session is damaged ({error})"))
    return sessions, broken


def _missing(
    chains: dict[SessionRevision, RecordedChain], sessions: list[_Session], session_id: str | None
) -> Iterator[BrokenLink]:
    """Yield the sessions that the heads name and the store neither holds nor deleted, and the reverse."""
    present = {(session.session_id, session.revision): session for session in sessions}
    for (known_id, revision), chain in chains.items():
        if session_id not in (None, known_id):
            continue
        session = present.get((known_id, revision))
        if session is None and chain.pruned is None:
            problem = f"the whole session is missing; it had {chain.events} events"
            yield BrokenLink(known_id, revision, None, problem)
        elif session is not None and chain.pruned is not None:
            yield session.broken(None, "the session is in the store although retention deleted it")
        elif session is not None and chain.revised is not None and session.current:
            yield session.broken(None, "the revision is the current one although another one replaced it")
    latest = {session.session_id: session for session in sorted(sessions, key=lambda one: one.revision)}
    for session in sessions:
        if session.current != int(latest[session.session_id] is session):  # pages look for 1
            yield session.broken(None, "not the latest revision of the session is the current one")


def _stray_events(connection: Database) -> Iterator[BrokenLink]:
    stray = connection.execute(_STRAY).fetchone()
    if stray is not None:
        yield BrokenLink("", 0, stray[0], "the event belongs to no session")


def _whole_store(connection: Database, rows: ProjectionAudit | None) -> Iterator[BrokenLink]:
    """Yield wrong counts of the whole store, and rows without a session; each follows from any other break."""
    following, highest = connection.execute(_NEXT).fetchone() or (None, None)
    if following is None:
        yield BrokenLink("", 0, None, "the row of table store is missing")
    elif highest is not None and following <= highest:
        yield BrokenLink("", 0, None, f"store.next_seq is {following}, the last event is {highest}")
    counts = dict(connection.execute(_COUNTS).fetchall())
    for type_id, name, events in connection.execute(_TYPES):
        if events != counts.get(type_id, 0):
            problem = f"event_types.events of {name} is {events}, the store holds {counts.get(type_id, 0)}"
            yield BrokenLink("", 0, None, problem)
    stray = None if rows is None else rows.stray_problem()
    if stray is not None:
        yield BrokenLink("", 0, None, stray)


# -- one session ----------------------------------------------------------------------------------------------


class _Span(NamedTuple):
    """A part of a session's chain under one key."""

    last: int
    """Position of its last event, from 1."""
    keyed_by: str


class _Broken(Exception):  # noqa: N818  # ends the walk through a session's events
    """The first bad event of a session."""

    def __init__(self, seq: int | None, problem: str) -> None:
        super().__init__(seq, problem)
        self.seq, self.problem = seq, problem


class _SessionWalk:
    """Verifies the chains of sessions, and counts what is worth a word without being broken."""

    def __init__(
        self, connection: Database, links: dict[str, Link], *, has_accepted: bool, texts: ContentAudit | None
    ) -> None:
        """*has_accepted*: an event without a signature is broken unless it was accepted."""
        self._texts = texts
        self.explained_gaps = 0
        self.unkeyed_events = 0
        self.sender_gaps = 0
        self._connection = connection
        self._links = links
        self._has_accepted = has_accepted
        self._types: dict[int, str] = {kind: name for kind, name, _ in connection.execute(_TYPES)}

    def verify(self, session: _Session, recorded: RecordedChain) -> BrokenLink | None:
        """Return the first bad event of a session, or None."""
        try:
            spans = self._spans(session, recorded)
            self._walk(session, recorded, spans)
        except _Broken as broken:
            return session.broken(broken.seq, broken.problem)
        return None

    def _spans(self, session: _Session, recorded: RecordedChain) -> list[_Span]:
        """Return the keys of the chain, in order, by the entries of the times when another one took over."""
        spans = [_Span(entry.events, entry.keyed_by) for entry in recorded.rekeyed]
        spans.append(_Span(_ENDLESS, session.keyed_by))
        followers = [*(entry.signed_by for entry in recorded.rekeyed)]
        if followers != [span.keyed_by for span in spans[1:]]:
            raise _Broken(None, "the chain's key is not the one that took over from the one before")
        for events, entry in recorded.entries.items():
            if entry.keyed_by != next(span.keyed_by for span in spans if events <= span.last):
                raise _Broken(None, "the chain's key was changed after its head was recorded")
        for span in spans:
            if span.keyed_by not in self._links:
                raise _Broken(None, missing_key_problem(span.keyed_by))
        return spans

    def _walk(self, session: _Session, recorded: RecordedChain, spans: list[_Span]) -> None:
        numbers, count, last_seq, ended_after = _StreamNumbers(), 0, 0, 0
        previous = genesis(session.session_id, session.revision)
        for seq, turn, kind, at, body, stored in self._connection.execute(_EVENTS, (session.key,)):
            count, last_seq = count + 1, seq
            if count > spans[0].last:
                spans = spans[1:]
            keyed_by = spans[0].keyed_by
            if not isinstance(body, bytes) or not isinstance(stored, bytes):
                raise _Broken(seq, "the event's bytes were replaced by something else")
            previous = self._links[keyed_by](previous, body)
            if not compare_digest(previous, stored):
                raise _Broken(seq, "the event or one before it was changed, moved or removed")
            if count in recorded.entries and recorded.entries[count].head != stored.hex():
                raise _Broken(seq, "the chain differs from a head that was recorded")
            if keyed_by == UNKEYED:
                if self._has_accepted and count > recorded.accepted_events:
                    raise _Broken(seq, "recorded without a key, in a store that has one")
                self.unkeyed_events += 1
            event = _envelope(seq, body)
            row = (session.session_id, turn, self._types.get(kind), at)
            if (event.session_id, event.turn, event.type, event.at) != row:
                raise _Broken(seq, "the row's turn, type or time is not that of its event")
            numbers.record(event, seq)
            if self._texts is not None and event.type == BlockAdded.type and event.data.digest:
                content_type, digest = event.data.content_type, event.data.digest
                tool = str(event.data.tool_name) if content_type == "tool_call" else None
                is_comparable = content_type != "tool_result" or is_recording(event.source)
                self._texts.add(event.stream_id, digest, tool=tool, is_comparable=is_comparable)
            ended_after = _ended_after(ended_after, count, event.type)
        expected = max(session.events, recorded.events)
        if (count, last_seq, previous) != (expected, session.head_seq, session.head_hash):
            raise _Broken(last_seq or None, f"ends after {count} of {expected} events")
        if ended_after > recorded.events:
            raise _Broken(last_seq, "the session ended and no head was recorded of it")
        self._check_numbers(session, numbers)

    def _check_numbers(self, session: _Session, numbers: _StreamNumbers) -> None:
        unexplained = numbers.unexplained()
        self.explained_gaps += len(numbers.gaps) - len(unexplained)
        if not unexplained:
            return
        received = {stream for (stream,) in self._connection.execute(_RECEIVED, (session.session_id,))}
        for stream, first, last, seq in unexplained:
            if stream not in received:  # this store counted them itself
                problem = (
                    f"events {first} to {last} of stream {stream} are missing and were not reported as dropped"
                )
                raise _Broken(seq, problem)
        self.sender_gaps += len(unexplained)


def _envelope(seq: int, body: bytes) -> _Envelope:
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _Broken(seq, f"the hash is right, and the bytes are not an event ({error})") from error


def _ended_after(ended_after: int, count: int, kind: str) -> int:
    """Return the position of the end after which nothing noteworthy happened; the writer records a head then."""
    if kind == "session.ended":
        return count
    return 0 if kind == "turn.started" or kind not in ROUTINE else ended_after
