"""The write path: events become rows, links of their session's chain and projections, in one transaction.

`seq` and hash are assigned under the write lock from rows that every process shares, so several processes may
write at once. A writer reuses a session that it remembers only while the session's head has not moved.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

from windowpane.core.codec import encode_all
from windowpane.core.decoders import json_decoder
from windowpane.core.events import PAYLOADS, Event
from windowpane.core.protocols import Clock
from windowpane.exceptions import SessionRefusedError
from windowpane.store.database import Database
from windowpane.store.keys import Link, key_id, link_all, link_with
from windowpane.store.projections import session_drafts
from windowpane.store.projections.projection import Projection
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.statements import StatementBatch, Value, padded, placeholders
from windowpane.store.writes import chain, same_sessions
from windowpane.store.writes.content_capture import ContentCapture
from windowpane.store.writes.continuation import Continuation
from windowpane.store.writes.copied_calls import CopiedCalls

_log: Final = logging.getLogger(__name__)

SESSIONS_PER_STATEMENT: Final = 200
REMEMBERED_SESSIONS: Final = 4_096
"""Sessions remembered between batches; of more, the least recently used are read again."""

_INSERT_EVENT: Final = (
    "INSERT INTO events (seq, session, turn, type, at, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_session_id: Final = attrgetter("context.session_id")
_TYPE: Final = 3
"""Index of the type in a row of `events`."""
_ADVANCE: Final = "UPDATE store SET next_seq = ?"
_COUNT: Final = "UPDATE event_types SET events = events + ? WHERE id = ?"
_HEADS: Final = "SELECT session_id, head_seq FROM sessions WHERE +current = 1 AND session_id IN"


class _StreamNumber(msgspec.Struct):
    """The part of an event's body that identifies it."""

    stream_id: str
    n: int


_decoder: Final = json_decoder(_StreamNumber)


class Writer:
    """Appends events through one connection; the caller serializes calls and opens the transaction."""

    def __init__(
        self,
        connection: Database,
        *,
        audit_key: bytes | None,
        capture: ContentCapture | None,
        clock: Clock,
    ) -> None:
        self.connection = connection
        self.audit_key = audit_key
        self.capture = capture
        self.clock = clock
        self.key_id = key_id(audit_key)
        self._keyed = link_with(audit_key)
        self._plain = link_with(None)
        self._sessions: dict[str, SessionDraft] = {}
        self._continuation = Continuation(connection)
        self._types = self._type_ids()
        self._may_be_empty = audit_key is not None
        if audit_key is None and chain.has_signatures(connection):
            _log.warning(
                "the store's audit chain uses a key and this process has none: what it records breaks it"
            )
        if audit_key is not None and chain.is_unaccepted(connection):
            _log.warning("the store holds events that were recorded without an audit key: %s", chain.ACCEPT)

    def start(self) -> None:
        """Start a transaction: an empty store is recorded with this process's key from its first entry on."""
        if self.capture is not None:
            self.capture.start()
        if self._may_be_empty and self.audit_key is not None:
            self._may_be_empty = chain.is_empty(self.connection)
            if self._may_be_empty:
                chain.accept_unkeyed(self.connection, key=self.audit_key, at=self.clock())

    def reset(self) -> None:
        """Discard what is remembered: a transaction was rolled back, or rows were changed elsewhere."""
        self._sessions.clear()
        self._continuation.reset()
        if self.capture is not None:
            self.capture.discard()

    def session(self, session_id: str) -> SessionDraft | None:
        """Return the current revision of a session, or None; inside a transaction."""
        return self._current([session_id]).get(session_id)

    def start_session(self, session_id: str, *, revision: int | None = None) -> SessionDraft:
        """Start a new chain; a session that retention deleted continues with its next revision.

        Its row is stored when events are appended to it.
        """
        numbers = {} if revision is None else {session_id: revision}
        return self._start([session_id], numbers)[session_id]

    def append(self, batch: Sequence[Event], *, into: SessionDraft | None = None) -> int:
        """Store events in order and return how many; *into* is their session, if they are stored unchanged."""
        projection, copies = Projection(StatementBatch(self.connection)), CopiedCalls(self.connection)
        seq = self.next_seq()
        rows: list[tuple[Value, ...]] = []
        touched: dict[str, SessionDraft] = {}
        parts = self._renumbered(batch, projection) if into is None else [(into, batch)]
        for session, part in parts:
            events = same_sessions.accepted(session, part)
            if not events:
                continue
            events = copies.marked(session, events)
            touched[session.session_id] = session
            bodies = encode_all(events)
            hashes = link_all(self._link(session), session.head_hash, bodies)
            numbers = range(seq, seq + len(events))
            projection.apply(session, events, numbers)
            if self.capture is not None:
                self.capture.collect(events)
            types, key = self._types, session.key
            rows += [
                (number, key, context.turn, types[data.type], at, body, link)
                for number, (context, _n, at, data), body, link in zip(
                    numbers, events, bodies, hashes, strict=True
                )
            ]
            session.head_seq, session.head_hash = numbers[-1], hashes[-1]
            seq = numbers.stop
        self.connection.executemany(_INSERT_EVENT, rows)
        projection.save()
        self._finish(touched, Counter(row[_TYPE] for row in rows), seq)
        same_sessions.recognize(self, touched.values(), projection)
        return len(rows)

    def missing(self, session_id: str, events: Sequence[Event]) -> list[Event]:
        """Return those of a session's *events* that are not stored yet, by stream and number."""
        session = self.session(session_id)
        if session is None:
            return list(events)
        missing = {(event.context.stream_id, event.n) for event in events}
        rows = self.connection.execute("SELECT body FROM events WHERE session = ?", (session.key,))
        missing.difference_update(
            (number.stream_id, number.n) for number in (_decoder.decode(body) for (body,) in rows)
        )
        return [event for event in events if (event.context.stream_id, event.n) in missing]

    def next_seq(self) -> int:
        """Return the number of the next event; inside a transaction."""
        return int(self.connection.execute("SELECT next_seq FROM store").fetchone()[0])

    def add_head(self, kind: chain.HeadKind, session: SessionDraft) -> None:
        """Add the session's head to the store-wide chain."""
        self._add_heads(kind, [session])

    # -- internals -----------------------------------------------------------------------------------------------

    def _renumbered(
        self, batch: Sequence[Event], projection: Projection
    ) -> Iterator[tuple[SessionDraft, Sequence[Event]]]:
        """Yield the events as they are stored, in parts of one session."""
        opened = self._open(batch, projection)
        for session_id, events in groupby(batch, key=_session_id):
            session = opened[session_id]
            for part in self._continuation.renumbered(session, list(events)):
                yield session, part

    def _finish(self, touched: dict[str, SessionDraft], counts: Mapping[Value, int], seq: int) -> None:
        session_drafts.save(self.connection, touched.values())
        ended = [one for one in touched.values() if one.ended and one.last_event == "session.ended"]
        if ended:
            self._add_heads("head", ended)
        self.connection.executemany(_COUNT, [(count, kind) for kind, count in counts.items()])
        if self.capture is not None:
            self.capture.save(self.connection)
        self.connection.executemany(_ADVANCE, [(seq,)])

    def _add_heads(self, kind: chain.HeadKind, sessions: Iterable[SessionDraft]) -> None:
        heads = [
            chain.NewHead(one.session_id, one.revision, one.events, one.head_hash, one.keyed_by)
            for one in sessions
        ]
        chain.add_heads(self.connection, kind, heads, key=self.audit_key, at=self.clock())

    def _open(self, batch: Sequence[Event], projection: Projection) -> dict[str, SessionDraft]:
        """Return the sessions of a batch, started where they are new, with few statements for all."""
        opened: dict[str, SessionDraft] = {}
        first_turns = _first_turns(batch)
        session_ids = list(first_turns)
        for start in range(0, len(session_ids), SESSIONS_PER_STATEMENT):
            ids = session_ids[start : start + SESSIONS_PER_STATEMENT]
            stored = self._current(ids)
            continued = [one.key for one in stored.values() if first_turns[one.session_id] <= one.last_turn]
            if len(continued) > 1:  # one turn is read where it is changed
                projection.load_turns(continued)
            opened |= stored
        missing = [session_id for session_id in first_turns if session_id not in opened]
        return opened | self._start(missing, {}) if missing else opened

    def _current(self, session_ids: Sequence[str]) -> dict[str, SessionDraft]:
        """Return the current revisions of those sessions that are stored; remembered ones are checked."""
        remembered = {one: draft for one in session_ids if (draft := self._sessions.pop(one, None)) is not None}
        current = {}
        if remembered:
            ids = padded(list(remembered))
            heads = dict(self.connection.execute(f"{_HEADS} ({placeholders(ids)})", ids).fetchall())
            current = {one: draft for one, draft in remembered.items() if heads.get(one) == draft.head_seq}
        unread = [one for one in session_ids if one not in current]
        if unread:
            current |= session_drafts.load_all(self.connection, unread)
        for draft in current.values():
            self._remember(draft)
        return current

    def _start(self, session_ids: Sequence[str], revisions: Mapping[str, int]) -> dict[str, SessionDraft]:
        """Start new chains with these *revisions*, else with the next one of each session."""
        unknown = [one for one in session_ids if one not in revisions]
        last = chain.last_revisions(self.connection, unknown)
        started = {}
        for session_id in session_ids:
            number = revisions.get(session_id) or last.get(session_id, 0) + 1
            started[session_id] = SessionDraft(
                session_id, number, current=1, keyed_by=self.key_id, counted_from=0, head_seq=0,
                head_hash=chain.genesis(session_id, number),
            )  # fmt: skip
        session_drafts.number(self.connection, list(started.values()))
        for session in started.values():
            self._remember(session)
        return started

    def _link(self, session: SessionDraft) -> Link:
        """Return the hash that continues a session's chain; a new key takes over from an old one or from none."""
        if session.keyed_by == self.key_id:
            return self._plain if self.audit_key is None else self._keyed
        if self.audit_key is None:
            raise SessionRefusedError(
                f"session {session.session_id}: its audit chain uses the key {session.keyed_by}, "
                "this process has none; set WINDOWPANE_AUDIT_KEY to the same key, or to its successor"
            )
        self.add_head("rekeyed", session)
        session.keyed_by = self.key_id
        return self._keyed

    def _remember(self, session: SessionDraft) -> None:
        self._sessions[session.session_id] = session
        while len(self._sessions) > REMEMBERED_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))

    def _type_ids(self) -> dict[str, int]:
        """Return the numbers of the event types, adding those that this database has not seen yet."""
        read = "SELECT name, id FROM event_types"
        numbers = dict(self.connection.execute(read).fetchall())
        missing = [(name,) for name in PAYLOADS if name not in numbers]
        if missing:
            self.connection.executemany(
                "INSERT INTO event_types (name) VALUES (?) ON CONFLICT DO NOTHING", missing
            )
            numbers = dict(self.connection.execute(read).fetchall())
        return numbers


def _first_turns(batch: Iterable[Event]) -> dict[str, int]:
    """Return the ids of the sessions of a batch, in order, with the turn of the first event of each."""
    turns: dict[str, int] = {}
    context = None
    for event in batch:
        if event.context is not context:
            context = event.context
            turns.setdefault(context.session_id, context.turn)
    return turns
